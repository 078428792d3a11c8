"""The paper's synthetic data: three dimensions, two layers, everything known."""

from __future__ import annotations

import numpy as np

from deepmf._utils.rng import RandomState, generator
from deepmf.data.dataset import Dataset
from deepmf.datasets.noise import gaussian_noise

__all__ = ["synthetic"]

W2 = np.array([[0.5, 0.0, 0.5], [0.0, 0.5, 0.5], [0.5, 0.5, 0.0]])
H2 = np.array(
    [
        [0.2, 0.0, 0.8, 0.0, 0.8, 0.2],
        [0.8, 0.8, 0.2, 0.2, 0.0, 0.0],
        [0.0, 0.2, 0.0, 0.8, 0.2, 0.8],
    ]
)
W1 = np.array(
    [
        [0.1, 0.1, 0.4, 0.4, 0.5, 0.5],
        [0.4, 0.5, 0.1, 0.5, 0.1, 0.4],
        [0.5, 0.4, 0.5, 0.1, 0.4, 0.1],
    ]
)


def synthetic(
    n_points: int = 1000,
    noise: float = 0.01,
    concentration: float = 0.05,
    random_state: RandomState = None,
    *,
    clip: bool = False,
) -> Dataset:
    """``X = W1* H1* + N``, ``W1* = W2* H2*``, ``N = noise ||W1* H1*||_F Y / ||Y||_F``.

    W1* (3 x 6), W2* (3 x 3) and H2* (3 x 6) are the paper's constants; the columns of H1* are drawn
    from the Dirichlet distribution with all six parameters equal to ``concentration``, and Y is
    standard normal. A small concentration puts most points near the six vertices.

    Parameters
    ----------
    n_points : int, default 1000
        Number of data points (columns of X).
    noise : float, default 0.01
        Epsilon in the paper, the exact ratio ``||N||_F / ||X*||_F``.
    concentration : float, default 0.05
        Alpha of the Dirichlet distribution.
    random_state : None, int, Generator or RandomState
        For one seed, points are the same at every noise level.
    clip : bool, default False
        Set the negative entries that noise made in X to zero. The paper does not.

    Returns
    -------
    Dataset
        ``X`` 3 x n_points, ``W = [W1*, W2*]``, ``H = [H1*, H2*]``.

    Notes
    -----
    Section 4.1 ("Synthetic data") of the paper.
    """
    if n_points < 1:
        raise ValueError(f"n_points={n_points!r} is not a number of points; give at least 1.")
    if not 0 < concentration < np.inf:
        raise ValueError(
            f"concentration={concentration!r} is not a Dirichlet parameter; give a positive number."
        )
    rng = generator(random_state)
    H1 = rng.dirichlet(np.full(W1.shape[1], concentration), size=n_points).T
    X = W1 @ H1
    X = X + gaussian_noise(X, noise, rng)
    return Dataset(
        name="synthetic",
        X=np.maximum(X, 0) if clip else X,
        W=[W1.copy(), W2.copy()],
        H=[np.ascontiguousarray(H1), H2.copy()],
        names=[[f"vertex {i + 1}" for i in range(6)], [f"corner {i + 1}" for i in range(3)]],
    )
