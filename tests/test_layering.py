"""The shape of the code: imports point one way, nothing prints, the front door is complete."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import deepmf

SOURCE = Path(deepmf.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))

# Lower may not import higher; equals may not import each other, except inside one package.
LEVELS = {
    "parameters": 0,
    "quadratic": 0,
    "checkpoint": 1,
    "vectors": 1,
    "metrics": 0,
    "mixture": 1,
    "layout": 0,
    "labels": 1,
    "tree": 1,
    "dataset": 1,
    "history": 1,
    "state": 1,
    "constraints": 1,
    "losses": 2,
    "regularizers": 2,
    "solvers": 3,
    "panels": 4,
    "init": 5,
    "names": 6,
    "problem": 7,
    "sweep": 8,
    "momentum": 9,
    "growth": 8,
    "fingerprint": 9,
    "fit": 10,
    "factorization": 10,
    "advice": 11,
    "io": 11,
    "factorize": 12,
    "estimators": 13,
}
# Leaves that any level may use: they import nothing of the numerics.
HELPERS = {"files", "foreign", "interruption", "observed", "random_state", "stored", "threads"}
HELPERS |= {"archives", "compiling", "remarks", "validation"}


def part(path: Path) -> str:
    """The top-level module or package a file belongs to."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def name_of(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def imports(path: Path) -> set[str]:
    """Top-level parts of deepmf that a file imports anywhere in it, type checking apart."""
    found = set()
    for node in walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names if a.name.split(".")[0] == "deepmf"}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            if node.module == "deepmf":
                found |= {f"deepmf.{a.name}" for a in node.names}
            elif (node.module or "").startswith("deepmf."):
                found.add(str(node.module))
    return {name.split(".")[1] if "." in name else "" for name in found}


def walk(node: ast.AST):
    """All nodes but those under ``if TYPE_CHECKING``."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from walk(child)


def test_the_map_is_of_this_code():
    parts = {part(path) for path in FILES}
    assert set(LEVELS) <= parts, sorted(set(LEVELS) - parts)


@pytest.mark.parametrize("path", [p for p in FILES if part(p) in LEVELS], ids=name_of)
def test_imports_point_one_way(path):
    own = part(path)
    for other in imports(path) - {own} - HELPERS:
        assert other in LEVELS, f"{path.name} imports deepmf.{other}, which is above the numerics"
        assert LEVELS[other] < LEVELS[own], f"{path.name} (deepmf.{own}) imports deepmf.{other}"


def test_helpers_import_nothing_of_the_numerics():
    for path in FILES:
        if part(path) in HELPERS:
            # quadratic gives the array type, and nothing else
            assert imports(path) <= HELPERS | {"quadratic", "metrics"}, path


@pytest.mark.parametrize("name", ["panels", "init"])
def test_the_data_side_never_sees_a_loss(name):
    """Neither directly nor through what it imports."""
    graph: dict[str, set[str]] = {}
    for path in FILES:
        graph.setdefault(part(path), set()).update(imports(path))
    reached, todo = set(), [name]
    while todo:
        here = todo.pop()
        if here not in reached:
            reached.add(here)
            todo += graph.get(here, set())
    assert reached.isdisjoint({"losses", "sweep", "fit", "problem", "factorize", "estimators"})


def test_losses_never_see_data():
    for path in FILES:
        if part(path) == "losses":
            assert imports(path) <= {"losses", "parameters", "quadratic", "state"}, path


def test_only_the_estimator_needs_scikit_learn_to_load():
    for path in FILES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        top = [n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
        names = [a.name for n in top if isinstance(n, ast.Import) for a in n.names]
        names += [n.module or "" for n in top if isinstance(n, ast.ImportFrom)]
        if any(name.split(".")[0] == "sklearn" for name in names):
            assert part(path) == "estimators", path


@pytest.mark.parametrize("path", [p for p in FILES if part(p) != "cli"], ids=name_of)
def test_nothing_prints(path):
    """Apart from the command line, which is there to print."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "print", f"{path}:{node.lineno}"


def test_public_names_are_sorted_and_importable():
    names = deepmf.__all__
    assert len(set(names)) == len(names)
    # the order of ruff's RUF022: constants, classes, functions, each in alphabetical order
    kinds = [0 if n.isupper() else 1 if n[0].isupper() else 2 for n in names]
    assert list(zip(kinds, names)) == sorted(zip(kinds, names))
    for name in names:
        assert getattr(deepmf, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        deepmf.nonsense  # noqa: B018


def test_star_import():
    space: dict[str, object] = {}
    exec("from deepmf import *", space)
    assert set(deepmf.__all__) <= set(space)


def loaded_after(code: str) -> set[str]:
    script = f"{code}\nimport sys\nsys.stdout.write(' '.join(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    )
    return set(done.stdout.split())


def test_importing_loads_neither_scikit_learn_nor_matplotlib():
    loaded = loaded_after("import deepmf; deepmf.factorize, deepmf.MinVolume")
    assert "numpy" in loaded
    assert loaded.isdisjoint({"sklearn", "matplotlib", "pandas", "torch", "dask"})


def test_the_command_line_starts_without_what_is_slow_to_load():
    pytest.importorskip("typer")
    loaded = loaded_after("import deepmf.cli.app")
    slow = {"sklearn", "matplotlib", "pandas", "numba", "xarray", "multiprocessing.pool"}
    assert loaded.isdisjoint(slow | {"scipy.optimize", "scipy.io", "concurrent.futures.process"})


def test_a_converging_fit_loads_neither():
    loaded = loaded_after(
        "import numpy as np, deepmf; deepmf.factorize(np.ones((3, 4)) + np.eye(3, 4), [2], tol=0.5)"
    )
    assert loaded.isdisjoint({"sklearn", "matplotlib", "pandas", "torch", "dask"})


def test_the_estimator_is_there_when_asked_for():
    assert "sklearn" in loaded_after("from deepmf import DeepMF")
