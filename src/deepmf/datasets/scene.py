"""A simulated hyperspectral scene whose truth is known at every layer."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from deepmf._utils.rng import RandomState, generator
from deepmf.data.dataset import Dataset
from deepmf.data.layout import Layout
from deepmf.datasets.landscape import abundances, brightness
from deepmf.datasets.noise import gaussian_noise
from deepmf.datasets.spectra import MATERIALS, material_spectra

__all__ = ["simulated_scene"]

Array = NDArray[np.float64]
Groups = dict[str, tuple[str, ...]]

#: Each layer's components and what they are made of, one layer below.
HIERARCHY: tuple[Groups, ...] = (
    {
        "forest": ("conifer", "broadleaf"),
        "grass": ("grass",),
        "soil": ("soil",),
        "built": ("asphalt", "roof"),
    },
    {"vegetation": ("forest", "grass"), "mineral": ("soil", "built")},
)


def simulated_scene(
    rows: int = 64,
    cols: int = 64,
    bands: int = 120,
    noise: float = 0.01,
    random_state: RandomState = 0,
) -> Dataset:
    """``X = max(W1 H1 + N, 0)``, ``H1 = A diag(b)``: a village of six materials nested 6 > 4 > 2.

    W1 holds the spectra, A the area fractions (columns sum to 1), b the brightness of each pixel,
    ``N = noise ||W1 H1||_F Y / ||Y||_F`` Gaussian noise.

    ======  ================================================================
    layer   components
    ======  ================================================================
    1       conifer, broadleaf, grass, soil, asphalt, roof
    2       forest {conifer, broadleaf}, grass, soil, built {asphalt, roof}
    3       vegetation {forest, grass}, mineral {soil, built}
    ======  ================================================================

    ``W_l = W_{l+1} H_{l+1}`` cannot hold exactly: the whole scene would then have rank 2. The truth
    of a layer above the first is what a perfect grouping gives. With ``a_j`` the total abundance of
    component j of layer l (``a = A e`` at layer 1, sums over groups above),

        ``W_{l+1}(:, g) = sum_{j in g} a_j W_l(:, j) / sum_{j in g} a_j``   (mean spectrum)

        ``H_{l+1}(g, j) = <W_{l+1}(:, g), W_l(:, j)> / ||W_{l+1}(:, g)||^2``   for j in g, else 0

    so that each component is its group's spectrum at the brightness that fits best.

    Parameters
    ----------
    rows, cols : int, default 64
        Pixels, at least 32 each, so that every material has pure pixels.
    bands : int, default 120
        Equally spaced from 400 to 2500 nm, at least 8.
    noise : float, default 0.01
        The ratio ``||N||_F / ||W1 H1||_F`` (0.01 is 40 dB).
    random_state : None, int, Generator or RandomState, default 0
        Draws the map, the brightness and the noise.

    Returns
    -------
    Dataset
        ``W = [W1, W2, W3]``, ``H = [H1, H2, H3]``, ``order="C"``, ``wavelengths`` in nm. ``A`` has
        the fractions of each layer: A, and its sums over the groups.
    """
    if min(rows, cols) < 32:
        raise ValueError(
            f"a scene of {rows} x {cols} pixels is too small for pure pixels of every material; "
            "give rows and cols of at least 32."
        )
    if bands < 8:
        raise ValueError(f"bands={bands!r} cannot tell six materials apart; give at least 8.")
    rng = generator(random_state)
    wavelengths = np.linspace(400, 2500, bands)
    fractions = abundances(rows, cols, rng)
    A = fractions.reshape(len(MATERIALS), -1)
    W1 = material_spectra(wavelengths)
    H1 = A * brightness(fractions, rng).ravel()
    clean = W1 @ H1
    W, H, names = _group(W1, H1, A.sum(axis=1))
    sums = accumulate(H[1:], lambda lower, Hl: (Hl > 0) @ lower, initial=A)
    return Dataset(
        name="simulated scene",
        X=np.maximum(clean + gaussian_noise(clean, noise, rng), 0),
        layout=Layout(wavelengths=wavelengths, image_shape=(rows, cols)),
        W=W,
        H=H,
        names=names,
        A=list(sums),
    )


def _group(
    W1: Array, H1: Array, weights: Array, hierarchy: Sequence[Groups] = HIERARCHY
) -> tuple[list[Array], list[Array], list[list[str]]]:
    """The truth of the layers above the first, from the first (formulas in simulated_scene)."""
    W, H, names = [W1], [H1], [list(MATERIALS)]
    for groups in hierarchy:
        member = np.array([[j in parts for j in names[-1]] for parts in groups.values()], float)
        share = member * weights
        upper = W[-1] @ (share / share.sum(axis=1, keepdims=True)).T
        scale = (upper.T @ W[-1]) / (upper**2).sum(axis=0)[:, None]
        W.append(upper)
        H.append(member * scale)
        names.append(list(groups))
        weights = share.sum(axis=1)
    return W, H, names
