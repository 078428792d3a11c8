"""Settings by name: how constraints, regularizers, losses and solvers carry their parameters."""

from __future__ import annotations

import inspect
from functools import cache
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np

from deepmf._utils.messages import SettingError


def check_integer(what: str, value: Any, low: int) -> None:
    """Refuse all but an integer of at least ``low``."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < low:
        raise SettingError(f"{what} must be an integer of at least {low}, got {value!r}.")


def check_number(what: str, value: Any, low: float, high: float = float("inf")) -> None:
    """Refuse all but a real number in [low, high]."""
    real = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    if not real or not low <= value <= high:
        upper = f" and at most {high:g}" if high < float("inf") else ""
        raise SettingError(f"{what} must be a number of at least {low:g}{upper}, got {value!r}.")


def _plain(value: Any) -> Any:
    """NumPy numbers and arrays as Python numbers and lists, and parametrized objects by spec."""
    if isinstance(value, Parametrized):
        return value.spec()
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value


@cache
def _signature(cls: type) -> inspect.Signature:
    """The constructor's signature, which takes long to find."""
    return inspect.signature(cls)


class Parametrized:
    """A small object that is nothing but its constructor's arguments.

    Gives equality, a faithful ``repr``, scikit-learn's ``get_params`` / ``set_params`` (so that
    ``GridSearchCV`` reaches ``regularizer_W__weight``) and a JSON-ready ``spec``. A subclass stores
    each argument of its ``__init__`` under the argument's own name.
    """

    name: ClassVar[str] = ""
    """Name by which users ask for this class with default settings, for example ``"simplex"``."""

    @classmethod
    def parameter_names(cls) -> list[str]:
        """Names of the constructor's arguments."""
        return [p for p in _signature(cls).parameters if p not in ("args", "kwargs")]  # type: ignore[arg-type]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; ``deep`` is there for scikit-learn and changes nothing."""
        return {p: getattr(self, p) for p in self.parameter_names()}

    def set_params(self, **params: Any) -> Self:
        """Change parameters in place, with the constructor's own checks."""
        unknown = sorted(set(params) - set(self.parameter_names()))
        if unknown:
            raise ValueError(
                f"{type(self).__name__} has no parameter {unknown[0]!r}; "
                f"it has {', '.join(self.parameter_names()) or 'none'}."
            )
        type(self).__init__(self, **{**self.get_params(), **params})
        return self

    def spec(self) -> dict[str, Any]:
        """Name and parameters as plain data, for files."""
        params = {k: _plain(v) for k, v in self.get_params().items()}
        return {"name": self.name or type(self).__name__, **params}

    @classmethod
    def from_spec(cls, params: dict[str, Any]) -> Self:
        """An object from the parameters of a `spec`, those of older versions included."""
        return cls(**params)

    def __repr__(self) -> str:
        inside = ", ".join(f"{k}={v!r}" for k, v in self.get_params().items())
        return f"{type(self).__name__}({inside})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.spec() == other.spec()

    def __hash__(self) -> int:
        return hash(repr(self))
