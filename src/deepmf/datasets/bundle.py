"""What every data set is: the data, the truth of each layer where known, and how to draw it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Dataset"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """``X ~ W[0] H[0], W[0] ~ W[1] H[1], ...`` with what is known of the truth.

    Columns of X are data points (pixels, faces), as in the paper.

    Attributes
    ----------
    name : str
    X : ndarray, m x n
    W : list of ndarray
        True bases, ``W[l]`` is m x r_l. As many layers as are known, possibly none.
    H : list of ndarray
        True factors: ``H[0]`` r_1 x n (the codes), ``H[1]`` r_2 x r_1, ... Never more than W.
    names : list of list of str
        Names of the components of each layer of W.
    image_shape : (rows, cols) or None
        The picture's shape, where X holds pictures.
    order : {"C", "F"}
        Whether consecutive pixels run along a row ("C") or down a column ("F", as in MATLAB).
    pixels : {"columns", "rows"}
        Whether the pixels of a picture are the columns of X (a scene: each row of X or H[0] is a
        picture) or its rows (faces: each column of X or W is a picture).
    wavelengths : ndarray of shape (m,) or None
        Band centres in nanometres.
    """

    name: str
    X: Array
    W: list[Array] = field(default_factory=list)
    H: list[Array] = field(default_factory=list)
    names: list[list[str]] = field(default_factory=list)
    image_shape: tuple[int, int] | None = None
    order: Literal["C", "F"] = "C"
    pixels: Literal["columns", "rows"] = "columns"
    wavelengths: Array | None = None

    def __post_init__(self) -> None:
        """Refuse parts that do not fit together."""
        m, n = self.X.shape
        if len(self.names) != len(self.W) or len(self.H) > len(self.W):
            raise ValueError(
                f"{self.name}: {len(self.W)} bases come with {len(self.names)} lists of names and "
                f"{len(self.H)} factors, but each basis needs its names and each factor its basis."
            )
        for layer, (Wl, names) in enumerate(zip(self.W, self.names)):
            if Wl.shape != (m, len(names)):
                raise ValueError(
                    f"{self.name}: W[{layer}] has shape {Wl.shape}, but with the rows of X and one "
                    f"column per name it must be {(m, len(names))}."
                )
        lower = [n, *(len(names) for names in self.names)]
        for layer, Hl in enumerate(self.H):
            if Hl.shape != (lower[layer + 1], lower[layer]):
                raise ValueError(
                    f"{self.name}: H[{layer}] has shape {Hl.shape}, but to join its layers it must "
                    f"be {(lower[layer + 1], lower[layer])}."
                )
        self._check_picture(m, n)

    def _check_picture(self, m: int, n: int) -> None:
        n_pixels = n if self.pixels == "columns" else m
        if self.image_shape is not None and np.prod(self.image_shape) != n_pixels:
            raise ValueError(
                f"{self.name}: image_shape {self.image_shape} does not hold the {n_pixels} "
                f"{self.pixels} of X."
            )
        if self.wavelengths is not None and self.wavelengths.shape != (m,):
            raise ValueError(
                f"{self.name}: wavelengths has shape {self.wavelengths.shape}, but X has {m} bands."
            )

    def __repr__(self) -> str:
        truth = " > ".join(str(len(names)) for names in self.names) or "none"
        return f"Dataset({self.name!r}, X {self.X.shape[0]} x {self.X.shape[1]}, truth: {truth})"

    def image(self, values: ArrayLike) -> Array:
        """One value per pixel as a picture in display orientation, row 0 at the top.

        Parameters
        ----------
        values : array_like of rows * cols values
            A row of X or H[0] for a scene, a column of X or W for faces (see ``pixels``).

        Returns
        -------
        ndarray of shape image_shape
        """
        if self.image_shape is None:
            raise ValueError(f"{self.name} holds no pictures: it has no image_shape.")
        flat = np.asarray(values, dtype=np.float64)
        rows, cols = self.image_shape
        if flat.shape != (rows * cols,):
            raise ValueError(
                f"values has shape {flat.shape}, but a picture of {self.name} needs "
                f"{rows} x {cols} = {rows * cols} values, one for each of the {self.pixels} of X."
            )
        return flat.reshape(rows, cols, order=self.order)
