"""Digests of matrices, functions and objects that are the same in every process."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))


def column_hashes(X: Any) -> NDArray[np.uint64]:
    """A 64-bit hash of each column of a dense or sparse matrix, from its values in float64.

    ::

        hash_j = sum_i k_i mix(bits of X(i, j))  modulo 2^64,    k_i odd and fixed

    Sums of integers are exact: neither storage format, block width nor thread count can change
    them, and zeros that are not stored contribute nothing.
    """
    k = _multipliers(X.shape[0])
    if sparse.issparse(X):
        X = X.tocsc()
        sums = np.append(np.uint64(0), np.cumsum(k[X.indices] * _mixed_bits(X.data)))
        return sums[X.indptr[1:]] - sums[X.indptr[:-1]]
    return np.einsum("i,ij->j", k, _mixed_bits(X))


def _mixed_bits(values: NDArray) -> NDArray[np.uint64]:
    """The bits of float64 values; high bits also reach low ones, which integers leave at zero."""
    exact = np.add(values, 0.0, dtype=np.float64)  # turns -0.0 into 0.0
    bits = exact.view(np.uint64)
    return bits ^ (bits >> np.uint64(32))


def _multipliers(count: int) -> NDArray[np.uint64]:
    """Fixed odd 64-bit numbers that look random (SplitMix64)."""
    z = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))) | np.uint64(1)


def digest(*values: Any, unknown: set[str] | None = None) -> str:
    """Sixteen hexadecimal digits that differ where the values do.

    Plain data and arrays are read by value; functions by their code, defaults, closures and the
    globals they name; `functools.partial` and methods by their parts; classes and modules by
    name; other objects by their class and attributes. Functions of other modules that a function
    uses are read without their globals. Types whose values cannot be read are added to ``unknown``.
    """
    reader = _Reader()
    found = reader.read(values).hex()[:16]
    if unknown is not None:
        unknown |= reader.unknown
    return found


def qualified_name(thing: Any) -> str:
    """Module and name of a function, a class, or an object's class."""
    named = thing if hasattr(thing, "__qualname__") else type(thing)
    return f"{getattr(named, '__module__', None)}.{named.__qualname__}"


class _Reader:
    """Reads nested values, each once on the way down."""

    def __init__(self) -> None:
        self.unknown: set[str] = set()
        self._open: set[int] = set()
        self._module: str | None = None

    def read(self, value: Any) -> bytes:
        """The SHA-256 of a value of any type."""
        if id(value) in self._open:
            return b"cycle"
        self._open.add(id(value))
        try:
            return self._content(value)
        finally:
            self._open.discard(id(value))

    def _content(self, value: Any) -> bytes:
        if isinstance(value, np.generic):
            value = value.item()
        kind = type(value).__qualname__
        if isinstance(value, _PLAIN):
            return _sha(kind, [repr(value).encode()])
        if isinstance(value, list | tuple):
            return _sha(kind, map(self.read, value))
        if isinstance(value, dict):
            return _sha(kind, sorted(self.read(k) + self.read(v) for k, v in value.items()))
        if isinstance(value, set | frozenset):
            return _sha(kind, sorted(map(self.read, value)))
        if hasattr(value, "__array__") and not isinstance(value, type):
            M = np.asarray(value)
            raw = self.read(M.tolist()) if M.dtype.hasobject else M.tobytes()
            return _sha(f"{M.dtype.str}{M.shape}", [raw])
        return _sha(kind, map(self.read, self._parts(value)))

    def _parts(self, value: Any) -> list[Any]:
        """The parts that make up a function or an object."""
        if isinstance(value, CodeType):
            return [value.co_code, value.co_consts, value.co_names, value.co_argcount]
        if isinstance(value, FunctionType):
            self._module = self._module or value.__module__
            cells = [_cell(cell) for cell in value.__closure__ or ()]
            near = _globals(value, value.__code__) if value.__module__ == self._module else {}
            return [value.__code__, value.__defaults__, value.__kwdefaults__, cells, near]
        if isinstance(value, MethodType):
            return [value.__func__, value.__self__]
        if isinstance(value, partial):
            return [value.func, value.args, value.keywords]
        if isinstance(value, ModuleType):
            return [value.__name__]
        if hasattr(value, "__qualname__"):
            return [qualified_name(value)]
        name = qualified_name(value)
        if not hasattr(value, "__dict__"):
            self.unknown.add(name)
            return [name]
        calls = (vars(base).get("__call__") for base in type(value).__mro__)
        return [name, vars(value), next(filter(None, calls), None)]


def _globals(function: FunctionType, code: CodeType) -> dict[str, Any]:
    """Global variables that a function, or one inside it, names."""
    found = {k: v for k, v in function.__globals__.items() if k in code.co_names}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found |= _globals(function, inner)
    return found


def _cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None


def _sha(kind: str, parts: Iterable[bytes]) -> bytes:
    seen = hashlib.sha256(kind.encode())
    for part in parts:
        seen.update(len(part).to_bytes(8, "little"))
        seen.update(part)
    return seen.digest()
