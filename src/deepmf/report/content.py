"""From runs to the plain data of the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepmf.factorization import Factorization
from deepmf.layout import Layout
from deepmf.metrics import match
from deepmf.quadratic import Array
from deepmf.report.numbers import (
    bins,
    block_mean,
    composite,
    extremes,
    quantised,
    rounded,
    thinned,
)
from deepmf.report.order import uncrossed_orders
from deepmf.runs.run import Run

_SWEEPS = 500
_TOP_FEATURES = 15
_TOP_SAMPLES = 5
_LONGEST_NAME = 200
_VISIBLE = (650, 550, 460)
"""Red, green and blue, in nm."""
_FAR = 40
"""nm from a colour at which a band no longer stands for it."""
_FEW_ROWS = 40
"""Up to here rows without names are bars; more are a curve."""

_STOPPED = {
    "tol": "stopped by tol",
    "max_iter": "stopped by max_iter",
    "max_time": "stopped by max_time",
    "callback": "stopped by a callback",
    "diverged": "stopped because it diverged",
}


class Ranking(NamedTuple):
    """A table of runs, best first: one row per run, whose first entry is the run's label."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str | float]]


class Detail(NamedTuple):
    """How much of the arrays the page keeps."""

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
    axis = _Axis.of(layout, len(runs[0].f.W[0]), detail.points)
    content: dict[str, Any] = {
        "kind": layout.kind,
        "show": "bars" if axis is None else "curves",
        "axis": None if axis is None else axis.content(),
        "picture": _picture(layout, detail.block),
        "runs": [_run(run, label, axis, detail) for run, label in zip(runs, labels)],
        "ranking": None,
        "side": [],
    }
    if len(runs) > 1:
        content["ranking"] = _table(ranking or _default_ranking(runs, labels))
        content["side"] = _side_by_side(runs)
    return content


# --- what the rows are --------------------------------------------------------------------------


