"""The folder an experiment leaves: tables, figures, and what it takes to run it again."""

from __future__ import annotations

import csv
import importlib.metadata
import io
import json
import platform
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from deepmf._utils.atomic_files import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Folder:
    """Where results go."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def text(self, name: str, content: str) -> None:
        """Write a text file."""
        self._write(name, lambda file: file.write(content.encode()))

    def _write(self, name: str, write: Callable[[IO[bytes]], object]) -> None:
        write_whole(self.path / name, write)

    def table(
        self,
        name: str,
        columns: Sequence[str],
        rows: Sequence[Sequence[Any]],
        markdown: bool = True,
    ) -> str:
        """Write a table as CSV and, unless told otherwise, as Markdown; return the Markdown."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
        self.text(f"{name}.csv", buffer.getvalue())
        lines = [columns, ["---"] * len(columns), *([_short(v) for v in row] for row in rows)]
        text = "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"
        if markdown:
            self.text(f"{name}.md", text)
        return text

    def figure(self, name: str, figure: Figure) -> None:
        """Write a figure as PNG and as PDF."""
        for suffix, options in (
            ("png", {"dpi": 150}),
            ("pdf", {"metadata": {"CreationDate": None}}),
        ):
            self._write(
                f"{name}.{suffix}",
                lambda file, s=suffix, o=options: figure.savefig(file, format=s, **o),  # type: ignore[misc]
            )

    def configuration(self, experiment: str, settings: Mapping[str, Any]) -> None:
        """Write the exact settings and versions."""
        versions = {p: importlib.metadata.version(p) for p in ("numpy", "scipy", "scikit-learn")}
        content = {
            "experiment": experiment,
            "settings": {k: v if _is_plain(v) else repr(v) for k, v in settings.items()},
            "versions": {
                "deepmf": importlib.metadata.version("deepmf"),
                "python": platform.python_version(),
                **versions,
            },
        }
        self.text("configuration.json", json.dumps(content, indent=2) + "\n")


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float | bool | list | dict | type(None))


def _short(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.2f}" if abs(value) >= 0.1 or value == 0 else f"{value:.2e}"
    return str(value)
