"""The interface of a file format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from deepmf.data.dataset import Dataset
from deepmf.data.layout import Layout
from deepmf.data.reading import Reading
from deepmf.factorization import Factorization


class Variable(NamedTuple):
    """An array inside a file."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    dense: bool = True


class Format(ABC):
    """A kind of file: how it is read, and how codes are written in the same kind."""

    name: ClassVar[str]
    """Common name of the format, for example ``"GeoTIFF"``."""
    suffixes: ClassVar[tuple[str, ...]]
    rows: ClassVar[Literal["features", "samples"]] = "features"
    """Default meaning of the rows of a matrix."""

    @abstractmethod
    def read(self, path: Path, reading: Reading) -> Dataset:
        """The data and all of the layout that the file states; its source has the format's name."""

    @abstractmethod
    def write(self, folder: Path, f: Factorization, names: Sequence[Sequence[str]]) -> None:
        """Write each layer's codes into a new folder; ``names`` are the components' per layer."""

    def write_map(self, folder: Path, name: str, values: Any, layout: Layout) -> None:
        """Write one value per pixel of a scene as a picture; by default as a ``.npy`` file."""
        np.save(folder / f"{name}.npy", layout.image(values))

    def variables(self, path: Path) -> list[Variable]:
        """The arrays a file holds, where it may hold several."""
        return []
