"""The shape of the code: imports point one way, nothing prints, first lines can be understood."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import deepmf

SOURCE = Path(deepmf.__file__).parent
ROOT = Path(__file__).parents[1]
FILES = sorted(SOURCE.rglob("*.py"))

LEVELS = [
    "_utils",
    "core",
    "kernels",
    "constraints",
    "regularizers",
    "losses",
    "solvers",
    "data",
    "init",
    "fitting",
    "hierarchy",
    "metrics",
    "unmixing.py",
    "factorization.py",
    "_factorize.py",
    "estimator.py",
    "selection",
    "__init__.py",
    "io",
    "datasets",
    "checks",
    "plots",
    "runs",
    "report",
    "paper",
    "cli",
    "__main__.py",
]
"""Folders and top modules, lowest first. A file may import from its own folder and from those
before it in this list: at its top, inside a function, or by the name of a module in a string.
"""


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def level_of(path: Path) -> str:
    """The folder or top module of a file."""
    return path.relative_to(SOURCE).parts[0]


def level_of_module(module: str) -> str | None:
    """The level of ``deepmf.data.panels``; ``None`` if the package has no such module."""
    first, *rest = [*module.split(".")[1:], "__init__"]
    if (SOURCE / f"{first}.py").exists():
        return f"{first}.py"
    inside = SOURCE.joinpath(first, *rest[:-1])
    return first if inside.is_dir() or inside.with_suffix(".py").exists() else None


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those under ``if TYPE_CHECKING``."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from walk(child)


def modules_in(tree: ast.Module) -> Iterator[str]:
    """The modules of deepmf that a file imports or names in a string."""
    for node in walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import in line {node.lineno}"
            # "from deepmf import constraints" is a folder, "from deepmf import DeepMF" is not
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            front = node.module == "deepmf"
            yield from (m if not front or level_of_module(m) else "deepmf" for m in inside)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in (
            "__import__",
            "import_module",
            "files",
        ):
            yield from (a.value for a in node.args if isinstance(a, ast.Constant))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            assert node.value != "deepmf.", f"a computed name of a module in line {node.lineno}"
            if re.fullmatch(r"deepmf(\.\w+)+", node.value) and level_of_module(node.value):
                yield node.value


def imports(tree: ast.Module) -> set[str]:
    """The levels that a file imports from."""
    ours = {m for m in modules_in(tree) if m.split(".")[0] == "deepmf"}
    return {level_of_module(m) or level_of_module(m.rpartition(".")[0]) or m for m in ours}


IMPORTS = {name_of(path): imports(parsed(path)) for path in FILES}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import numpy", set()),
        ("import deepmf", {"__init__.py"}),
        ("import deepmf.data.panels.dense", {"data"}),
        ("from deepmf import constraints", {"constraints"}),
        ("from deepmf import DeepMF", {"__init__.py"}),
        ("from deepmf.metrics import match", {"metrics"}),
        ("from deepmf.data.panels.base import Panels", {"data"}),
        ("def f():\n    from deepmf.cli import main", {"cli"}),
        ("import_module('deepmf')", {"__init__.py"}),
        ("importlib.import_module('deepmf.io')", {"io"}),
        ("resources.files('deepmf.report')", {"report"}),
        ("KINDS = {'torch': ('deepmf.data.gpu.tensor', 'TensorData')}", {"data"}),
        ("version('deepmf')", set()),
        ("text = 'deepmf.nonsense'", set()),
        ("if TYPE_CHECKING:\n    from deepmf.cli import main", set()),
    ],
)
def test_all_kinds_of_imports_are_seen(code, expected):
    assert imports(ast.parse(code)) == expected


def test_computed_names_of_modules_are_refused():
    with pytest.raises(AssertionError, match="computed name"):
        imports(ast.parse("import_module(f'deepmf.{name}')"))


def test_every_folder_has_a_level():
    here = {level_of(path) for path in FILES}
    assert here - set(LEVELS) == set(), "give these a place in LEVELS and in CONTRIBUTING's map"
    assert set(LEVELS) - here == set(), "these are in LEVELS but not in the package"
    assert len(set(LEVELS)) == len(LEVELS)


@pytest.mark.parametrize("path", [p for p in FILES if level_of(p) in LEVELS], ids=name_of)
def test_imports_point_one_way(path):
    own = level_of(path)
    below = set(LEVELS[: LEVELS.index(own) + 1])
    against = {other for other in IMPORTS[name_of(path)] if other not in below}
    assert against == set(), f"{own} is below these and may not import them"


def test_the_front_door_is_small():
    modules = [path for path in FILES if path.parent == SOURCE]
    assert len(modules) <= 8, "a new module belongs in a folder"


@pytest.mark.parametrize("name", ["factorize", "scan"])
def test_functions_are_not_modules(name):
    assert callable(getattr(deepmf, name))
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(f"deepmf.{name}")


@pytest.mark.parametrize("name", ["data", "init"])
def test_the_data_side_never_sees_a_loss(name):
    """Neither directly nor through what it imports."""
    graph: dict[str, set[str]] = {}
    for path in FILES:
        graph.setdefault(level_of(path), set()).update(IMPORTS[name_of(path)])
    reached, todo = set(), [name]
    while todo:
        here = todo.pop()
        if here not in reached:
            reached.add(here)
            todo += graph.get(here, set())
    assert "losses" not in reached


def test_losses_never_see_data():
    for name, levels in IMPORTS.items():
        if name.startswith("losses/"):
            assert levels <= {"losses", "core"}, name


def test_factorize_never_touches_files():
    below = LEVELS[: LEVELS.index("_factorize.py") + 1]
    assert {"io", "runs", "cli"}.isdisjoint(below)


MAP = re.compile(r"^\| `([\w/.]+)` \|", re.MULTILINE)


def test_the_map_of_the_code_is_the_code():
    """One row per folder or top module, in the order of the levels; subfolders below theirs."""
    named = MAP.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    rows = [name.rstrip("/") for name in named]
    assert [row for row in rows if "/" not in row] == LEVELS
    folders = {name_of(path.parent) for path in FILES} - {"."}
    assert sorted(row for row in rows if "/" in row) == sorted(f for f in folders if "/" in f)
    assert all(name.endswith("/") == (SOURCE / name).is_dir() for name in named)
    parent = ""
    for row in rows:
        parent = row if "/" not in row else parent
        assert row.startswith(parent), f"{row} belongs below {row.split('/')[0]}"


RIDDLE = re.compile(
    r"(As in|As the|By|For|From|How|In the|Of|So that|The same|Those|What|When|Where|Whether|"
    r"Which|Who|With)\b"
)
"""Beginnings of first lines that cannot be understood without what is around them."""

Documented = ast.Module | ast.ClassDef | ast.FunctionDef


def docstrings(node: Documented) -> Iterator[tuple[ast.AST, str]]:
    """Everything that has a docstring, with it: also variables and fields, by the string below."""
    if own := ast.get_docstring(node):
        yield node, own
    for before, statement in zip([None, *node.body], node.body):
        if isinstance(statement, ast.ClassDef | ast.FunctionDef):
            yield from docstrings(statement)
        elif isinstance(before, ast.Assign | ast.AnnAssign) and isinstance(statement, ast.Expr):
            yield before, str(getattr(statement.value, "value", ""))


def is_riddle(node: ast.AST, text: str) -> bool:
    """Whether a first line begins like a riddle; that of a truth value may begin "Whether"."""
    found = RIDDLE.match(text)
    kind = getattr(node, "returns", None) or getattr(node, "annotation", None)
    predicate = kind is not None and "bool" in ast.unparse(kind)
    return found is not None and not (found[0] == "Whether" and predicate)


@pytest.mark.parametrize("level", LEVELS)
def test_first_lines_can_be_read_on_their_own(level):
    found = [
        f"{name_of(path)}:{getattr(node, 'lineno', 1)} {text.splitlines()[0]}"
        for path in FILES
        if level_of(path) == level
        for node, text in docstrings(parsed(path))
        if is_riddle(node, text)
    ]
    assert not found, "\n".join(found)


def test_riddles_are_recognized():
    code = '''
class A:
    "What it is."
    x: int = 0
    """Of something."""
    y: bool = True
    """Whether it is."""
    z: int = 0
    """The number of things."""

    def f(self) -> bool:
        "Whether it holds."

    def g(self) -> int:
        "Whether it holds, as a number."
'''
    texts = [text for node, text in docstrings(ast.parse(code)) if is_riddle(node, text)]
    assert texts == ["What it is.", "Of something.", "Whether it holds, as a number."]


def test_only_the_estimator_needs_scikit_learn_to_load():
    for path in FILES:
        top = [n for n in parsed(path).body if isinstance(n, ast.Import | ast.ImportFrom)]
        names = [a.name for n in top if isinstance(n, ast.Import) for a in n.names]
        names += [n.module or "" for n in top if isinstance(n, ast.ImportFrom)]
        if any(name.split(".")[0] == "sklearn" for name in names):
            assert level_of(path) == "estimator.py", path


@pytest.mark.parametrize("path", [p for p in FILES if level_of(p) != "cli"], ids=name_of)
def test_nothing_prints(path):
    """Apart from the command line, which is there to print."""
    for node in ast.walk(parsed(path)):
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
