"""Diagnostics of a finished fit: layers that went wrong although it converged."""

from __future__ import annotations

from deepmf._utils.messages import setting
from deepmf.fitting.fit import Fit
from deepmf.fitting.problem import Problem

_LOST = 0.5
"""Relative squared error above which a layer has lost the data, if the one before has not."""

_COPY = 0.05
"""Layer 1 is a copy of layer 2 if its error and its fit are this close to those of layer 2."""


def advice(done: Fit, problem: Problem) -> str | None:
    """Describe a layer that went wrong and what to try; ``None`` if all is well."""
    if done.stop_reason != "tol":
        return None
    ranks, left = problem.ranks, done.history.data_errors[-1]
    for k in range(1, len(ranks)):
        if left[k] > max(_LOST, 4 * left[k - 1]):
            return (
                f"Layer {k + 1} leaves {left[k]:.3g} of the data's squares unexplained, layer {k} "
                f"only {left[k - 1]:.3g}: it fits W_{k}, but what is small in W_{k} is not small "
                f"in the data. Try {setting(model='data-centric')}, which fits the data by every "
                f"layer."
            )
    deep = len(ranks) > 1 and ranks[0] > ranks[1] and left[1] > 0
    if deep and problem.loss.name == "layer-centric":
        less_left, more_found = 1 - left[0] / left[1], (1 - left[0]) / max(1 - left[1], 1e-12) - 1
        if max(less_left, more_found) < _COPY:
            return (
                f"Layer 1 fits the data hardly better than layer 2, of which it has become a copy: "
                f"the deeper layer pulls too hard. Lower its weight, for example "
                f"{setting(model={'name': 'layer-centric', 'lam': 0.1})}, or try "
                f"{setting(model='data-centric')}."
            )
    return None
