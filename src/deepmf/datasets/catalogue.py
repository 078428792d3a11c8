"""All data sets by name, for the command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from deepmf.data.dataset import Dataset
from deepmf.datasets.published import (
    load_cbcl,
    load_jasper,
    load_moffett,
    load_samson,
    load_urban,
)
from deepmf.datasets.scene import simulated_scene
from deepmf.datasets.synthetic import synthetic


class Entry(NamedTuple):
    """A data set: how to get it, what it is, and ranks that suit it."""

    load: Callable[[], Dataset]
    about: str
    ranks: tuple[int, ...]
    built_in: bool = False


CATALOGUE: dict[str, Entry] = {
    "simulated": Entry(
        simulated_scene,
        "simulated village, 120 bands, 64 x 64 pixels, truth at three layers",
        (6, 4, 2),
        True,
    ),
    "synthetic": Entry(
        lambda: synthetic(noise=0.01, clip=True, random_state=0),
        "the paper's points in three dimensions, truth at two layers",
        (6, 3),
        True,
    ),
    "digits": Entry(
        lambda: _digits(), "scikit-learn's 1797 digits of 8 x 8 pixels", (16, 8, 4), True
    ),
    "urban": Entry(load_urban, "HYDICE Urban, 162 bands, truth of 6 and 4 materials", (6, 4, 2)),
    "samson": Entry(load_samson, "Samson, 156 bands, 95 x 95 pixels, truth of 3 materials", (3, 2)),
    "jasper": Entry(
        load_jasper, "Jasper Ridge, 198 bands, 100 x 100 pixels, truth of 4 materials", (4, 2)
    ),
    "moffett": Entry(load_moffett, "Moffett Field, 159 bands, 50 x 50 pixels", (3, 2)),
    "cbcl": Entry(load_cbcl, "CBCL, 2429 faces of 19 x 19 pixels", (49, 25, 9)),
}


def load(name: str) -> Dataset:
    """The data set of that name; published ones are looked for under $DEEPMF_DATA."""
    if name not in CATALOGUE:
        raise ValueError(f"Unknown data set {name!r}: expected one of {', '.join(CATALOGUE)}.")
    return CATALOGUE[name].load()


def _digits() -> Dataset:
    from sklearn.datasets import load_digits

    from deepmf.data.layout import Layout

    X, classes = load_digits(return_X_y=True)
    layout = Layout(image_shape=(8, 8), pixels="rows")
    return Dataset("digits", X.T, layout, labels=classes.astype(str))
