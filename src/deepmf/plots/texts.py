"""Texts cut and broken to the room that there is for them."""

from __future__ import annotations

import textwrap


def shorten(text: str, inches: float, points: float) -> str:
    """The text, with an ellipsis in its middle where letters of this size would not fit."""
    room = max(2, int(inches * 72 / (0.58 * points)))
    if len(text) <= room:
        return text
    end = (room - 1) * 2 // 5  # of names that begin alike, the end tells
    return text[: room - 1 - end].rstrip() + "…" + text[len(text) - end :].lstrip()


def heading(text: str, inches: float, points: float) -> str:
    """A name in a panel's title, each of its lines shortened."""
    return "\n".join(shorten(line, inches, points) for line in text.splitlines())


def wrap(text: str, inches: float, points: float) -> str:
    """The text in as many lines as letters of this size need."""
    return "\n".join(textwrap.wrap(text, max(10, int(inches * 72 / (0.56 * points)))))
