"""The library's sentences in the words of the command line."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

_VALUE = r"'[^']*'|[-+]?\w[\w.+-]*\w|[-+]?\w"
_BEFORE = r"""(?<![\w'"/\\.-])"""
_AFTER = r"""(?![\w'"/\\=-]|\.\w)"""
"""What a setting stands between: no part of a file's name, and nothing that is quoted."""
_CLIP = re.compile(r"[Cc]lip them with (?:np\.maximum\(X, 0\)|X\.maximum\(0\)|X\.clip\(0\))")


def as_options(text: str) -> str:
    """``max_iter`` as ``--max-iter``, ``solver='hals'`` as ``--solver hals``, and the like.

    Names that are also English words are taken for settings only where a value follows.
    """
    for pattern, change in _changes():
        text = pattern.sub(change, text)
    return text


@functools.cache
def _changes() -> list[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]]:
    """What to look for, and what to say instead."""
    from deepmf.cli.options import FIT_OPTIONS, MODEL_OPTION, READING_OPTIONS
    from deepmf.fitting.registry import known

    options = {**READING_OPTIONS, **FIT_OPTIONS, "model": MODEL_OPTION}
    flags = {name: _flag(option) for name, option in options.items()}
    flags["random_state"] = "--seed"
    models = {cls.__name__: name for name, cls in known("model").items()}

    def assigned(found: re.Match[str]) -> str:
        name, value = found[1], found[2].strip("'")
        on, _, off = flags[name].partition("/")
        if value == "False" and off:
            return off
        return on if value in ("True", "False") else f"{on} {value}"

    def model(found: re.Match[str]) -> str:
        return f"--model {models[found[1]]}" + (f":{found[2]}" if found[2] else "")

    plain = [name for name in flags if "_" in name or name == "tol"]
    return [
        (_CLIP, "Set them to zero in the file"),
        (re.compile(rf"(?<![\w-])({'|'.join(models)})\(([^()]*)\)"), model),
        (re.compile(rf"{_BEFORE}({'|'.join(flags)})=({_VALUE})"), assigned),
        (
            re.compile(rf"{_BEFORE}({'|'.join(plain)}){_AFTER}"),
            lambda found: flags[found[1]].partition("/")[0],
        ),
    ]


def _flag(option: Any) -> str:
    """An option as users write it; typer keeps the first declaration where a default would be."""
    info = option.__metadata__[0]
    return str((*info.param_decls, info.default)[0])
