"""Tables as text: CSV files and Markdown."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a CSV file in UTF-8 with one line of column names."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table in Markdown, with floats rounded."""
    lines = [columns, ["---"] * len(columns), *([_cell(value) for value in row] for row in rows)]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.2f}" if abs(value) >= 0.1 or value == 0 else f"{value:.2e}"
    return str(value)
