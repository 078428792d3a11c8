"""New data coded with the components of a run."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from deepmf._utils.messages import SettingError, setting
from deepmf.core.terms import DataTerm
from deepmf.data.containers import check_same_features
from deepmf.data.dataset import Dataset
from deepmf.data.layout import Layout
from deepmf.data.on_disk import OnDisk
from deepmf.data.preparation import prepared_alike
from deepmf.data.validation import as_matrix
from deepmf.factorization import Factorization
from deepmf.fitting.recipes import NONE
from deepmf.io import Reading, format_of
from deepmf.metrics import relative_residuals, squared_residuals
from deepmf.runs.config import Config
from deepmf.runs.execute import facts, open_data
from deepmf.runs.run import Run
from deepmf.runs.store import check_space, load_run, write_samples

_OF_FEATURES = ("wavelengths", "bad_bands", "nodata", "features")
_OF_FILES = ("variable", "rows", "bands", "order", "index", "drop")
"""Answers to how a run's data are read that hold for others, and for others of the same format."""


@dataclass(frozen=True, eq=False)
class Applied:
    """A run's components on other data."""

    run: Run
    """The run with the codes, the layout and the residuals of these data."""
    errors: Sequence[float]
    """||X - W_l codes||^2 / ||X||^2 of each layer; with divergences the share of the deviance."""
    sizes: Sequence[float]
    """The whole that each of these is a share of."""


def apply(
    folder: Path,
    path: str,
    answers: Mapping[str, Any] | None = None,
    weights: str | None = None,
    allow_negative: bool | None = None,
) -> Applied:
    """Code the data in a file with the components of the run in a folder.

    They are read as the run's own were, with the same bands, scaled by what was measured on these,
    and reduced to the features that the run kept.

    Parameters
    ----------
    folder : Path
        That of the run.
    path : str
        A file, or ``dataset:NAME``.
    answers : mapping, optional
        Answers to what the file leaves open, see `Reading`, where they are not the run's.
    weights : str, optional
        ``"observed"``: code samples by what is observed of them. Default: as in the run.
    allow_negative : bool, optional
        Accept negative data under nonnegative factors. Default: as in the run.
    """
    run = load_run(folder)
    config = Config.from_toml(folder / "config.toml")
    weights = config.fit.get("weights") if weights is None else weights
    began = time.perf_counter()
    reading = _reading(run, config, path, answers or {})
    data = open_data(Config(path, reading=reading, fit={"weights": weights, "recipe": NONE}))
    f, fitted = run.f, run.f.layout.of_new(data.X.shape[0])
    m = len(f.W[0]) if fitted is f.layout or f.layout.kept is None else f.layout.kept.size
    _check_bands(data.layout, fitted, data.X.shape[0], m, path)
    data = _in_order(data, fitted)
    check_same_features(data.layout, fitted, data.X.shape, m)
    data = _prepared(run, data, config.scale)
    allow = config.fit.get("allow_negative") if allow_negative is None else allow_negative
    if f.problem.nonnegative and not f.problem.fits and not allow:
        least = as_matrix(data.X, weights=weights).stats.smallest
        if least < 0:
            raise SettingError(
                f"{path} has negative values, down to {least:.6g}, but both factors of layer 1 are "
                f"nonnegative: set them to zero in the file, or code them as they are, as noise, "
                f"with {setting(allow_negative=True)}."
            )
    plain = replace(f, layout=Layout())  # the data are prepared already
    layers = range(1, f.depth + 1)
    own = layers if f.over_codes else [1]
    codes = [plain.encode(data.X, layer, weights=weights) for layer in own]
    layout = replace(data.layout, spectra_totals=_spectra_totals(f))
    f = replace(f, H=[*codes, *f.H[len(codes) :]], layout=layout)
    done = replace(
        run,
        name=data.name,
        f=f,
        facts={"run": str(folder), **facts(path, data, time.perf_counter() - began)},
        residual=relative_residuals(data.X, f.W[0], f.H[0]),
        notes=list(data.notes),
        truth={k: known._replace(A=None) for k, known in run.truth.items()},
        measured=(),
    )
    left, sizes = _deviances(f, data.X, weights)
    return Applied(done, [a / b if b else 0.0 for a, b in zip(left, sizes)], sizes)


def _deviances(f: Factorization, X: Any, weights: str | None) -> tuple[list[float], list[float]]:
    """Deviance of the data from each layer with its codes, and that from what knows nothing."""
    layers = range(1, f.depth + 1)
    if not f.problem.fits:
        squares = [squared_residuals(X, f.basis(layer), f.codes(layer)) for layer in layers]
        return [float(r.sum()) for r, _ in squares], [float(n.sum()) for _, n in squares]
    left, sizes = [], []
    with as_matrix(X, weights=weights).panels() as panels:
        for layer, fit in zip(layers, f.problem.fits):
            sizes.append(float(panels.size(fit)))
            panels.codes.set(f.codes(layer))
            left.append(2 * float(panels.values([DataTerm(1.0, f.basis(layer), fit)])[0]))
    return left, sizes


