"""AnnData files (.h5ad): obs are samples, var are features."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepmf._utils.optional import need
from deepmf._utils.safe_archives import UnreadableError, check_length, check_room
from deepmf.data.anndata_objects import FORMAT, from_matrix_of
from deepmf.data.dataset import Dataset
from deepmf.data.layout import Layout
from deepmf.data.provenance import Source
from deepmf.data.reading import Reading
from deepmf.factorization import Factorization
from deepmf.io.format import Format, Variable
from deepmf.io.hdf5 import check_hdf5
from deepmf.io.variables import choose


class H5ad(Format):
    """An AnnData file: ``X`` or a layer, sparse or dense, with obs_names and var_names."""

    name = FORMAT
    suffixes = (".h5ad",)

    def read(self, path: Path, reading: Reading) -> Dataset:
        """See `Format.read`; only the chosen matrix and the names are read."""
        ad, h5py = _libraries("Reading .h5ad files")
        found = self.variables(path)
        asked = reading.variable or ("X" if "X" in [v.name for v in found] else None)
        name = choose(path, found, asked)
        with h5py.File(path, "r") as file:
            node = file["X"] if name == "X" else file["layers"][name]
            _check_there(path, node)
            adata = ad.AnnData(
                ad.io.read_elem(node), _names(ad, file, "obs"), _names(ad, file, "var")
            )
        data = from_matrix_of(path, adata.X, adata, reading)
        source = Source(self.name, str(path.resolve()))
        return replace(data, layout=replace(data.layout, source=source))

    def variables(self, path: Path) -> list[Variable]:
        """See `Format.variables`: X and the layers."""
        _, h5py = _libraries("Reading .h5ad files")
        with h5py.File(path, "r") as file:
            check_hdf5(path, file)
            nodes = {"X": file["X"]} if "X" in file else {}
            nodes |= dict(file["layers"]) if "layers" in file else {}
            nodes = {
                name: node for name, node in nodes.items() if getattr(node, "shape", ()) is not None
            }
            return [_describe(name, node) for name, node in nodes.items()]

    def write(self, folder: Path, f: Factorization, names: Sequence[Sequence[str]]) -> None:
        """See `Format.write`: a copy of the file with codes, components and links added.

        ``obsm["X_deepmf_l"]`` holds the codes of layer l, ``varm["deepmf_l"]`` its components,
        ``uns["deepmf"]`` ranks, names, links and errors. Where the fit kept some of the features,
        the others have zeros in varm, and ``uns["deepmf"]["kept"]`` says which are which. Where the
        file is gone, or no longer has these samples and features, a new one without X takes its
        place.
        """
        ad, h5py = _libraries("Writing .h5ad files")
        source = Path(f.layout.source.path or "result.h5ad")
        target = folder / (source.name if source.suffix == ".h5ad" else "result.h5ad")
        if _fits(source, f.layout):
            shutil.copyfile(source, target)
        else:
            _empty(ad, f).write_h5ad(target)
        with h5py.File(target, "r+") as file:
            for (group, name), value in _results(f, names).items():
                ad.io.write_elem(file.require_group(group), name, value)


def _libraries(purpose: str) -> tuple[Any, Any]:
    return need("anndata", "bio", purpose), need("h5py", "bio", purpose)


# --- reading -------------------------------------------------------------------------------------


def _describe(name: str, node: Any) -> Variable:
    """A dense or sparse matrix inside the file."""
    if hasattr(node, "dtype"):
        return Variable(name, node.shape, str(node.dtype))
    shape = node.attrs.get("shape", node.attrs.get("h5sparse_shape", ()))
    return Variable(name, tuple(int(size) for size in shape), str(node["data"].dtype))


def _check_there(path: Path, node: Any) -> None:
    """Refuse arrays that are longer than the file or this machine's memory."""
    for part in [node] if hasattr(node, "dtype") else node.values():
        check_room(path, part.shape, part.dtype)
        if part.compression is None and part.size:
            check_length(path, part.shape, part.dtype, part.id.get_storage_size())


def read_obs(path: Path, column: str) -> NDArray[np.str_]:
    """A column of obs as text."""
    ad, h5py = _libraries("Reading .h5ad files")
    with h5py.File(path, "r") as file:
        check_hdf5(path, file)
        obs = ad.io.read_elem(file["obs"])
    if column not in obs.columns:
        there = ", ".join(map(str, obs.columns)) or "none"
        raise UnreadableError(
            f"{path} has no column {column!r} in obs, and there is no such file; it has {there}."
        )
    return obs[column].astype(str).to_numpy().astype(np.str_)


def _names(ad: Any, file: Any, axis: str) -> Any:
    """obs or var with its names alone."""
    return ad.io.read_elem(file[axis])[[]]


# --- writing -------------------------------------------------------------------------------------


def _fits(source: Path, layout: Layout) -> bool:
    """Whether the file is still there, with the samples and features of the fit."""
    ad, h5py = _libraries("Writing .h5ad files")
    try:
        with h5py.File(source, "r") as file:
            return all(
                list(_names(ad, file, axis).index) == own.tolist()
                for axis, own in (("obs", layout.samples), ("var", layout.all_features.features))
                if own is not None
            )
    except (OSError, KeyError, ValueError):
        return False


def _empty(ad: Any, f: Factorization) -> Any:
    pandas = need("pandas", "bio", "Writing .h5ad files")
    names = (f.layout.samples, f.layout.all_features.features)
    sizes = (f.H[0].shape[1], len(_of_all(f.W[0], f.layout)))
    obs, var = (
        pandas.DataFrame(index=np.arange(size).astype(str) if own is None else own.astype(object))
        for own, size in zip(names, sizes)
    )
    return ad.AnnData(obs=obs, var=var)


def _results(f: Factorization, names: Sequence[Sequence[str]]) -> dict[tuple[str, str], Any]:
    """Results by their group and name in the file."""
    out: dict[tuple[str, str], Any] = {}
    about: dict[str, Any] = {
        "ranks": np.array(f.ranks),
        "data_errors": f.history.data_errors[-1],
        "explained": 1 - f.history.data_errors[-1],
    }
    for layer in range(1, f.depth + 1):
        out["obsm", f"X_deepmf_{layer}"] = np.ascontiguousarray(f.codes(layer).T)
        out["varm", f"deepmf_{layer}"] = _of_all(f.basis(layer), f.layout)
        about[f"names_{layer}"] = np.array(names[layer - 1], dtype=object)
        if layer > 1:
            about[f"links_{layer}"] = f.links(layer)
    if f.layout.kept is not None:
        about["kept"] = f.layout.kept
    return {**out, ("uns", "deepmf"): about}


def _of_all(W: NDArray, layout: Layout) -> NDArray:
    """Rows for all features that the fit was given: zeros for those that it did not keep."""
    if layout.kept is None:
        return np.ascontiguousarray(W)
    whole = np.zeros((layout.kept.size, W.shape[1]), W.dtype)
    whole[layout.kept] = W
    return whole
