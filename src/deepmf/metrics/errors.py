"""Relative squared errors of layers."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from deepmf.metrics.arrays import Array, blocks, ratio, real, squared_norm


def layer_errors(
    X: ArrayLike,
    W: Sequence[ArrayLike],
    H: Sequence[ArrayLike],
    reference: Sequence[float] | None = None,
) -> Array:
    """Layer-centric errors ``||W_{l-1} - W_l H_l||^2 / ||W_{l-1}^(0)||^2`` of all l; ``W_0 = X``.

    Computed from the residuals, so small errors keep their digits.

    Parameters
    ----------
    X : array_like, m x n
    W : list of array_like, m x r_l
    H : list of array_like, r_l x r_{l-1} with r_0 = n
    reference : sequence of L - 1 floats, optional
        ``||W_1^(0)||_F, ..., ||W_{L-1}^(0)||_F``, the (unsquared) norms at the start, which stay
        comparable along a run. By default those of the given W.

    Returns
    -------
    ndarray of shape (L,)
        Where a denominator is zero: 0 if the residual is zero too, else infinity.
    """
    A, Ws, Hs = _factors(X, W, H)
    targets = [A, *Ws[:-1]]
    norms2 = [squared_norm(target) for target in targets]
    if reference is not None:
        if len(reference) != len(Ws) - 1:
            raise ValueError(
                f"reference has {len(reference)} norms for {len(Ws)} layers, but it must have "
                f"{len(Ws) - 1}: one for each W except the last."
            )
        norms2[1:] = [float(norm) ** 2 for norm in reference]
    errors = [_residual2(target, Wl, Hl) for target, Wl, Hl in zip(targets, Ws, Hs)]
    return ratio(errors, norms2)


def data_errors(X: ArrayLike, W: Sequence[ArrayLike], H: Sequence[ArrayLike]) -> Array:
    """Data-centric errors ``||X - W_l H_l...H_1||^2 / ||X||^2`` of all layers l.

    Computed from the residuals, so small errors keep their digits.

    Parameters
    ----------
    X : array_like, m x n
    W : list of array_like, m x r_l
    H : list of array_like, r_l x r_{l-1} with r_0 = n

    Returns
    -------
    ndarray of shape (L,)
        Where X is zero: 0 if the residual is zero too, else infinity.
    """
    A, Ws, Hs = _factors(X, W, H)
    codes = Hs[0]
    errors = [_residual2(A, Ws[0], codes)]
    for Wl, Hl in zip(Ws[1:], Hs[1:]):
        codes = Hl @ codes
        errors.append(_residual2(A, Wl, codes))
    return ratio(errors, [squared_norm(A)] * len(errors))


def _factors(
    X: ArrayLike, W: Sequence[ArrayLike], H: Sequence[ArrayLike]
) -> tuple[Array, list[Array], list[Array]]:
    """The factors as arrays whose shapes chain, or an error that names the layer that does not."""
    if len(W) != len(H) or len(W) == 0:
        raise ValueError(
            f"W has {len(W)} factors and H has {len(H)}, but both must be lists with one matrix "
            "per layer."
        )
    A = real(X, "X")
    Ws = [real(Wl, f"W[{layer}]") for layer, Wl in enumerate(W)]
    Hs = [real(Hl, f"H[{layer}]") for layer, Hl in enumerate(H)]
    above = A
    for layer, (Wl, Hl) in enumerate(zip(Ws, Hs)):
        if (
            not above.ndim == Wl.ndim == Hl.ndim == 2
            or (Wl.shape[0], Hl.shape[1]) != above.shape
            or Wl.shape[1] != Hl.shape[0]
        ):
            name = "X" if layer == 0 else f"W[{layer - 1}]"
            raise ValueError(
                f"W[{layer}] has shape {Wl.shape} and H[{layer}] has shape {Hl.shape}, but their "
                f"product must have the shape {above.shape} of {name}."
            )
        above = Wl
    return A, Ws, Hs


def _residual2(A: Array, W: Array, H: Array) -> float:
    return sum(squared_norm(A[:, cols] - W @ H[:, cols]) for cols in blocks(A.shape))
