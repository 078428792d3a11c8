"""The settings of a run, as a TOML file that repeats it."""

from __future__ import annotations

import difflib
import inspect
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from deepmf._factorize import factorize
from deepmf._utils.messages import SettingError, setting
from deepmf.data.features import check_max_features
from deepmf.fitting.checkpoint import Checkpoint
from deepmf.fitting.registry import SETTINGS, known
from deepmf.io import Reading
from deepmf.io.labels import labels_file
from deepmf.io.truth import truth_file

_NOT_IN_FILES = ("X", "callbacks", "panel_size", "scale", "max_features")
FIT_DEFAULTS = {
    name: None if parameter.default is inspect.Parameter.empty else parameter.default
    for name, parameter in inspect.signature(factorize).parameters.items()
    if name not in _NOT_IN_FILES
}
"""Settings that ``[fit]`` may hold: the arguments of `factorize` that a file can state."""

_OF_INPUT = ("path", "truth", "labels", "fixed", "scale", "max_features")
"""Settings that ``[input]`` holds beside the answers of `Reading`."""

PATHS = ("wavelengths", "features", "samples")
"""Answers of `Reading` that name files."""

_HEAD = "# Repeat this run: deepmf fit --config config.toml -o FOLDER\n\n"


class ConfigError(SettingError):
    """Settings that make no sense; the message says why."""


