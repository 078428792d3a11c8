"""``deepmf demo``: four models on the simulated scene, compared, one of them as a tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from deepmf._utils.messages import counted
from deepmf.cli.compare import write_comparison
from deepmf.cli.console import error_messages, say
from deepmf.cli.options import Out, Overwrite

if TYPE_CHECKING:
    from deepmf.runs.compare import Entry
    from deepmf.runs.run import Run

_FIT = {"ranks": [6, 4, 2], "recipe": "scene"}
_TREE = [None, "one-parent", "one-parent"]
_OURS = "LC-DMF"
_TITLE = "A simulated village in three layers"
_MRSA = "MRSA: mean angle to the true spectra, 0 to 100, lower is better."
_LINKS = "The tree that LC-DMF found (names of the closest true spectra):"


def demo(out: Out = Path("demo"), overwrite: Overwrite = False) -> None:
    """Fit the built-in simulated scene with every model and write a report.

    All models have the recipe for scenes; the layer-centric one gives each component one parent.
    The folder has each run, as deepmf fit writes it, the figures of the layer-centric one, a
    summary and the page that compares all four.
    """
    with error_messages():
        from deepmf._utils.compile_clock import on_compile
        from deepmf.paper.models import DEEP
        from deepmf.runs.compare import compare
        from deepmf.runs.config import Config
        from deepmf.runs.figures import draw_figures
        from deepmf.runs.folder import check_free, new_folder

        def line_by_line(runs: Iterable[Run], total: int) -> Iterator[Run]:
            for label, run in zip(DEEP, runs):
                say(f"  {label}: {counted(run.f.n_iter, 'sweep')} in {run.facts['seconds']} s")
                yield run

        check_free(out, overwrite)
        say("A simulated village, 120 bands x 4096 pixels, by four models, LC-DMF as a tree:")
        scene = Config("dataset:simulated", fit=_FIT)
        settings = {
            label: scene.updated(constraint_H=_TREE)  # the recipe is layer-centric
            if label == _OURS
            else scene.updated(model=model)
            for label, model in DEEP.items()
        }
        with on_compile(cache(_say_compiling)):  # once, however many kernels there are
            entries = compare(settings, jobs=1, progress=line_by_line)
        with new_folder(out, overwrite) as folder:
            write_comparison(folder, entries, "model", _TITLE)
            layer_centric = next(entry.run for entry in entries if entry.label == _OURS)
            (folder / "figures").mkdir()
            draw_figures(folder / "figures", layer_centric)
            summary = f"{_table(entries)}\n{_MRSA}\n\n{_links(layer_centric)}\n"
            (folder / "summary.md").write_text(summary, encoding="utf-8")
        say(f"\n{summary}\nOpen {out / 'report.html'}; figures, factors and maps are beside it.")


def _say_compiling() -> None:
    say("  compiling kernels, once per machine; this time is not counted below ...")


def _table(entries: Sequence[Entry]) -> str:
    """MRSA and relative errors per model and layer, in Markdown."""
    from deepmf._utils.text_tables import markdown_table
    from deepmf.fitting.history import DIVERGED

    rows = []
    for entry in entries:
        measures = entry.measures()
        errors = [measures[f"error {k} %"] for k in (1, 2, 3)]
        percent = [f"{e:.1f} %" if e < 100 * DIVERGED else "diverged" for e in errors]
        rows.append([entry.label, *(f"{measures[f'MRSA {k}']:.2f}" for k in (1, 2, 3)), *percent])
    layers = [f"{what} layer {k}" for what in ("MRSA", "error") for k in (1, 2, 3)]
    return markdown_table(["model", *layers], rows)


def _links(run: Run) -> str:
    """Components of each layer and their children, in Markdown."""
    lines = [_LINKS, ""]
    for layer in range(2, run.f.depth + 1):
        for name, shares in zip(run.names[layer - 1], run.f.links(layer)):
            children = [n for n, share in zip(run.names[layer - 2], shares) if share > 0]
            lines.append(f"- {name} = {', '.join(children) or 'no component'}")
    return "\n".join(lines)