class _Axis(NamedTuple):
    """The horizontal axis of curves, which all components share."""

    label: str
    x: Array
    pieces: list[slice]
    parts: list[slice] | None
    """Bins whose extremes stand for the values, where these are too many."""

    @classmethod
    def of(cls, layout: Layout, m: int, points: int) -> _Axis | None:
        """None where components are pictures, or bars: named features, or few rows."""
        if layout.kind == "pictures":
            return None
        if layout.wavelengths is not None:
            label, x = "wavelength (nm)", np.asarray(layout.wavelengths, dtype=np.float64)
        elif layout.bands is not None:
            label, x = "band", np.asarray(layout.bands, dtype=np.float64)
        elif layout.kind == "scene":
            label, x = "band", np.arange(1.0, m + 1)
        elif layout.features is not None or m <= _FEW_ROWS:
            return None
        else:
            label, x = "row", np.arange(1.0, m + 1)
        pieces = layout.pieces() or [slice(0, m)]
        parts = bins(pieces, points // 2) if m > points else None
        return cls(label, x, pieces, parts)

    def curve(self, values: Array) -> list[float | None]:
        return rounded(values if self.parts is None else extremes(values, self.parts))

    def content(self) -> dict[str, Any]:
        if self.parts is None:
            return {
                "label": self.label,
                "x": rounded(self.x, 7),
                "pieces": [[p.start, p.stop] for p in self.pieces],
                "binned": 1,
            }
        first = [
            k for k, p in enumerate(self.parts) if any(p.start == q.start for q in self.pieces)
        ]
        ends = [*first[1:], len(self.parts)]
        return {
            "label": self.label,
            "x": rounded(np.repeat([self.x[p].mean() for p in self.parts], 2), 7),
            "pieces": [[2 * a, 2 * b] for a, b in zip(first, ends)],
            "binned": self.parts[0].stop - self.parts[0].start,
        }


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
    return rounded(kept, 10) if kept.dtype.kind in "fiu" else [_short(v) for v in kept]


def _feature_name(layout: Layout, i: int) -> str:
    return f"row {i + 1}" if layout.features is None else _short(layout.features[i])


def _short(text: object) -> str:
    """Names come from files and may be of any length."""
    whole = str(text)
    return whole if len(whole) <= _LONGEST_NAME else whole[: _LONGEST_NAME - 1] + "…"


# --- one run ------------------------------------------------------------------------------------


def _run(run: Run, label: str, axis: _Axis | None, detail: Detail) -> dict[str, Any]:
    f = run.f
    orders = uncrossed_orders(f)
    layers = [_layer(run, k, orders[k - 1], axis, detail) for k in range(1, f.depth + 1)]
    return {
        "label": _short(label),
        "model": model_name(f),
        "ranks": f.ranks,
        "summary": _summary(f),
        "tiles": _tiles(run, layers),
        "notes": [str(note) for note in run.notes],
        "config": run.config,
        "facts": [[_short(name), str(value)] for name, value in run.facts.items()],
        "layers": layers,
        "residual": _residual(run, detail.block),
        "color": _color(f, detail.block),
        "history": _history(f),
    }


def _layer(
    run: Run, layer: int, order: NDArray[np.intp], axis: _Axis | None, detail: Detail
) -> dict[str, Any]:
    f, layout = run.f, run.f.layout
    W = f.basis(layer)
    scored = bool(np.isfinite(W).all())
    names = run.names(layer) if scored else [str(k + 1) for k in range(W.shape[1])]
    content: dict[str, Any] = {
        "names": [_short(name) for name in names],
        "order": order.tolist(),
        "links": [] if layer == 1 else np.nan_to_num(np.round(f.links(layer), 4)).tolist(),
        "truth": _truth(run, layer, axis) if scored else None,
    }
    if layout.kind != "table":
        pictures = f.codes(layer) if layout.kind == "scene" else W.T
        content["maps"] = [_map(layout, values, detail.block) for values in pictures]
    if axis is not None:
        content["curves"] = [axis.curve(w) for w in W.T]
        content["means"] = rounded(np.abs(W).mean(axis=0))
    elif layout.kind == "table":
        content["top"] = [_top_features(layout, w) for w in W.T]
    if layout.samples is not None:
        content["samples"] = [_top_samples(layout, h) for h in f.codes(layer)]
    return content


def _map(layout: Layout, values: Array, block: int) -> dict[str, Any]:
    return quantised(block_mean(layout.image(values), block))


def _residual(run: Run, block: int) -> dict[str, Any] | None:
    """The map of relative residuals, where samples are pixels."""
    if run.residual is None or run.f.layout.kind != "scene":
        return None
    return _map(run.f.layout, run.residual, block)


def _color(f: Factorization, block: int) -> str | None:
    """The scene as W_1 H_1 shows it to the eye, where it has the bands for that."""
    waves = f.layout.wavelengths
    if waves is None or f.layout.kind != "scene":
        return None
    near = [int(np.argmin(np.abs(waves - nm))) for nm in _VISIBLE]
    if any(abs(waves[i] - nm) > _FAR for i, nm in zip(near, _VISIBLE)):
        return None
    channels = f.basis(1)[near] @ f.codes(1)
    if channels.min() < -0.05 * channels.max():  # centred data have no colour
        return None
    return composite(*(block_mean(f.layout.image(c), block) for c in channels))


def _top_features(layout: Layout, w: Array) -> list[list[Any]]:
    """Names and values of the largest entries in size, largest first."""
    largest = np.argsort(-np.abs(w), kind="stable")[:_TOP_FEATURES]
    return [[_feature_name(layout, i), v] for i, v in zip(largest.tolist(), rounded(w[largest]))]


def _top_samples(layout: Layout, h: Array) -> list[list[Any]]:
    assert layout.samples is not None
    largest = np.argsort(-np.abs(h), kind="stable")[:_TOP_SAMPLES]
    return [[_short(layout.samples[i]), v] for i, v in zip(largest.tolist(), rounded(h[largest]))]


def _truth(run: Run, layer: int, axis: _Axis | None) -> dict[str, Any] | None:
    """Pairs of true components and the fit's, with the true curves at unit mean."""
    score = run.score(layer)
    if score is None:
        return None
    known = run.truth[layer]
    means = np.abs(known.W).mean(axis=0)
    scaled = known.W / np.where(means > 0, means, 1)
    return {
        "names": [_short(name) for name in known.names],
        "order": score.order.tolist(),
        "distances": rounded(score.distances),
        "mean": rounded([score.mean])[0],
        "curves": [] if axis is None else [axis.curve(w) for w in scaled.T],
    }


def _history(f: Factorization) -> dict[str, Any]:
    """Objective and relative errors ``||.|| / ||.||`` of at most 500 sweeps."""
    h = f.history
    kept = thinned(len(h), _SWEEPS)
    return {
        "sweep": kept.tolist(),
        "time": rounded(h.time[kept]),
        "objective": rounded(h.objective[kept]),
        "data": rounded(_root(h.data_errors[kept].T)),
        "layer": rounded(_root(h.layer_errors[kept].T)),
    }


def _root(squares: Array) -> Array:
    return np.sqrt(np.maximum(squares, 0))


# --- words --------------------------------------------------------------------------------------


def model_name(f: Factorization) -> str:
    """The loss's name, or its class's."""
    return f.problem.loss.name or type(f.problem.loss).__name__


def _summary(f: Factorization) -> str:
    m, n = len(f.W[0]), f.H[0].shape[1]
    ranks = " > ".join(str(r) for r in f.ranks)
    parts = "component" if f.ranks == [1] else "components"
    sweeps = "sweep" if f.n_iter == 1 else "sweeps"
    return (
        f"{_size(f.layout, m, n)} factored into {ranks} {parts} by the {model_name(f)} model; "
        f"{f.n_iter} {sweeps}, {_STOPPED.get(f.stop_reason, f'stopped by {f.stop_reason}')}."
    )


def _size(layout: Layout, m: int, n: int) -> str:
    if layout.kind == "pictures" and layout.image_shape is not None:
        return f"{n} pictures of {layout.image_shape[0]} × {layout.image_shape[1]} pixels"
    if layout.kind == "scene":
        return f"{m} bands × {n} pixels"
    rows = "rows" if layout.features is None else "features"
    return f"{m} {rows} × {n} {'columns' if layout.samples is None else 'samples'}"


def _tiles(run: Run, layers: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Key numbers: what it is, the number, its unit."""
    h = run.f.history
    errors = _root(h.data_errors[-1])
    tiles = [
        {"what": f"relative error, layer {k}", "value": f"{100 * e:.3g}", "unit": "%"}
        for k, e in enumerate(errors, start=1)
    ]
    for k, layer in enumerate(layers, start=1):
        if layer["truth"] is not None:
            mean = layer["truth"]["mean"]
            tiles.append({"what": f"mean MRSA, layer {k}", "value": f"{mean:.3g}", "unit": ""})
    tiles.append({"what": "sweeps", "value": str(run.f.n_iter), "unit": ""})
    value, unit = _duration(float(h.time[-1]))
    tiles.append({"what": "duration", "value": value, "unit": unit})
    return tiles


def _duration(seconds: float) -> tuple[str, str]:
    """A number of few digits and its unit."""
    for unit, size in (("h", 3600.0), ("min", 60.0), ("s", 1.0)):
        if seconds >= 1.5 * size or (unit == "s" and seconds >= 0.1):
            return f"{seconds / size:.3g}", unit
    return f"{1000 * seconds:.3g}", "ms"


# --- several runs -------------------------------------------------------------------------------


def _table(ranking: Ranking) -> dict[str, Any]:
    return {
        "columns": [_short(c) for c in ranking.columns],
        "rows": [[_cell(c) for c in row] for row in ranking.rows],
    }


def _cell(value: str | float) -> str | float | None:
    if isinstance(value, str):
        return _short(value)
    return float(value) if np.isfinite(value) else None


def _default_ranking(runs: Sequence[Run], labels: Sequence[str]) -> Ranking:
    """Errors, scores and durations in the order of the runs."""
    depth = max(run.f.depth for run in runs)
    scores = [_mean_scores(run, depth) for run in runs]
    known = [k for k in range(depth) if any(np.isfinite(s[k]) for s in scores)]
    columns = [
        "run",
        *(f"layer {k + 1}: error (%)" for k in range(depth)),
        *(f"layer {k + 1}: MRSA" for k in known),
        "sweeps",
        "seconds",
    ]
    rows = []
    for run, label, score in zip(runs, labels, scores):
        errors = (100 * _root(run.f.history.data_errors[-1])).tolist()
        errors += [np.nan] * (depth - len(errors))
        found = [score[k] for k in known]
        time = float(run.f.history.time[-1])
        rows.append([label, *errors, *found, float(run.f.n_iter), time])
    return Ranking(columns, rows)


def _mean_scores(run: Run, depth: int) -> list[float]:
    scores = [_score(run, layer) for layer in range(1, run.f.depth + 1)]
    return scores + [float("nan")] * (depth - len(scores))


def _score(run: Run, layer: int) -> float:
    score = run.score(layer) if np.isfinite(run.f.basis(layer)).all() else None
    return float("nan") if score is None else score.mean


def _side_by_side(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Per layer that all runs have: the component of each run that stands in each column."""
    depth = min(run.f.depth for run in runs)
    return [
        {"names": names, "rows": [_columns(reference, run.f.basis(layer)) for run in runs]}
        for layer, (names, reference) in enumerate(_references(runs, depth), start=1)
    ]


def _references(runs: Sequence[Run], depth: int) -> Iterator[tuple[list[str], Array]]:
    """Names and curves of the columns: of the truth where known, else of the first run."""
    for layer in range(1, depth + 1):
        known = runs[0].truth.get(layer)
        if known is not None:
            yield [_short(name) for name in known.names], known.W
        else:
            W = runs[0].f.basis(layer)
            yield [str(k + 1) for k in range(W.shape[1])], W


def _columns(reference: Array, W: Array) -> list[int | None]:
    """Components paired with the reference's, then those left over."""
    if not np.isfinite(W).all() or not np.isfinite(reference).all():
        return list(range(W.shape[1]))
    columns: list[int | None] = [None] * reference.shape[1]
    if reference.shape[1] <= W.shape[1]:
        columns = match(reference, W).order.tolist()
    else:
        for k, column in enumerate(match(W, reference).order.tolist()):
            columns[column] = k
    return columns + [k for k in range(W.shape[1]) if k not in columns]
