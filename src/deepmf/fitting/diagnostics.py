"""What the numbers of a finished fit suggest to try."""

from __future__ import annotations

from deepmf.factorization import Factorization

_LOST = 0.5
"""Share of the data's squares that a layer should not leave where the one before leaves less."""

_COPY = 0.05
"""Layer 1 is a copy of layer 2 if it explains so little more and leaves so little less."""


def advice(f: Factorization) -> str | None:
    """A sentence where a layer went wrong though the fit converged; else ``None``."""
    if f.stop_reason != "tol":
        return None
    left = f.history.data_errors[-1]
    for k in range(1, f.depth):
        if left[k] > max(_LOST, 4 * left[k - 1]):
            return (
                f"Layer {k + 1} leaves {left[k]:.3g} of the data's squares unexplained, layer {k} "
                f"only {left[k - 1]:.3g}: it fits W_{k}, but what is small in W_{k} is not small "
                f"in the data. Try model='data-centric', which fits the data by every layer."
            )
    deep = f.depth > 1 and f.ranks[0] > f.ranks[1] and left[1] > 0
    if deep and f.problem.loss.name == "layer-centric":
        less_left, more_found = 1 - left[0] / left[1], (1 - left[0]) / max(1 - left[1], 1e-12) - 1
        if max(less_left, more_found) < _COPY:
            return (
                "Layer 1 fits the data hardly better than layer 2, of which it has become a copy: "
                "the deeper layer pulls too hard. Lower its weight, for example "
                "LayerCentric(lam=0.1), or try model='data-centric'."
            )
    return None