def save_applied(folder: Path, applied: Applied) -> None:
    """Codes of all layers and residuals in the data's own kind, and ``summary.json``."""
    run = applied.run
    check_space(folder, run.f)
    write_samples(folder, run)
    layers = [
        {
            "rank": rank,
            "components": run.names[k - 1],
            "data_error": error,
            "explained": 1 - error,
        }
        for k, (rank, error) in enumerate(zip(run.f.ranks, applied.errors), start=1)
    ]
    said = {"name": run.name, "layers": layers, "notes": list(run.notes), "facts": dict(run.facts)}
    text = json.dumps(said, indent=2, ensure_ascii=False, allow_nan=False)
    (folder / "summary.json").write_text(text + "\n", encoding="utf-8")


def _reading(run: Run, config: Config, path: str, answers: Mapping[str, Any]) -> Reading:
    """Choices that read these data as the run's were read, with the bands that the run has."""
    answers = {name: value for name, value in answers.items() if value is not None}
    if path.startswith("dataset:"):
        return Reading(**answers)
    layout = run.f.layout.all_features
    same = format_of(path).name == run.f.layout.source.format
    kept = (*_OF_FEATURES, *_OF_FILES) if same else _OF_FEATURES
    reading = Reading(**{name: getattr(config.reading, name) for name in kept})
    if layout.bands is not None and layout.total_bands is not None:
        left = np.setdiff1d(np.arange(1, layout.total_bands + 1), layout.bands)
        reading = reading.but(bad_bands=",".join(["none", *map(str, left)]))
    return reading.but(**answers)


def _check_bands(new: Layout, fitted: Layout, found: int, count: int, path: str) -> None:
    """Refuse a scene of which bands are left out that the run has."""
    bands, known = (
        np.arange(1, number + 1) if layout.bands is None else layout.bands
        for layout, number in ((new, found), (fitted, count))
    )
    same = (new.total_bands or found) == (fitted.total_bands or count)
    lost = np.setdiff1d(known, bands)
    if same and len(lost):
        some = ", ".join(map(str, lost[:8])) + (f" and {len(lost) - 8} more" * (len(lost) > 8))
        keep = f"keep them with {setting(bad_bands='none')}, or " if fitted.bands is None else ""
        raise SettingError(
            f"Bands of the run are bad or without data in {path}: {some}; {keep}leave them out of "
            f"a new fit, or choose other data."
        )


def _in_order(data: Dataset, fitted: Layout) -> Dataset:
    """A table's features in the order of the run, where they are the same."""
    new = data.layout
    if new.features is None or fitted.features is None or new.kind != "table":
        return data
    given, known = new.features.tolist(), fitted.features.tolist()
    if given == known or sorted(given) != sorted(known) or len(set(known)) < len(known):
        return data
    place = {name: k for k, name in enumerate(given)}
    order = np.array([place[name] for name in known])
    X = np.asarray(data.X) if isinstance(data.X, OnDisk) else data.X
    X = (X.tocsr() if hasattr(X, "tocsr") else X)[order]
    parts = {"features": new.features, "wavelengths": new.wavelengths, "bands": new.bands}
    there = {name: part[order] for name, part in parts.items() if part is not None}
    notes = [*data.notes, "Features are put into the order of the run."]
    return Dataset(data.name, X, replace(new, **there), notes=notes)


def _spectra_totals(f: Factorization) -> tuple[tuple[float, ...], ...] | None:
    """Sums of the run's spectra, so that fractions of both scenes refer to the same spectra."""
    found = [f.view(layer).unmixed for layer in range(1, f.depth + 1)]
    totals = tuple(tuple(mixed.spectra.sum(axis=0).tolist()) for mixed in found if mixed)
    return totals if len(totals) == f.depth else None


def _prepared(run: Run, data: Dataset, how: str | None) -> Dataset:
    """The data scaled like the run's, by the statistics of these, with the features it kept."""
    fitted = run.f.layout
    by, kept = fitted.scaling, fitted.kept
    if by is None and how not in (None, NONE):
        raise ValueError(
            f"The run does not say by what its data were scaled ({how}); fit it again with this "
            f"version of deepmf."
        )
    if by is not None and not by.how:  # a run of an older version
        fitted = replace(fitted, scaling=replace(by, how=how or ""))
    X = prepared_alike(data.X, fitted)
    chosen = kept is not None and len(kept) == data.X.shape[0]
    layout = data.layout.of_features(kept) if kept is not None and chosen else data.layout
    return data.prepared(X, replace(layout, scaling=fitted.scaling))
