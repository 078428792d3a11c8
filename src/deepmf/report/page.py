"""The content put into the page's template."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from deepmf._utils.atomic_files import write_whole
from deepmf.report.compare import Ranking
from deepmf.report.content import FULL, Detail, report_content
from deepmf.report.texts import model_name, numbered
from deepmf.runs.run import Run

_LARGEST = 9_500_000
"""Bytes: a page that mails and browsers still take lightly."""

_COARSEST = 64
_SCRIPTS = ("base.js", "chart.js", "graph.js", "maps.js", "errors.js", "compare.js", "page.js")


def write_report(
    path: str | os.PathLike[str],
    runs: Sequence[Run],
    title: str | None = None,
    ranking: Ranking | None = None,
    labels: Sequence[str] | None = None,
) -> Path:
    """Write one HTML file that opens anywhere without a network.

    One run makes a report, several runs on the same data a comparison. Maps are halved in
    resolution until the file stays below 10 MB, which the page then says.

    Parameters
    ----------
    path : path
        The file to make or replace.
    runs : sequence of Run
        At least one.
    title : str, optional
        By default the data's name.
    ranking : Ranking, optional
        The table that a comparison begins with; by default errors and scores, in the given order.
    labels : sequence of str, optional
        Names of the runs; by default those of their models.
    """
    runs = list(runs)
    named = (
        numbered([model_name(run.f) for run in runs])
        if labels is None
        else [str(label) for label in labels]
    )
    _check(runs, named, ranking)
    text = _fitting_page(runs, named, runs[0].name if title is None else title, ranking)
    target = Path(path)
    write_whole(target, lambda file: file.write(text))
    return target


def render(content: dict[str, Any], title: str) -> bytes:
    """The template with title, style, scripts and data in their places."""
    parts = {
        "title": html.escape(title),
        "style": _package_file("page.css"),
        "script": "\n".join(_package_file(name) for name in _SCRIPTS),
        "data": inert_json(content),
    }
    template = _package_file("page.html")
    parts["hash"] = _hash(re.findall(r"<script>(.*?)</script>", template, re.DOTALL)[0], parts)
    return _filled(template, parts).encode("utf-8", "xmlcharrefreplace")


def _filled(template: str, parts: dict[str, str]) -> str:
    """Each part in its place, in one pass, so that no part can name another."""
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], template)


def _hash(script: str, parts: dict[str, str]) -> str:
    """Hash that admits the page's own script in its security policy."""
    digest = hashlib.sha256(_filled(script, parts).encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def inert_json(content: dict[str, Any]) -> str:
    """JSON in which no text can end or open an element: ASCII, and ``< > &`` as escapes."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _fitting_page(
    runs: Sequence[Run], labels: Sequence[str], title: str, ranking: Ranking | None
) -> bytes:
    """The most detailed page that stays below the largest size."""
    detail = FULL
    while True:
        text = render(report_content(runs, labels, ranking, detail), title)
        if len(text) <= _LARGEST or detail.block >= _COARSEST:
            return text
        detail = Detail(2 * detail.block, max(detail.points // 2, 100))


def _package_file(name: str) -> str:
    return resources.files("deepmf.report").joinpath(name).read_text(encoding="utf-8")


def _check(runs: Sequence[Run], labels: Sequence[str], ranking: Ranking | None) -> None:
    if not runs:
        raise ValueError("A report needs at least one run, but none was given.")
    if len(labels) != len(runs):
        raise ValueError(
            f"{len(labels)} labels were given for {len(runs)} runs; give one for each."
        )
    shapes = [(len(run.f.W[0]), run.f.H[0].shape[1]) for run in runs]
    for run, shape in zip(runs, shapes):
        if shape != shapes[0] or run.f.layout.image_shape != runs[0].f.layout.image_shape:
            raise ValueError(
                f"Runs on different data cannot share a report: {runs[0].name!r} is "
                f"{shapes[0][0]} x {shapes[0][1]} and {run.name!r} is {shape[0]} x {shape[1]}."
            )
        run.f.layout.check(shape, run.name)
        if run.residual is not None and run.residual.shape != shape[1:]:
            raise ValueError(
                f"{run.name}: residual has shape {run.residual.shape}, but X has {shape[1]} "
                f"columns."
            )
    if ranking is not None:
        _check_ranking(ranking)


def _check_ranking(ranking: Ranking) -> None:
    for row in ranking.rows:
        if len(row) != len(ranking.columns):
            raise ValueError(f"A row of the ranking has {len(row)} entries; give one per column.")