@dataclass(frozen=True)
class Config:
    """Settings of a run: its data, how they are read, and how they are fitted.

    Attributes
    ----------
    path : str
        A file, or ``dataset:NAME`` for one of `deepmf.datasets`.
    truth : tuple of str
        Files with true components.
    labels : str, optional
        File with the classes of the samples, or the name of a column of obs.
    fixed : str, optional
        File with components that W of layer 1 holds.
    scale : str, optional
        How samples are scaled before the fit, see `deepmf.data.scaling`.
    max_features : int or "all", optional
        Number of most variable features to keep, see `deepmf.data.features`.
    reading : Reading
        Answers to what the file leaves open.
    fit : mapping
        Arguments of `factorize`, as plain data.
    """

    path: str
    truth: tuple[str, ...] = ()
    labels: str | None = None
    fixed: str | None = None
    scale: str | None = None
    max_features: int | str | None = None
    reading: Reading = field(default_factory=Reading)
    fit: Mapping[str, Any] = field(default_factory=dict)

    @property
    def files(self) -> list[str]:
        """Files that a run reads."""
        beside = [getattr(self.reading, name) for name in PATHS]
        known = [truth_file(file) for file in (*self.truth, self.fixed) if file]
        classes = labels_file(self.labels) if self.labels else None
        named = [self.path, *known, classes, *beside]
        return [file for file in named if file and not file.startswith("dataset:")]

    def check_data(self) -> None:
        """Refuse settings without data, or with files that are not there."""
        check_max_features(self.max_features)
        if not self.path:
            raise ConfigError("No data are given: name a file, or dataset:simulated.")
        known = (truth_file(file) for file in (*self.truth, self.fixed) if file)
        for file in (self.path, *known):
            if not file.startswith("dataset:") and not Path(file).exists():
                raise FileNotFoundError(f"There is no file {file!r}.")

    def to_toml(self) -> str:
        """The text of a file that `from_toml` understands; ``None`` is left out."""
        import tomli_w

        answers = {f.name: getattr(self.reading, f.name) for f in fields(self.reading)}
        own = {name: getattr(self, name) for name in _OF_INPUT}
        given = {**own, "truth": list(self.truth), **answers}
        content = {
            "input": {k: _plain(v) for k, v in given.items() if v is not None and v != []},
            "fit": {k: _plain(v) for k, v in self.fit.items() if v is not None},
        }
        return _HEAD + tomli_w.dumps(content)

    @classmethod
    def from_toml(cls, file: Path) -> Config:
        """The settings in a file; relative paths are relative to its folder."""
        try:
            content = tomllib.loads(file.read_text(encoding="utf-8"))
        except (FileNotFoundError, IsADirectoryError):
            raise ConfigError(f"There is no configuration {str(file)!r}.") from None
        except (ValueError, RecursionError) as error:  # a number of too many digits, say
            raise ConfigError(f"{file} is not a TOML file: {error}.") from None
        check_keys(content, ("input", "fit"), str(file))
        given, fit = ({**_table(content, name, file)} for name in ("input", "fit"))
        answers = [f.name for f in fields(Reading)]
        check_keys(given, (*_OF_INPUT, *answers), f"[input] of {file}")
        check_keys(fit, tuple(FIT_DEFAULTS), f"[fit] of {file}")
        near = file.absolute().parent  # so that a run can be repeated from anywhere
        path = _beside(near, given.pop("path", ""), file)
        truth = given.pop("truth", [])
        truths = tuple(
            _beside(near, t, file) for t in (truth if isinstance(truth, list) else [truth])
        )
        classes = given.pop("labels", "")
        beside = _beside(near, classes, file)
        labels = (beside if labels_file(beside) else classes) or None
        fixed = _beside(near, given.pop("fixed", ""), file) or None
        scale = given.pop("scale", None)
        if not isinstance(scale, str | None):
            raise ConfigError(f"{file}: scale must be text, got {scale!r}.")
        max_features = given.pop("max_features", None)
        for name in PATHS:
            if name in given:
                given[name] = _beside(near, given[name], file)
        if "checkpoint" in fit:
            fit["checkpoint"] = _checkpoint(near, fit["checkpoint"], file)
        if "image" in given:
            given["image"] = _shape(given["image"], file)
        if not isinstance(fit.get("allow_negative", False), bool):
            raise ConfigError(
                f"{file}: allow_negative must be true or false, got {fit['allow_negative']!r}."
            )
        return cls(path, truths, labels, fixed, scale, max_features, Reading(**given), fit)

    @property
    def checkpoint(self) -> Checkpoint | None:
        """The checkpoint that the settings ask for."""
        return Checkpoint.of(self.fit.get("checkpoint"))

    def updated(self, **settings: Any) -> Config:
        """Copy with other settings of the fit; those that are None stay as they are."""
        return replace(
            self, fit={**self.fit, **{k: v for k, v in settings.items() if v is not None}}
        )

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments for `factorize`."""
        if "ranks" not in self.fit:
            raise ConfigError(f"No ranks are given: say, for example, {setting(ranks=[6, 4, 2])}.")
        for file in self.files:
            if not _is_text(file):
                raise ConfigError(
                    f"The name {file!a} is not text in UTF-8, so that no settings can hold "
                    f"it; rename the file."
                )
        return dict(self.fit)


def spec(setting: str, text: str) -> str | dict[str, Any]:
    """Parse ``NAME``, ``NAME:value`` or ``NAME:key=value,...``.

    ``grouped-sparse:0.7`` is ``{"name": "grouped-sparse", "sparsity": 0.7}``: a lone value belongs
    to the first parameter. Values are written as in TOML.
    """
    name, colon, rest = text.partition(":")
    if not colon:
        return name
    kind = SETTINGS[setting]
    classes = known(kind)
    if name not in classes:
        raise ConfigError(f"Unknown {kind} {name!r}: expected one of {', '.join(classes)}.")
    parameters = classes[name].parameter_names()
    if "=" not in rest and parameters:
        rest = f"{parameters[0]}={rest}"
    try:
        return {"name": name, **tomllib.loads(f"v = {{{rest}}}")["v"]}
    except tomllib.TOMLDecodeError:
        example = f"{name}:{parameters[0]}=1" if parameters else name
        raise ConfigError(
            f"Cannot read {text!r}: expected NAME or NAME:key=value,key=value such as {example}."
        ) from None


def check_keys(given: Mapping[str, Any], allowed: Sequence[str], where: str) -> None:
    """Refuse an unknown key, with the closest known one."""
    for key in given:
        if key not in allowed:
            close = difflib.get_close_matches(key, allowed, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"it may have {', '.join(allowed)}."
            raise ConfigError(f"{where} has an unknown entry {key!r}; {hint}")


def _table(content: Mapping[str, Any], name: str, file: Path) -> dict[str, Any]:
    table = content.get(name, {})
    if not isinstance(table, dict):
        raise ConfigError(f"{file}: {name} must be a table, [{name}].")
    return table


def _beside(folder: Path, path: Any, file: Path) -> str:
    if not isinstance(path, str):
        raise ConfigError(f"{file}: paths must be text, got {path!r}.")
    if not path or path.startswith("dataset:"):
        return path
    return str(folder / os.path.expanduser(path))


def _checkpoint(folder: Path, given: Any, file: Path) -> Any:
    """A path, or a table with one, beside the file."""
    if not isinstance(given, dict):
        return _beside(folder, given, file)
    return {**given, "path": _beside(folder, given.get("path", ""), file)}


def _is_text(name: str) -> bool:
    """Whether a name can be written to a file; bytes that are no UTF-8 cannot."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _shape(given: Any, file: Path) -> tuple[int, int]:
    if isinstance(given, list) and len(given) == 2 and all(type(v) is int and v > 0 for v in given):
        return given[0], given[1]
    raise ConfigError(f"{file}: image must be [rows, cols], got {given!r}.")


def _plain(value: Any) -> Any:
    """A value that TOML can hold, which has no null: no regularizer is ``"none"``."""
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items() if v is not None}
    if isinstance(value, list | tuple):
        return ["none" if v is None else _plain(v) for v in value]
    return value
