"""A run's folder: factors, tables, maps, settings; and the run back from it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepmf._utils.atomic_files import UNREADABLE
from deepmf._utils.safe_archives import load_npy, load_npz
from deepmf._utils.text_tables import write_csv
from deepmf.core.divergence import beta_of
from deepmf.data.dataset import Truth
from deepmf.factorization import Factorization
from deepmf.io import FORMATS
from deepmf.io.numpy_files import Npy
from deepmf.io.spectral_library import write_library
from deepmf.runs.run import OF_TRUTH, Run

_TRUTH = "truth.npz"
_RESIDUAL = "residual.npy"


def save_run(folder: Path, run: Run) -> None:
    """Write everything into a new folder.

    ``factors.npz`` (`Factorization.load` reads it) is the fit as it is; ``config.toml``,
    ``summary.json``, ``history.csv``, ``measures.csv``, ``truth-layer-l.csv``,
    ``components-layer-l.csv``, ``links-layer-l.csv``, codes in the input's own kind, an ENVI
    spectral library for spectra, ``truth.npz`` and ``residual.npy``, for a scene also in the
    input's own kind. A scene's components are in the data's units there, and its codes are
    fractions of pixels, see `deepmf.unmixing`.
    """
    check_space(folder, run.f)
    run.f.save(folder / "factors.npz")
    (folder / "config.toml").write_text(run.config, encoding="utf-8")
    summary = json.dumps(summarize(run), indent=2, ensure_ascii=False, allow_nan=False)
    (folder / "summary.json").write_text(summary + "\n", encoding="utf-8")
    _write_tables(folder, run)
    _write_measures(folder, run)
    write_samples(folder, run)
    if run.f.layout.wavelengths is not None:
        write_library(folder, run.f, run.names)
    if run.truth:
        arrays: dict[str, Any] = {}
        for layer, known in run.truth.items():
            arrays |= {f"W{layer}": known.W, f"names{layer}": np.array(known.names)}
            arrays |= {} if known.A is None else {f"A{layer}": known.A}
        np.savez_compressed(folder / _TRUTH, **arrays)


def check_space(folder: Path, f: Factorization) -> None:
    """Refuse a disk too full for factors and codes: some libraries crash when it fills up."""
    codes = sum(f.ranks) * f.H[0].shape[1] * f.H[0].itemsize
    needed, free = codes + sum(M.nbytes for M in (*f.W, *f.H)), shutil.disk_usage(folder).free
    if free < needed:
        raise OSError(
            f"The results need up to {needed / 1e6:.3g} MB, but only {free / 1e6:.3g} MB are free "
            f"on the disk; nothing was written."
        )


def check_run(folder: Path) -> None:
    """Refuse a folder that is not there or holds no run."""
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {str(folder)!r}.")
    if not (folder / "factors.npz").is_file():
        raise FileNotFoundError(
            f"{str(folder)!r} is not a run of deepmf: it has no factors.npz. "
            f"Make one with deepmf fit DATA -o {folder}."
        )


def load_run(folder: Path) -> Run:
    """Read a run that `save_run` wrote."""
    check_run(folder)
    f = Factorization.load(folder / "factors.npz")
    try:
        summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        config = (folder / "config.toml").read_text(encoding="utf-8")
        return Run(
            name=str(summary["name"]),
            f=f,
            config=config,
            facts={str(k): str(v) for k, v in summary["facts"].items()},
            truth=_load_truth(folder / _TRUTH, f),
            residual=_load_residual(folder / _RESIDUAL, f),
            notes=[str(note) for note in summary["notes"]],
            measured=[_measured(layer) for layer in summary.get("layers", [])],
        )
    except UNREADABLE as error:
        raise ValueError(
            f"{str(folder)!r} is not a whole run of deepmf ({type(error).__name__}: {error})."
        ) from None


def summarize(run: Run) -> dict[str, Any]:
    """The numbers of a run as plain data; None for NaN, after a fit that diverged."""
    f, last = run.f, run.f.history
    layers = []
    for layer in range(1, f.depth + 1):
        score = run.scores.get(layer)
        layers.append(
            {
                "rank": f.ranks[layer - 1],
                "components": run.names[layer - 1],
                "data_error": _finite(last.data_errors[-1, layer - 1]),
                "layer_error": _finite(last.layer_errors[-1, layer - 1]),
                "explained": _finite(f.explained(layer)),
                **_of_divergence(f, layer),
                "weight": _finite(f.weights[layer - 1]),
                **({} if score is None else {"mrsa": score.mean}),
                "measures": run.measures[layer - 1],
            }
        )
    return {
        "name": run.name,
        "model": f.problem.loss.name,
        "sweeps": f.n_iter,
        "stop_reason": f.stop_reason,
        "starts": f.starts,
        "objective": _finite(last.objective[-1]),
        "layers": layers,
        "notes": list(run.notes),
        "facts": dict(run.facts),
    }


def _of_divergence(f: Factorization, layer: int) -> dict[str, Any]:
    """The distance of a layer and its deviance, in a fit that has others than squared errors."""
    if not f.problem.fits:
        return {}
    deviance = f.data_sizes[layer - 1] * f.history.data_errors[-1, layer - 1]
    return {"beta_loss": beta_of(f.problem.fit(layer - 1)), "deviance": _finite(deviance)}


def _measured(layer: Mapping[str, Any]) -> dict[str, float]:
    """The measures of a layer in a summary that do not follow from the truth."""
    given = layer.get("measures", {})
    return {str(name): float(v) for name, v in given.items() if name not in OF_TRUTH}


def _finite(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def _write_tables(folder: Path, run: Run) -> None:
    f, layout, h = run.f, run.f.layout, run.f.history
    layers = range(1, f.depth + 1)
    head = ["sweep", "objective", "seconds"]
    column = "{}_deviance_left_{}" if f.problem.fits else "squared_{}_error_{}"
    head += [column.format(kind, layer) for kind in ("data", "layer") for layer in layers]
    values: Any = np.column_stack([h.objective, h.time, h.data_errors, h.layer_errors]).tolist()
    if f.problem.fits:  # not all deviances are measured after every sweep
        values = [["" if v != v else v for v in row] for row in values]
    write_csv(folder / "history.csv", head, ([k, *row] for k, row in enumerate(values)))

    labels: dict[str, Sequence[Any]] = {}
    if layout.bands is not None:
        labels["band"] = layout.bands.tolist()
    if layout.wavelengths is not None:
        labels["wavelength_nm"] = layout.wavelengths.tolist()
    if layout.features is not None:
        labels["feature"] = layout.features.tolist()
    labels = labels or {"feature": (layout.feature_numbers(len(f.W[0])) + 1).tolist()}
    for layer in layers:
        names, view = run.names[layer - 1], f.view(layer)
        W, unit = view.components, "" if view.unmixed is None else " (data units)"
        rows = ([*label, *values] for *label, values in zip(*labels.values(), W.tolist()))
        head = [*labels, *(f"{name}{unit}" for name in names)]
        write_csv(folder / f"components-layer-{layer}.csv", head, rows)
        if layer > 1:
            shares = zip(names, f.links(layer).tolist())
            table = folder / f"links-layer-{layer}.csv"
            upper = run.names[layer - 2]
            write_csv(table, ["share of, in", *upper], ([name, *row] for name, row in shares))


def _write_measures(folder: Path, run: Run) -> None:
    """A line of all measures for each layer, and one for each true component."""
    names = list(dict.fromkeys(name for measures in run.measures for name in measures))
    if names:
        rows = [[found.get(name, "") for name in names] for found in run.measures]
        sizes = enumerate(run.f.ranks, start=1)
        lines = ([layer, rank, *row] for (layer, rank), row in zip(sizes, rows))
        write_csv(folder / "measures.csv", ["layer", "components", *names], lines)
    for layer, score in run.scores.items():
        columns: list[Sequence[Any]] = [
            run.truth[layer].names,
            [run.names[layer - 1][k] for k in score.order],
            score.distances.tolist(),
            run.angles[layer].tolist(),
        ]
        if layer in run.abundances:
            columns.append(run.abundances[layer].components.tolist())
        head = ["truth", "component", *OF_TRUTH][: len(columns)]
        write_csv(folder / f"truth-layer-{layer}.csv", head, zip(*columns))


def write_samples(folder: Path, run: Run) -> None:
    """Codes and residuals of the samples, in the kind of the file that they came from."""
    f, layout = run.f, run.f.layout
    kind = next((kind for kind in FORMATS if kind.name == layout.source.format), Npy())
    kind.write(folder, f, run.names)
    if run.residual is None:
        return
    scene = layout.kind == "scene"
    np.save(folder / _RESIDUAL, layout.image(run.residual) if scene else run.residual)
    if scene:
        kind.write_map(folder, "residual", run.residual, layout)


def _load_truth(path: Path, f: Factorization) -> dict[int, Truth]:
    if not path.is_file():
        return {}
    arrays = load_npz(path)
    layers = sorted(int(name[1:]) for name in arrays if name.startswith("W"))
    found = {
        k: Truth(arrays[f"W{k}"], arrays[f"names{k}"].tolist(), A=arrays.get(f"A{k}"))
        for k in layers
    }
    for layer, (W, names, _, A) in found.items():
        shapes = (len(f.W[0]), len(names)), (len(names), f.H[0].shape[1])
        fits = [
            M.shape == shape and bool(np.isfinite(M).all())
            for M, shape in zip((W, A), shapes)
            if M is not None
        ]
        if not all(fits) or (A is not None and (A < 0).any()):
            raise ValueError(f"the truth of layer {layer} does not fit")
    return found


def _load_residual(path: Path, f: Factorization) -> NDArray[np.float64] | None:
    if not path.is_file():
        return None
    residual: NDArray[np.float64] = load_npy(path)
    if f.layout.kind == "scene" and residual.shape == f.layout.image_shape:
        residual = f.layout.values(residual)
    if residual.shape != f.H[0].shape[1:] or residual.dtype.kind != "f":
        raise ValueError(f"{path.name} has an array {residual.shape} of {residual.dtype}")
    return residual
