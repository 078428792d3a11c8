"""Findings: what went wrong in a fit, in one sentence each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from deepmf._utils.messages import Message


class FindingsWarning(UserWarning):
    """The most important findings of a fit."""


@dataclass(frozen=True)
class Finding:
    """Something that went wrong although the fit converged.

    Attributes
    ----------
    kind : str
        ``"scale"``, ``"outlier"``, ``"lost"``, ``"copy"``, ``"near-copies"``, ``"unused"``,
        ``"depth"`` or ``"unstable"``.
    layer : int or None
        The layer, from 1; None where it is about the data.
    sentence : str
        What is wrong, and the setting that helps.
    """

    kind: str
    layer: int | None
    sentence: Message

    @classmethod
    def of(cls, kind: str, layer: int | None, text: str) -> Finding:
        """A finding from a text with marked settings."""
        return cls(kind, layer, Message(text))

    def __str__(self) -> str:
        return str(self.sentence)

    @classmethod
    def from_spec(cls, spec: list[Any]) -> Finding:
        """The finding that `spec` described."""
        kind, layer, marked = spec
        return cls.of(str(kind), None if layer is None else int(layer), str(marked))

    def spec(self) -> list[Any]:
        """Plain data for files; the settings in the sentence keep their marks."""
        return [self.kind, self.layer, self.sentence.marked]
