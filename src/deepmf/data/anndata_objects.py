"""AnnData objects: obs are samples, var are features."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from deepmf._utils.safe_archives import UnreadableError
from deepmf.data.assemble import from_matrix, names_array
from deepmf.data.dataset import Dataset
from deepmf.data.layout import Layout
from deepmf.data.provenance import Source
from deepmf.data.reading import Reading

if TYPE_CHECKING:
    from anndata import AnnData

FORMAT = "AnnData"
_USUAL = Reading()


def from_anndata(adata: AnnData, reading: Reading = _USUAL) -> Dataset:
    """X, or the layer that ``reading.variable`` names, transposed: var are rows, obs columns."""
    own = {name: layer for name, layer in adata.layers.items() if name}  # None is X, since 0.13
    layers = {"X": adata.X, **own}
    asked = reading.variable or "X"
    if layers.get(asked) is None:
        there = ", ".join(name for name, layer in layers.items() if layer is not None) or "none"
        raise UnreadableError(f"The AnnData object has no matrix {asked!r}; it has {there}.")
    whole = adata.to_memory() if adata.isbacked else adata
    A = whole.X if asked == "X" else whole.layers[asked]
    return from_matrix_of(Path(FORMAT), A, adata, reading)


def from_matrix_of(path: Path, A: Any, adata: AnnData, reading: Reading) -> Dataset:
    """A matrix of obs x var with the names of an AnnData object; ``path`` is for messages."""
    if reading.rows == "features":
        raise UnreadableError(
            f"{path}: obs are samples and var are features in AnnData; transpose it (adata.T)."
        )
    layout = Layout(
        features=names_array(adata.var_names),
        samples=names_array(adata.obs_names),
        source=Source(FORMAT),
    )
    A = A if sparse.issparse(A) else np.asarray(A)
    return from_matrix(path, A, reading, rows="samples", layout=layout)
