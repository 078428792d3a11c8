"""Files that an experiment writes: tables, and the settings and versions it ran with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from typing import Any

from deepmf._utils.text_tables import markdown_table, write_csv

_VERSIONS = ("deepmf", "numpy", "scipy", "scikit-learn")


def write_table(
    folder: Path, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]
) -> str:
    """Write a table as CSV and as Markdown; return the Markdown."""
    write_csv(folder / f"{name}.csv", columns, rows)
    text = markdown_table(columns, rows)
    (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return text


def write_configuration(folder: Path, experiment: str, settings: Mapping[str, Any]) -> None:
    """Write the settings of an experiment and the versions of the libraries it uses."""
    versions = {name: version(name) for name in _VERSIONS}
    content = {
        "experiment": experiment,
        "settings": settings,
        "versions": {**versions, "python": python_version()},
    }
    text = json.dumps(content, indent=2)
    (folder / "configuration.json").write_text(text + "\n", encoding="utf-8")
