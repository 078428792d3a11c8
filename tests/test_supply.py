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

from deepmf import __version__

ROOT = Path(__file__).parents[1]


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PAGE = (ROOT / "docs/versions.md").read_text(encoding="utf-8")
WORKFLOW = ROOT / ".github/workflows/test.yml"


def bounds(requirements: list[str]) -> dict[str, str]:
    """Lower bounds of what is not deepmf itself."""
    named = [r for r in requirements if not r.startswith("deepmf[")]
    pairs = (re.sub(",<.*", "", r).split(">=") for r in named)
    return {re.sub(r"\[.*\]", "", name): low for name, low in pairs}


def pinned(file: str) -> dict[str, str]:
    lines = (ROOT / "requirements" / file).read_text(encoding="utf-8").splitlines()
    pins = [line.split("==") for line in lines if "==" in line]
    return {re.sub(r"\[.*\]", "", name): version for name, version in pins}


def rows(title: str) -> list[list[str]]:
    """The cells of the table under a title of the page of versions, without its head."""
    section = PAGE.split(f"## {title}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def number(version: str) -> tuple[int, ...]:
    """``1.26`` and ``1.26.0`` are the same."""
    parts = [int(part) for part in version.split(".")]
    return tuple(parts + [0] * (3 - len(parts)))


def numbers(versions: dict[str, str]) -> dict[str, tuple[int, ...]]:
    return {name: number(version) for name, version in versions.items()}


EXTRAS = {
    extra: bounds(PROJECT["optional-dependencies"][extra])
    for extra in ("plots", "cli", "cubes", "tables", "bio", "gpu", "cluster")
}


def test_the_minimal_requirements_are_the_lower_bounds():
    assert numbers(pinned("minimal.txt")) == numbers(bounds(PROJECT["dependencies"]))
    extras = {
        name: low for extra in EXTRAS if extra != "gpu" for name, low in EXTRAS[extra].items()
    }
    assert numbers(pinned("minimal-extras.txt")) == numbers(extras)


def test_the_page_has_the_lower_bounds():
    needed = rows("Required libraries")
    assert {name: oldest for name, oldest, _ in needed} == bounds(PROJECT["dependencies"])
    extras = rows("Optional libraries")
    said = {(extra, name): oldest.split()[0] for extra, name, oldest, _ in extras}
    assert said == {(e, name): low for e, lows in EXTRAS.items() for name, low in lows.items()}
    for *_, oldest, newest in needed + extras:
        for tested in re.findall(r"\d+\.\d+\.\d+", newest):
            assert number(tested) >= number(oldest.split()[0])


def test_the_page_has_the_versions_of_python():
    table = rows("Python")
    pythons = [python for python, *_ in table]
    assert all(tested.startswith(python + ".") for python, tested, _ in table)
    assert PROJECT["requires-python"] == f">={pythons[0]}"
    prefix = "Programming Language :: Python :: "
    classified = [c.removeprefix(prefix) for c in PROJECT["classifiers"] if c.startswith(prefix)]
    assert classified == ["3", *pythons]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"Python {pythons[0]} to {pythons[-1]} " in readme


@pytest.mark.skipif(not WORKFLOW.exists(), reason="not a checkout")
def test_the_workflow_runs_every_python_of_the_page():
    first = re.search(r"python: \[(.*)\]", WORKFLOW.read_text(encoding="utf-8"))
    assert first is not None
    assert re.findall(r"\d\.\d+", first[1]) == [python for python, *_ in rows("Python")]


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
    assert not [
        name
        for name in inside
        if not re.match(rf"deepmf(-{re.escape(__version__)}\.dist-info)?/", name)
    ]
    with tarfile.open(sdist) as source_archive:
        names = source_archive.getnames()
    known = f"deepmf-{__version__}/tests/data/results-0.1.0/run/factors.npz"
    assert [n for n in names if re.search(r"__pycache__|\.nb[ic]$|\.npz$|\.mat$", n)] == [known]
