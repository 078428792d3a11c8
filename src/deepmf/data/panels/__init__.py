"""The data side: the only code that knows what X is."""

from typing import Any

from deepmf.core.state import DataSurrogates
from deepmf.data.matrix import Matrix
from deepmf.data.on_disk import OnDisk
from deepmf.data.panels.base import Coding, Panels, squared_answer
from deepmf.data.panels.codes import Codes
from deepmf.data.panels.dense import DensePanels
from deepmf.data.panels.on_disk import OnDiskPanels
from deepmf.data.panels.sparse import SparsePanels
from deepmf.data.panels.weighted import WeightedPanels
from deepmf.data.validation import as_matrix

__all__ = [
    "Codes",
    "Coding",
    "DataSurrogates",
    "DensePanels",
    "Matrix",
    "OnDisk",
    "OnDiskPanels",
    "Panels",
    "SparsePanels",
    "WeightedPanels",
    "as_panels",
    "squared_answer",
]


def as_panels(X: Any, width: int | None = None) -> Panels:
    """The panels of a matrix of any kind, with ``width`` columns each if it is given."""
    panels: Panels = as_matrix(X).panels(width)
    return panels
