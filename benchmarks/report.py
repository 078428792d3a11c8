"""Results as Markdown and JSON files, written atomically."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from .measure import Result, Row, Table

COLUMNS = ("measure", "deepmf", "other", "ratio", "goal", "met", "note")


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Markdown table; bars inside cells are escaped."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return "\n".join([line(header), "|" + "---|" * len(header), *map(line, rows)])


def headline(result: Result) -> str:
    """Table of the rows for the README."""
    rows = [
        [row.headline, row.ratio or row.deepmf or "-", row.goal]
        for row in result.rows
        if row.headline
    ]
    return markdown(("", "measured", "goal"), rows)


def page(machine: dict[str, str], result: Result, quick: bool) -> str:
    """All results as a Markdown page."""
    parts = [
        "# deepmf's benchmarks",
        "**Small sizes, to try the suite: these numbers mean nothing.**" if quick else "",
        "\n".join(f"- {name}: {value}" for name, value in machine.items()),
        "Medians of interleaved repetitions; each group of measures in a process of its own.",
        "## Goals",
        markdown(COLUMNS, [_cells(row) for row in result.rows]),
        *(_section(table) for table in _merged(result.tables)),
        "## In short",
        headline(result),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _cells(row: Row) -> list[str]:
    met = "" if row.met is None else "yes" if row.met else "no"
    return [row.measure, row.deepmf, row.other, row.ratio, row.goal, met, row.note]


def _section(table: Table) -> str:
    body = f"## {table.title}\n\n{markdown(table.columns, table.rows)}"
    return f"{body}\n\n{table.note}" if table.note else body


def _merged(tables: Sequence[Table]) -> list[Table]:
    """Merge tables of the same title, which come from several cases."""
    merged: dict[str, Table] = {}
    for table in tables:
        before = merged.get(table.title)
        rows = [*before.rows, *table.rows] if before else table.rows
        note = table.note or (before.note if before else "")
        merged[table.title] = Table(table.title, table.columns, rows, note)
    return list(merged.values())


def write(folder: Path, machine: dict[str, str], result: Result, quick: bool) -> None:
    """Write bench.md and bench.json, each replaced atomically."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {"machine": machine, "quick": quick, **asdict(result)}
    replace_file(folder / "bench.json", json.dumps(content, indent=2) + "\n")
    replace_file(folder / "bench.md", page(machine, result, quick))


def replace_file(path: Path, text: str) -> None:
    unfinished = path.with_name(f".{path.name}.unfinished")
    unfinished.write_text(text, encoding="utf-8")
    os.replace(unfinished, path)
