"""Settings in messages as options of the command line."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from deepmf._utils.messages import Message

if TYPE_CHECKING:
    from deepmf.runs.run import Run


def as_options(text: str) -> str:
    """``max_iter`` as ``--max-iter``, ``solver='hals'`` as ``--solver hals``, where marked."""
    return text.shown(_flag, _assignment) if isinstance(text, Message) else text


def in_options(run: Run) -> Run:
    """A run whose notes name options, as files and pages of the command line have them."""
    return replace(run, notes=[as_options(text) for text in run.notes])


def _assignment(name: str, value: Any) -> str:
    on, _, off = _flags().get(name, name).partition("/")
    if isinstance(value, bool):
        return on if value or not off else off
    return f"{on} {_argument(name, value)}" if name in _flags() else f"{name}={value!r}"


def _argument(name: str, value: Any) -> str:
    """A value as an option takes it."""
    if isinstance(value, dict):
        first, *rest = value.values()
        return f"{first}:" + ",".join(f"{key}={v}" for key, v in zip([*value][1:], rest))
    if isinstance(value, list | tuple):
        return ("x" if name == "image" else ",").join(map(str, value))
    return str(value)


def _flag(name: str) -> str:
    return _flags().get(name, name).partition("/")[0]


@functools.cache
def _flags() -> dict[str, str]:
    """The option of each setting, ``--on/--off`` where it has two."""
    from deepmf.cli.options import FIT_OPTIONS, MODEL_OPTION, READING_OPTIONS

    options = {**READING_OPTIONS, **FIT_OPTIONS, "model": MODEL_OPTION}
    flags = {name: _first_declaration(option) for name, option in options.items()}
    return {**flags, "random_state": "--seed", "jobs": "--jobs", "overwrite": "--overwrite"}


def _first_declaration(option: Any) -> str:
    """An option as users write it; typer keeps the first declaration where a default would be."""
    info = option.__metadata__[0]
    return str((*info.param_decls, info.default)[0])
