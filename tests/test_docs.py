"""What the README and the guide show must run as it stands."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import FunctionType

import pytest

import deepmf
from deepmf.constraints import OneParent
from deepmf.fitting.recipes import DEFAULTS, RECIPES
from deepmf.fitting.registry import resolve

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


PAGES = [
    "README.md",
    *(
        str(p.relative_to(ROOT))
        for p in sorted((ROOT / "docs").rglob("*.md"))
        if not {"gallery", "_build"} & set(p.parts)
    ),
]


@pytest.mark.parametrize("page", [p for p in PAGES if BLOCK.search((ROOT / p).read_text("utf-8"))])
def test_code_blocks_run_in_order(page, tmp_path, monkeypatch):
    blocks = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    assert blocks
    if page == "docs/gpu.md":
        pytest.importorskip("torch")
    if page == "docs/cluster.md":
        pytest.importorskip("distributed")
        pytest.importorskip("zarr")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)


@pytest.mark.parametrize(
    "module",
    [
        "deepmf._factorize",
        "deepmf.estimator",
        "deepmf.factorization",
        "deepmf.constraints.fixed",
        "deepmf.fitting.checkpoint",
        "deepmf.selection.scan",
    ],
)
def test_docstring_examples(module):
    result = doctest.testmod(importlib.import_module(module))
    assert result.attempted > 0
    assert result.failed == 0


CALLS = {"factorize": deepmf.factorize, "DeepMF": deepmf.DeepMF} | {
    f"{cls.__name__}.{name}": getattr(cls, name)
    for cls in (deepmf.DeepMF, deepmf.Factorization)
    for name, member in vars(cls).items()
    if not name.startswith("_") and isinstance(member, FunctionType | classmethod)
}
"""What users call: all methods of the estimator and of the result, too."""


@pytest.mark.parametrize(("name", "call"), CALLS.items(), ids=CALLS)
def test_docstrings_are_whole(name, call):
    """Each parameter has its text, and each method says what it returns."""
    text = inspect.getdoc(call)
    assert name == "DeepMF" or "\nReturns\n-------\n" in text
    listed = re.findall(r"^[*\w]+(?:, \w+)*(?= : |$)", text, re.MULTILINE)
    described = {word.strip("*") for line in listed for word in line.split(", ")}
    assert set(inspect.signature(call).parameters) - {"self"} <= described


SCRIPTS = [p for p in sorted((ROOT / "examples").rglob("*.py")) if p.parent.name != "gallery"]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.name)
def test_examples_run(script):
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_page_of_recipes_has_their_settings():
    text = (ROOT / "docs/guide/recipes.md").read_text(encoding="utf-8")
    table = text.split("## The settings\n\n")[1].split("\n\n")[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    rows = {row[0].strip("`"): row[1:] for row in cells}
    assert cells[0][1:] == [*(f"`{name}`" for name in RECIPES), "no recipe"]
    for k, chosen in enumerate([*RECIPES.values(), None]):
        settings = {**DEFAULTS, "init": "k-means", **(chosen.settings if chosen else {})}
        model = resolve("model", settings["model"])
        weight = next(iter(vars(model).items()))
        assert rows["model"][k] == f"{model.name}, `{weight[0]}={weight[1]:g}`"
        assert rows["hierarchy"][k] == settings["hierarchy"]
        for name in ("init", "normalize"):
            assert rows[name][k] == f"`{settings[name]!r}`".replace("'", '"')
        assert float(rows["tol"][k]) == settings["tol"]
        assert bool(rows["regularizer_W"][k]) == ("regularizer_W" in settings)
        deeper = chosen.deeper if chosen else {}
        assert bool(rows["constraint_H` of layers 2, 3, ..."][k]) == ("constraint_H" in deeper)
        counts = chosen.counts if chosen else None
        assert rows["raw counts are scaled by"][k] == (f'`"{counts}"`' if counts else "")
    assert resolve("constraint", RECIPES["topics"].deeper["constraint_H"]) == OneParent(unit=True)


@pytest.mark.parametrize("page", [*PAGES, "CONTRIBUTING.md"])
def test_links_and_named_files_exist(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = [t for t in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in t]
    here = (ROOT / page).parent
    made = ("gallery/plot_", "../gallery/plot_")  # by the site's build, of examples/gallery
    for target in targets:
        if target.startswith(made):
            assert (ROOT / "examples" / target.removeprefix("../")).with_suffix(".py").exists()
        else:
            assert (here / target).exists(), target
