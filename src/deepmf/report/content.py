"""Runs as the plain data of the page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepmf.core.quadratic import Array
from deepmf.data.layout import Layout
from deepmf.factorization import Factorization
from deepmf.fitting.history import DIVERGED
from deepmf.hierarchy.order import layer_orders
from deepmf.report.axis import Axis
from deepmf.report.compare import Ranking, default_ranking, measures_table, side_by_side, table
from deepmf.report.numbers import block_mean, composite, quantized, root, rounded, thinned
from deepmf.report.texts import digits, duration, model_name, short, summary
from deepmf.runs.run import Run

_SWEEPS = 500
_TOP_FEATURES = 15
_TOP_SAMPLES = 5
_FAINT = 0.01
"""Fraction of a component's largest feature below which a bar cannot be seen."""
_VISIBLE = (650, 550, 460)
"""Red, green and blue, in nm."""
_FAR = 40
"""Distance in nm from a color beyond which a band cannot represent it."""


_COLORS = [
    [rf"(?i)(?<![a-z0-9]){word}(?![a-z0-9])" for word in words]
    for words in (("red(?![ _-]*edge)", "green", "blue"), ("B04", "B03", "B02"))
]
"""Band names of red, green and blue: words, or as in Sentinel-2."""


class Detail(NamedTuple):
    """Level of detail of the arrays in the page."""

    block: int = 1
    """Pixels of a map, per side, that become one."""
    points: int = 1200
    """Points of a curve."""


FULL = Detail()


def report_content(
    runs: Sequence[Run],
    labels: Sequence[str],
    ranking: Ranking | None = None,
    detail: Detail = FULL,
) -> dict[str, Any]:
    """Everything the page shows, as lists, dicts, strings and numbers.

    Parameters
    ----------
    runs : sequence of Run
        Fits to the same data.
    labels : sequence of str
        One per run.
    ranking : Ranking, optional
        Without it, several runs are listed with their errors and scores.
    detail : Detail
        Resolution of maps and curves.
    """
    layout = runs[0].f.layout
    axis = Axis.of(layout, len(runs[0].f.W[0]), detail.points)
    deviance = any(run.f.problem.fits for run in runs)
    content: dict[str, Any] = {
        "deviance": deviance,
        "kind": layout.kind,
        "show": "bars" if axis is None else "curves",
        "axis": None if axis is None else axis.content(),
        "picture": _picture(layout, detail.block),
        "runs": [
            {
                **_run(run, label, axis, detail),
                "history": _history(run.f, deviance),
            }
            for run, label in zip(runs, labels)
        ],
        "ranking": None,
        "side": [],
    }
    if len(runs) > 1:
        content["ranking"] = table(ranking or default_ranking(runs, labels))
        content["side"] = side_by_side(runs)
    return content


# --- what the rows are --------------------------------------------------------------------------


