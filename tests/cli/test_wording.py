"""Messages name settings in the words of Python, and of the command line."""

from __future__ import annotations

import ast
import copy
import json
import pickle
import re
import warnings
from pathlib import Path

import pytest

import deepmf
from deepmf._utils.messages import Message, SettingError, in_python, message_of, setting
from deepmf._utils.warnings import warn
from deepmf.cli.options import FIT_OPTIONS, READING_OPTIONS
from deepmf.cli.wording import as_options
from deepmf.io import UnreadableError, read

SOURCE = Path(deepmf.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
CASES = [
    (setting("max_iter"), "max_iter", "--max-iter"),
    (setting(tol=0), "tol=0", "--tol 0"),
    (setting(solver="hals"), "solver='hals'", "--solver hals"),
    (setting(device="cuda:0"), "device='cuda:0'", "--device cuda:0"),
    (setting(nodata=-9999), "nodata=-9999", "--nodata -9999"),
    (setting(allow_negative=True), "allow_negative=True", "--allow-negative"),
    (setting(overwrite=True), "overwrite=True", "--overwrite"),
    (setting(extrapolate=False), "extrapolate=False", "--plain"),
    (setting(extrapolate=True), "extrapolate=True", "--extrapolate"),
    (setting("extrapolate"), "extrapolate", "--extrapolate"),
    (setting(ranks=[6, 4, 2]), "ranks=[6, 4, 2]", "--ranks 6,4,2"),
    (setting(image=(7, 9)), "image=(7, 9)", "--image 7x9"),
    (setting(constraint_W="none"), "constraint_W='none'", "--constraint-W none"),
    (setting("fixed"), "fixed", "--fix-W"),
    (setting("random_state"), "random_state", "--seed"),
    (
        setting(model={"name": "layer-centric", "lam": 0.1}),
        "model={'name': 'layer-centric', 'lam': 0.1}",
        "--model layer-centric:lam=0.1",
    ),
    (setting(panel_size=8), "panel_size=8", "panel_size=8"),  # no option
    (setting("callbacks"), "callbacks", "callbacks"),
    (in_python("np.maximum(X, 0)"), "np.maximum(X, 0)", ""),
    (
        "There is no file {max_iter}.",
        "There is no file {max_iter}.",
        "There is no file {max_iter}.",
    ),
]


@pytest.mark.parametrize(("marked", "python", "options"), CASES)
def test_both_faces(marked, python, options):
    message = Message(f"Use {marked} or 'tol=3'.")
    assert message == f"Use {python} or 'tol=3'."
    assert as_options(message) == f"Use {options} or 'tol=3'."
    for same in (Message(message), pickle.loads(pickle.dumps(message)), copy.deepcopy(message)):
        assert same == message
        assert as_options(same) == as_options(message)
    assert json.loads(json.dumps([message])) == [str(message)]


@pytest.mark.parametrize("name", [*READING_OPTIONS, *FIT_OPTIONS, "model"])
def test_every_setting_with_an_option_is_shown_as_it(name):
    assert as_options(Message(setting(name))).startswith("--")


@pytest.mark.parametrize("kind", [SettingError, UnreadableError])
def test_errors_keep_their_settings(kind):
    error = pickle.loads(pickle.dumps(kind(f"Raise {setting('max_iter')}.")))
    assert isinstance(error, ValueError)
    assert str(error) == "Raise max_iter."
    assert as_options(message_of(error)) == "Raise --max-iter."


def test_warnings_keep_their_settings():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn(f"Raise {setting(max_iter=9)}.")
    (message,) = (w.message for w in caught)
    assert str(message) == "Raise max_iter=9."
    assert as_options(message_of(message)) == "Raise --max-iter 9."


def test_text_without_marks_stays_as_it_is():
    for text in ("bad_bands.npy is not a NumPy file.", "There is no variable 'weights=3'.", ""):
        assert as_options(text) == text
        assert as_options(message_of(ValueError(text))) == text


def test_reading_speaks_python(tmp_path):
    import numpy as np

    np.savez(tmp_path / "a.npz", a=np.ones((3, 4)), b=np.ones((4, 5)))
    with pytest.raises(UnreadableError, match=r"Say which one is the data with variable\.$"):
        read(tmp_path / "a.npz")


# --- the source ----------------------------------------------------------------------------------


def texts(tree: ast.AST):
    """Constants of text that are not docstrings."""
    docs = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node


def test_the_library_names_no_options():
    for path in FILES:
        if "cli" in path.parts:
            continue
        for node in texts(ast.parse(path.read_text(encoding="utf-8"))):
            if not node.value.startswith("# Repeat this run"):  # the comment at the top of a file
                assert not re.search(r"[\s(]--[a-zA-Z]", node.value), f"{path}:{node.lineno}"


def calls(node: ast.AST, *names: str) -> bool:
    return any(
        isinstance(part, ast.Call) and ast.unparse(part.func) in names for part in ast.walk(node)
    )


def test_marks_never_reach_a_user():
    """An error with marked settings is a `SettingError`, or its text is a `Message`."""
    known, todo = {"SettingError"}, [SettingError]
    while todo:
        below = todo.pop().__subclasses__()
        known |= {cls.__name__ for cls in below}
        todo += below
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and node.exc is not None:
                marked = calls(node.exc, "setting", "in_python")
                assert not marked or calls(node.exc, "Message", *known), f"{path}:{node.lineno}"


@pytest.mark.parametrize("init", ["k-means", "snpa", "mv-dual"])
def test_starts_that_fail_name_options(init):
    with pytest.raises(SettingError) as error:
        deepmf.factorize([[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]], 2, init=init)
    assert "init='random'" in str(error.value)
    assert "--init random" in as_options(message_of(error.value))
