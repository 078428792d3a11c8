"""Checkpoint files, from which a fit that was stopped or killed resumes."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepmf._utils.atomic_files import UNREADABLE, write_whole
from deepmf._utils.safe_archives import load_npz
from deepmf._utils.version import __version__
from deepmf._utils.warnings import warn
from deepmf.core.parameters import check_number

_FORMAT = "deepmf checkpoint 1"
_UNNAMED = "0.1.0"
"""The version of checkpoints that name none."""

_ARRAY, _RECORD = "@array", "@record"
_AWAY = "delete it to begin anew, or give another path."


class Checkpoint:
    """A file that is written at intervals during a fit, and from which the same fit resumes.

    It is replaced atomically, so that a kill at any moment leaves the last one or the one before.
    It records the data, the settings and the version of deepmf it belongs to, and refuses any
    other.

    Parameters
    ----------
    path : path
        The file.
    interval : float
        Seconds between two writes; 0: after every sweep.
    keep : bool
        Whether the file stays after the fit is done; the caller then calls `remove`, once the
        results are safe.

    Examples
    --------
    >>> from deepmf import Checkpoint, factorize
    >>> from deepmf.datasets import synthetic
    >>> X = synthetic(random_state=0).X
    >>> often = Checkpoint("fit.checkpoint", interval=10)
    >>> f = factorize(X, [3, 2], max_iter=20, tol=0, checkpoint=often)
    """

    def __init__(
        self, path: str | os.PathLike[str], interval: float = 60.0, keep: bool = False
    ) -> None:
        if not isinstance(path, str | os.PathLike) or not os.fspath(path):
            raise ValueError(f"checkpoint must be the path of a file, got {path!r}.")
        check_number("The interval of checkpoints", interval, 0)
        self.path, self.interval, self.keep = Path(path), interval, keep
        self._owner: Mapping[str, Any] = {}
        self._last = time.perf_counter()

    @classmethod
    def of(cls, given: Any) -> Checkpoint | None:
        """The checkpoint meant by a path, by a mapping such as ``{"path": "c"}``, or by None."""
        if given is None or isinstance(given, Checkpoint):
            return given
        if not isinstance(given, Mapping):
            return cls(given)
        try:
            return cls(**given)
        except TypeError:
            raise ValueError(
                f"checkpoint must have a path and may have an interval, got {dict(given)!r}."
            ) from None

    def bind(self, owner: Mapping[str, Any]) -> None:
        """Set the `fingerprint` of the fit, and refuse a path that cannot be written to."""
        folder = self.path.absolute().parent
        if not folder.is_dir():
            raise FileNotFoundError(
                f"The folder {str(folder)!r} does not exist; make it for the checkpoint first."
            )
        if self.path.is_dir():
            raise IsADirectoryError(
                f"The checkpoint {str(self.path)!r} is a folder; give the name of a file."
            )
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(
                f"Nothing can be written in {str(folder)!r}; choose another checkpoint."
            )
        self._owner = json.loads(json.dumps(owner))
        self._last = time.perf_counter()
        self._clear()

    @property
    def due(self) -> bool:
        """Whether the interval has passed."""
        return time.perf_counter() - self._last >= self.interval

    def save(self, moment: Any) -> None:
        """Replace the file; if that fails, warn and leave the last one.

        ``moment`` may hold dicts with text for keys, lists, tuples (which become lists), numbers,
        arrays, dataclasses and named tuples.
        """
        arrays: list[NDArray] = []
        content = {
            "format": _FORMAT,
            "version": __version__,
            "owner": self._owner,
            "moment": _packed(moment, arrays),
        }
        members = {f"array{k}": M for k, M in enumerate(arrays)}
        members["content"] = np.array(json.dumps(content))
        try:
            write_whole(self.path, lambda file: np.savez(file, **members))  # type: ignore[arg-type]
        except OSError as error:
            warn(
                f"The checkpoint {str(self.path)!r} could not be written "
                f"({error.strerror or error}); the fit continues, and the last one stays."
            )
        self._last = time.perf_counter()

    def load(self, records: Mapping[str, Callable[..., Any]]) -> Any:
        """Read what `save` was given, with constructors of its records by name; None: no file."""
        try:
            arrays = load_npz(self.path)
            content = json.loads(str(arrays["content"]))
            if content["format"] != _FORMAT:
                raise ValueError("format")
            owner, packed = dict(content["owner"]), dict(content["moment"])
        except FileNotFoundError:
            return None
        except PermissionError:
            raise PermissionError(f"The checkpoint {str(self.path)!r} cannot be read.") from None
        except UNREADABLE as error:
            raise self._damaged(error) from None
        self._check_owner(owner, content.get("version", _UNNAMED))
        try:
            spoiled = [name for name, value in packed.items() if not _finite(value, arrays)]
            moment = _unpacked(packed, arrays, records)
        except UNREADABLE as error:
            raise self._damaged(error) from None
        if spoiled:
            raise ValueError(
                f"The checkpoint {str(self.path)!r} holds NaN or infinite numbers (in its "
                f"{spoiled[0]}): it is damaged, or its fit had failed; {_AWAY}"
            )
        return moment

    def _damaged(self, error: BaseException) -> ValueError:
        return ValueError(
            f"{str(self.path)!r} is not a whole checkpoint of this version of deepmf "
            f"({type(error).__name__}); {_AWAY}"
        )

    def _check_owner(self, owner: Mapping[str, Any], version: str) -> None:
        """Refuse the checkpoint of another version, of other data or of other settings."""
        name = str(self.path)
        if version != __version__:
            raise ValueError(
                f"The checkpoint {name!r} was written by deepmf {version}, but this is deepmf "
                f"{__version__}, whose sweeps may differ: finish the fit with deepmf {version}, "
                f"or {_AWAY}"
            )
        for what in {**self._owner, **owner}:
            if owner.get(what) != self._owner.get(what):
                raise ValueError(
                    f"The checkpoint {name!r} belongs to another fit, with {what} "
                    f"{_short(owner.get(what))} where this one has "
                    f"{_short(self._owner.get(what))}; {_AWAY}"
                )

    def done(self) -> None:
        """Remove the file of a fit that has ended by itself, unless it is to be kept."""
        if not self.keep:
            self.remove()

    def remove(self) -> None:
        """Delete the file."""
        self.path.unlink(missing_ok=True)
        self._clear()

    def _clear(self) -> None:
        """Delete the partial files of processes that were killed while writing."""
        for part in self.path.absolute().parent.glob(f".{self.path.name}.*.part"):
            part.unlink(missing_ok=True)

    def __repr__(self) -> str:
        return f"Checkpoint({str(self.path)!r}, interval={self.interval!r}, keep={self.keep!r})"


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _packed(value: Any, arrays: list[NDArray]) -> Any:
    """A value as JSON data; arrays are added to the list and replaced by their index."""
    if isinstance(value, np.ndarray):
        known = next((k for k, M in enumerate(arrays) if M is value), len(arrays))
        if known == len(arrays):
            arrays.append(value)
        return {_ARRAY: known}
    if isinstance(value, np.generic):
        return value.item()
    names: Sequence[str] = getattr(value, "_fields", ())
    if is_dataclass(value):
        names = [field.name for field in fields(value)]
    if names:
        parts = {name: _packed(getattr(value, name), arrays) for name in names}
        return {_RECORD: type(value).__name__, **parts}
    if isinstance(value, dict):
        return {name: _packed(part, arrays) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_packed(part, arrays) for part in value]
    return value


def _unpacked(
    value: Any, arrays: Mapping[str, NDArray], records: Mapping[str, Callable[..., Any]]
) -> Any:
    if isinstance(value, list):
        return [_unpacked(part, arrays, records) for part in value]
    if not isinstance(value, dict):
        return value
    if _ARRAY in value:
        return arrays[f"array{value[_ARRAY]}"]
    parts = {
        name: _unpacked(part, arrays, records) for name, part in value.items() if name != _RECORD
    }
    return records[value[_RECORD]](**parts) if _RECORD in value else parts


def _finite(value: Any, arrays: Mapping[str, NDArray]) -> bool:
    """Whether all numbers of a packed value are finite, errors that are not known yet apart."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, list):
        return all(_finite(part, arrays) for part in value)
    if not isinstance(value, dict):
        return True
    if _ARRAY in value:
        M = arrays[f"array{value[_ARRAY]}"]
        return M.dtype.kind != "f" or bool(np.isfinite(M).all())
    if value.get(_RECORD) == "Progress":
        return math.isfinite(value["objective"])
    return all(_finite(part, arrays) for part in value.values())
