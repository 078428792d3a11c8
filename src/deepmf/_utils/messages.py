"""Messages that name settings in the words of the interface that shows them.

A message is written once, with its settings marked::

    raise SettingError(f"{path} has several matrices; choose one with {setting('variable')}.")

Python shows ``variable``, and the command line ``--variable``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

_MARK = re.compile("\x02(\\w*)(?:\x1f(.*?))?\x03", re.DOTALL)


def setting(name: str = "", /, **value: Any) -> str:
    """Mark a setting in the text of a `Message`, by its name or with a value.

    Python shows ``setting("tol")`` as ``tol``, and ``setting(tol=0)`` as ``tol=0``. A value is a
    text, a number, a list, or a mapping such as ``{"name": "layer-centric", "lam": 0.1}``.
    """
    for key, given in value.items():
        return f"\x02{key}\x1f{given!r}\x03"
    return f"\x02{name}\x03"


def in_python(text: str) -> str:
    """Mark a part of a `Message` that only Python shows, such as an expression."""
    return f"\x02\x1f{text}\x03"


def counted(number: int, one: str, many: str = "") -> str:
    """``1 sample``, ``2 samples``; ``many`` is the plural where an s does not make it."""
    return f"{number} {one if number == 1 else many or one + 's'}"


class Message(str):
    """Text with its settings in the words of Python.

    Parameters
    ----------
    text : str
        With settings marked by `setting`; another message keeps its marks.
    """

    marked: str

    def __new__(cls, text: str) -> Message:
        """Show marked settings as ``name`` or ``name=value``."""
        marked = text.marked if isinstance(text, Message) else text
        self = super().__new__(cls, _MARK.sub(_as_python, marked))
        self.marked = marked
        return self

    def __reduce__(self) -> tuple[type[Message], tuple[str]]:
        return Message, (self.marked,)

    def shown(self, name: Callable[[str], str], assignment: Callable[[str, Any], str]) -> str:
        """The text with each setting as ``name(setting)`` or ``assignment(setting, value)``."""

        def show(found: re.Match[str]) -> str:
            if not found[1]:
                return ""
            if found[2] is None:
                return name(found[1])
            return assignment(found[1], _value(found[2]))

        return _MARK.sub(show, self.marked)


class SettingError(ValueError):
    """Invalid input; the message may name settings, see `Message`."""

    def __init__(self, text: str) -> None:
        super().__init__(Message(text))


def message_of(error: BaseException) -> str:
    """The text of an exception or a warning: a `Message` where it is one."""
    said = error.args[0] if error.args else ""
    return said if isinstance(said, Message) else str(error)


def _value(text: str) -> Any:
    """The value of a literal; the text itself of anything else."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _as_python(found: re.Match[str]) -> str:
    return "=".join(part for part in found.groups() if part)