def _picture(layout: Layout, block: int) -> dict[str, Any] | None:
    """Shape of the maps as stored, and the coordinates of their rows and columns."""
    if layout.image_shape is None:
        return None
    rows, cols = layout.image_shape
    return {
        "rows": -(-rows // block),
        "cols": -(-cols // block),
        "block": block,
        "full": [rows, cols],
        "y": _coordinates(layout.y, block),
        "x": _coordinates(layout.x, block),
    }


def _coordinates(values: NDArray | None, block: int) -> list[Any] | None:
    if values is None:
        return None
    kept = np.asarray(values)[::block]
    return rounded(kept, 10) if kept.dtype.kind in "fiu" else [short(v) for v in kept]


def _feature_name(layout: Layout, i: int) -> str:
    if layout.features is not None:
        return short(layout.features[i])
    return f"row {layout.feature_numbers(i + 1)[i] + 1}"


# --- one run ------------------------------------------------------------------------------------


def _run(run: Run, label: str, axis: Axis | None, detail: Detail) -> dict[str, Any]:
    f = run.f
    orders = layer_orders(f.ranks, [f.links(layer) for layer in range(2, f.depth + 1)])
    layers = [_layer(run, k, orders[k - 1], axis, detail) for k in range(1, f.depth + 1)]
    return {
        "label": short(label),
        "model": model_name(f),
        "ranks": f.ranks,
        "deviance": bool(f.problem.fits),
        "summary": summary(f),
        "tiles": _tiles(run, layers),
        "notes": [str(note) for note in run.notes],
        "config": run.config,
        "facts": [[short(name), str(value)] for name, value in run.facts.items()],
        "layers": layers,
        "residual": _residual(run, detail.block),
        "color": _color(f, detail.block),
        "measures": measures_table(run),
    }


def _layer(
    run: Run, layer: int, order: NDArray[np.intp], axis: Axis | None, detail: Detail
) -> dict[str, Any]:
    f, layout, view = run.f, run.f.layout, run.f.view(layer)
    W, codes = view.components, view.amounts.values
    content: dict[str, Any] = {
        "names": [short(name) for name in run.names[layer - 1]],
        "fractions": view.amounts.kind == "fractions",
        "order": order.tolist(),
        "links": [] if layer == 1 else np.nan_to_num(np.round(f.links(layer), 4)).tolist(),
        "truth": _truth(run, layer, axis),
    }
    if layout.kind != "table":
        pictures = codes if layout.kind == "scene" else W.T
        content["maps"] = [_map(layout, values, detail.block) for values in pictures]
    if axis is not None:
        content["curves"] = [axis.curve(w) for w in W.T]
        content["means"] = rounded(np.abs(W).mean(axis=0))
    elif layout.kind == "table":
        content["top"] = [_top_features(layout, w) for w in W.T]
    if layout.samples is not None:
        content["samples"] = [_top_samples(layout, h) for h in codes]
    return content


def _map(layout: Layout, values: Array, block: int) -> dict[str, Any]:
    return quantized(block_mean(layout.image(values), block))


def _residual(run: Run, block: int) -> dict[str, Any] | None:
    """The map of relative residuals, where samples are pixels."""
    if run.residual is None or run.f.layout.kind != "scene":
        return None
    return _map(run.f.layout, run.residual, block)


def _color(f: Factorization, block: int) -> dict[str, str] | None:
    """The scene as W_1 H_1 shows it to the eye, where it has the bands for that."""
    visible = _visible(f.layout)
    if visible is None:
        return None
    bands, words = visible
    channels = f.basis(1)[bands] @ f.codes(1)
    if channels.min() < -0.05 * channels.max():  # centered data have no color
        return None
    picture = composite(*(block_mean(f.layout.image(c), block) for c in channels))
    return {"codes": picture, "bands": words}


def _visible(layout: Layout) -> tuple[list[int], str] | None:
    """The bands nearest to red, green and blue, by wavelength or by name; and what they are."""
    if layout.kind != "scene":
        return None
    waves, names = layout.wavelengths, layout.features
    if waves is not None:
        near = [int(np.argmin(np.abs(waves - nm))) for nm in _VISIBLE]
        if all(abs(waves[i] - nm) <= _FAR for i, nm in zip(near, _VISIBLE)):
            return near, f"{', '.join(f'{waves[i]:.0f}' for i in near)} nm"
    if names is None:
        return None
    for words in _COLORS:
        found = [[i for i, name in enumerate(names) if re.search(w, str(name))] for w in words]
        if all(found):
            bands = [places[0] for places in found]
            return bands, ", ".join(short(names[i]) for i in bands)
    return None


def _top_features(layout: Layout, w: Array) -> list[list[Any]]:
    """Names and values of the largest entries in size, largest first; none that no bar shows."""
    largest = np.argsort(-np.abs(w), kind="stable")[:_TOP_FEATURES]
    largest = largest[~(np.abs(w[largest]) < _FAINT * np.abs(w[largest[0]]))]
    return [[_feature_name(layout, i), v] for i, v in zip(largest.tolist(), rounded(w[largest]))]


def _top_samples(layout: Layout, h: Array) -> list[list[Any]]:
    assert layout.samples is not None
    largest = np.argsort(-np.abs(h), kind="stable")[:_TOP_SAMPLES]
    return [[short(layout.samples[i]), v] for i, v in zip(largest.tolist(), rounded(h[largest]))]


def _truth(run: Run, layer: int, axis: Axis | None) -> dict[str, Any] | None:
    """Pairs of true components and the fit's, with the true curves at unit mean."""
    score = run.scores.get(layer)
    if score is None:
        return None
    known = run.truth[layer]
    means = np.abs(known.W).mean(axis=0)
    scaled = known.W / np.where(means > 0, means, 1)
    return {
        "names": [short(name) for name in known.names],
        "order": score.order.tolist(),
        "distances": rounded(score.distances),
        "angles": rounded(run.angles[layer]),
        "rmse": rounded(run.abundances[layer].components) if layer in run.abundances else None,
        "mean": rounded([score.mean])[0],
        "curves": [] if axis is None else [axis.curve(w) for w in scaled.T],
    }


def _history(f: Factorization, deviance: bool) -> dict[str, Any]:
    """Objective and relative errors ``||.|| / ||.||``, or shares left, of at most 500 sweeps.

    Errors of fits that diverged are missing: they would flatten all others. So are shares of
    deviances that were not measured.
    """

    def errors(shares: Array) -> list[Any]:
        values = root(shares.T)
        return rounded(np.where(values < DIVERGED, values**2 if deviance else values, np.nan))

    h = f.history
    kept = thinned(len(h), _SWEEPS)
    return {
        "sweep": kept.tolist(),
        "time": rounded(h.time[kept]),
        "objective": rounded(h.objective[kept]),
        "data": errors(h.data_errors[kept]),
        "layer": errors(h.layer_errors[kept]),
    }


def _tiles(run: Run, layers: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Key numbers: what it is, the number, its unit.

    Of tables, what layers explain: counts and texts are mostly chance, and relative errors of 90 %
    are good ones.
    """
    f = run.f
    explained = bool(f.problem.fits) or f.layout.kind == "table"
    what = (
        "deviance explained" if f.problem.fits else "explained" if explained else "relative error"
    )
    tiles = []
    for k, error in enumerate(root(f.history.data_errors[-1]).tolist(), start=1):
        number = digits(100 * (1 - error**2 if explained else error))
        value, unit = (number, "%") if error < DIVERGED else ("diverged", "")
        tiles.append({"what": f"{what}, layer {k}", "value": value, "unit": unit})
    for k, layer in enumerate(layers, start=1):
        if layer["truth"] is not None:
            mean = digits(layer["truth"]["mean"])
            tiles.append({"what": f"mean MRSA, layer {k}", "value": mean, "unit": ""})
    tiles.append({"what": "sweeps", "value": str(run.f.n_iter), "unit": ""})
    value, unit = duration(float(run.f.history.time[-1]))
    tiles.append({"what": "duration", "value": value, "unit": unit})
    return tiles
