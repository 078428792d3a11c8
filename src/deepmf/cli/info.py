"""``deepmf info``: what is in a file or a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from scipy import sparse

from deepmf._utils.messages import counted
from deepmf.cli.console import error_messages, printable, say, show_layers, table
from deepmf.cli.options import READING_OPTIONS, reading_of, takes
from deepmf.cli.wording import as_options
from deepmf.data.dataset import Dataset
from deepmf.data.on_disk import OnDisk
from deepmf.data.validation import adapt
from deepmf.io.crs import place_of


@takes(READING_OPTIONS)
def info(
    given: dict[str, Any],
    path: Annotated[
        str, typer.Argument(help="A data file, dataset:NAME, or the folder of a run or a scan.")
    ],
) -> None:
    """Describe a file and how deepmf would read it, or the outcome of a run or a scan."""
    with error_messages():
        from deepmf.io import format_of, read, variables
        from deepmf.runs.config import Config
        from deepmf.runs.execute import open_data

        if (Path(path) / "factors.npz").is_file():
            _show_run(Path(path))
            return
        if (Path(path) / "scan.json").is_file():
            for line in (Path(path) / "summary.md").read_text(encoding="utf-8").splitlines():
                say(printable(line))
            return
        if path.startswith("dataset:"):
            _show_data(
                open_data(Config(path, reading=reading_of(given), fit={"recipe": "none"})),
                "data set",
            )
            return
        found = variables(path)
        if len(found) > 1:
            rows = [[v.name, " x ".join(map(str, v.shape)), v.dtype] for v in found]
            table(["variable", "shape", "type"], rows)
            say("")
        data, kind = read(path, reading_of(given)), format_of(path)
        _show_data(data, kind.name)
        if data.layout.kind == "table" and data.layout.features is None and not given["rows"]:
            other = "samples" if kind.rows == "features" else "features"
            say(f"Rows are taken as {kind.rows}; if they are {other}, pass --rows {other}.")


def _show_data(data: Dataset, kind: str) -> None:
    X: Any = data.X
    is_sparse = sparse.issparse(X)
    layout = data.layout
    m, n = X.shape
    rows: list[list[str]] = [["name", data.name], ["format", kind]]
    rows.append(["size", f"{m} features x {n} samples, {X.dtype}"])
    if is_sparse:
        rows.append(["nonzero", f"{X.nnz} ({X.nnz / (m * n):.2%})"])
        values = X.data if X.nnz else np.zeros(1)
        low, high = values.min(), values.max()
    else:
        low, high = adapt(X).stats[:2]  # a large file is read in blocks
        if isinstance(X, np.memmap | OnDisk):
            rows.append(["memory", "mapped, not loaded"])
    rows.append(["values", f"{low:.6g} to {high:.6g}"])
    if layout.image_shape is not None:
        shape = f"{layout.image_shape[0]} x {layout.image_shape[1]}"
        what = f"a scene of {shape} pixels" if layout.kind == "scene" else f"{shape} pixels each"
        rows.append(["pictures", what])
    if layout.valid is not None:
        rows.append(["no data", f"{counted(layout.valid.size - n, 'pixel')}, left out"])
    rows += [[name, said] for name, said in place_of(layout).items()]
    if layout.wavelengths is not None:
        w = layout.wavelengths
        rows.append(["wavelengths", f"{w.min():.0f} to {w.max():.0f} nm"])
    if layout.bands is not None:
        total = layout.total_bands or layout.bands.max()
        rows.append(["bands", f"{m} kept of {total}, bad ones left out"])
    for part in ("features", "samples"):
        names = getattr(layout, part)
        if names is not None:
            first = ", ".join(names[:4].tolist())
            rows.append([part, first + (", ..." if len(names) > 4 else "")])
    for names in data.names:
        rows.append(["truth", f"{counted(len(names), 'component')}: {', '.join(names)}"])
    table(["", ""], rows)
    for text in data.notes:
        say(f"Note: {printable(as_options(text))}")


def _show_run(folder: Path) -> None:
    from deepmf.runs.store import load_run

    run = load_run(folder)
    say(f"{printable(run.name)}: {run.f!r}")
    rows = [[k, v] for k, v in run.facts.items()]
    table(["", ""], rows)
    show_layers(run)
    for text in run.notes:
        say(f"Note: {printable(text)}")
