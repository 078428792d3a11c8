"""The data side: the only code that knows what X is."""

from typing import Any

from scipy.sparse import issparse

from deepmf.core.state import DataSurrogates
from deepmf.data.matrix import Foreign
from deepmf.data.on_disk import Stored
from deepmf.data.panels.base import Coding, Panels, squared_answer
from deepmf.data.panels.codes import Codes
from deepmf.data.panels.dense import DensePanels
from deepmf.data.panels.on_disk import StoredPanels
from deepmf.data.panels.sparse import SparsePanels
from deepmf.data.panels.weighted import ObservedPanels
from deepmf.data.weighted import Observed

__all__ = [
    "Codes",
    "Coding",
    "DataSurrogates",
    "DensePanels",
    "Foreign",
    "ObservedPanels",
    "Panels",
    "SparsePanels",
    "Stored",
    "StoredPanels",
    "as_panels",
    "squared_answer",
]


def as_panels(X: Any, width: int | None = None) -> Panels:
    """The panels that fit X's kind."""
    if isinstance(X, Foreign):
        panels: Panels = X.panels(width)
        return panels
    if isinstance(X, Observed):
        return ObservedPanels(X, width)
    if isinstance(X, Stored):
        return StoredPanels(X, width)
    return (SparsePanels if issparse(X) else DensePanels)(X, width)
