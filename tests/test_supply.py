"""What goes out and what comes in: the built package, and the versions it says it works with."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_the_minimal_requirements_are_the_lower_bounds():
    said = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    lines = (ROOT / "requirements/minimal.txt").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if line and line[0] != "#")
    assert {name: version.removesuffix(".0") for name, version in pinned.items()} == {
        name: version.removesuffix(".0") for name, version in (part.split(">=") for part in said)
    }


def build(target: Path) -> list[Path]:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", target],
        cwd=ROOT,
        env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"},
        capture_output=True,
        check=True,
    )
    return sorted(target.iterdir())


def test_builds_are_the_same_byte_for_byte_and_whole(tmp_path):
    pytest.importorskip("hatchling")
    first, second = build(tmp_path / "a"), build(tmp_path / "b")
    assert [file.name for file in first] == [file.name for file in second]
    assert [file.read_bytes() for file in first] == [file.read_bytes() for file in second]
    wheel, sdist = first
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
    source = ROOT / "src"
    wanted = {
        str(file.relative_to(source))
        for file in source.rglob("*")
        if file.suffix in (".py", ".cu", ".js", ".css", ".html") or file.name == "py.typed"
    }
    assert wanted <= inside
    assert not [name for name in inside if not re.match(r"deepmf(-[\d.]+\.dist-info)?/", name)]
    with tarfile.open(sdist) as source_archive:
        names = source_archive.getnames()
    assert not [n for n in names if re.search(r"__pycache__|\.nb[ic]$|\.npz$|\.mat$", n)]
