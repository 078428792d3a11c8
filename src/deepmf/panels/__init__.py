"""The data side: the only code that knows what X is."""

from deepmf.panels.base import Coding, Panels
from deepmf.panels.dense import DensePanels

__all__ = ["Coding", "DensePanels", "Panels"]
