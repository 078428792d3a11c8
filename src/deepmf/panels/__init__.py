"""The data side: the only code that knows what X is."""

from typing import Any

from scipy.sparse import issparse

from deepmf.foreign import Foreign
from deepmf.observed import Observed
from deepmf.panels.base import Coding, Panels
from deepmf.panels.dense import DensePanels
from deepmf.panels.observed import ObservedPanels
from deepmf.panels.sparse import SparsePanels
from deepmf.panels.stored import StoredPanels
from deepmf.state import DataProducts
from deepmf.stored import Stored

__all__ = [
    "Coding",
    "DataProducts",
    "DensePanels",
    "Foreign",
    "ObservedPanels",
    "Panels",
    "SparsePanels",
    "Stored",
    "StoredPanels",
    "as_panels",
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
