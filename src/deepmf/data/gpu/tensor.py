"""PyTorch tensors as `Matrix`, and matrices sent to a PyTorch device."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepmf._utils.messages import Message, SettingError, setting
from deepmf.data.in_memory import Dense
from deepmf.data.matrix import Matrix, Stats
from deepmf.data.on_disk import OnDisk

try:
    import torch
except ImportError:
    raise ImportError(
        "device= needs PyTorch, which is not installed: pip install 'deepmf[gpu]'.", name="torch"
    ) from None

_BLOCK = 1 << 16
"""Columns looked at together."""

_SHARE = 0.8
"""Part of a device's free memory that X may take; a larger X is sent block by block, each pass."""

_EXACT = torch.float64
_TYPES = {torch.float32: np.dtype(np.float32), torch.float64: np.dtype(np.float64)}


class TensorData(Matrix):
    """A tensor on the device where it is worked on, or a matrix that is sent there in blocks.

    Parameters
    ----------
    array : tensor, array or OnDisk, m x n
        A tensor is worked on where it is; anything else is sent to ``device``, block by block.
    device : torch.device, optional
        Where to work; default: where the tensor is.
    home : torch.device, optional
        Where results are tensors; ``None``: they are NumPy arrays.
    """

    def __init__(self, array: Any, device: Any = None, home: Any = "where it is") -> None:
        self.array = array
        self.device: torch.device = array.device if device is None else device
        self.home: torch.device | None = array.device if home == "where it is" else home
        self.shape = tuple(array.shape)  # two numbers, once checked
        self.dtype: Any = _TYPES.get(array.dtype, array.dtype)

    @classmethod
    def sent(cls, matrix: Matrix, device: Any) -> TensorData:
        """A matrix on a device: all of it if there is room, else sent block by block."""
        where = usable(device)
        home: torch.device | None = None
        match matrix:
            case TensorData():
                X, home = matrix.array, matrix.home
                if isinstance(X, torch.Tensor) and X.device == where:
                    return matrix
            case Dense():
                X = matrix.array
            case OnDisk():
                X = matrix
            case _:
                raise TypeError(
                    f"device={str(device)!r} works on arrays and tensors, got "
                    f"{matrix.description}: pass a dense array, or leave device out."
                )
        there = cls._placed(X, where, home)
        there.transposed = matrix.transposed
        return there

    @classmethod
    def _placed(cls, X: Any, where: torch.device, home: torch.device | None) -> TensorData:
        size = math.prod(X.shape) * X.dtype.itemsize
        X = as_array(X) if isinstance(X, torch.Tensor) else X
        if where.type == "cuda" and size > _SHARE * torch.cuda.mem_get_info(where)[0]:
            return cls(X, where, home)
        if isinstance(X, np.ndarray) and not X.flags.f_contiguous:
            X = np.ascontiguousarray(X)
        with at_work(where):
            if where.type == "cuda":
                return cls(_copied(X, where), home=home)
            X = X.numpy() if isinstance(X, OnDisk) else X
            return cls(as_tensor(X), home=home)

    @property
    def T(self) -> TensorData:
        """See `Matrix.T`."""
        other = type(self)(self.array.T, self.device, self.home)
        other.transposed = not self.transposed
        return other

    def checked(self, name: str) -> TensorData:
        """See `Matrix.checked`."""
        X = self.array
        if not isinstance(X, torch.Tensor):
            return self
        if X.layout != torch.strided:
            raise TypeError(
                f"{name} is a sparse tensor ({X.layout}), but must be dense here: pass "
                f"{name}.to_dense(), or a SciPy sparse matrix without device."
            )
        if X.is_complex():
            raise TypeError(f"{name} is complex ({X.dtype}); pass its real part or its modulus.")
        if not X.is_floating_point():
            raise TypeError(
                f"{name} is a tensor of {X.dtype}, but must be of float32 or float64: pass "
                f"{name}.float() or {name}.double()."
            )
        if X.requires_grad:
            raise ValueError(
                f"{name} requires a gradient, but a fit is not differentiable: pass "
                f"{name}.detach()."
            )
        if X.device.type not in ("cpu", "cuda"):
            raise ValueError(f"{name} is on {X.device}, but must be on cpu or cuda: move it first.")
        if X.ndim != 2:
            raise ValueError(
                f"{name} must be a matrix (2-D), got shape {tuple(X.shape)}; "
                f"reshape a cube to (bands, pixels) and a single column to (m, 1)."
            )
        if min(X.shape) == 0:
            raise ValueError(f"{name} is empty: its shape is {tuple(X.shape)}.")
        if X.dtype in _TYPES:
            return self
        with at_work(X.device):  # half precision
            return type(self)(X.double(), home=self.home)

    @cached_property
    def stats(self) -> Stats:
        """See `Matrix.stats`; those of a tensor are computed on its device."""
        if not isinstance(self.array, torch.Tensor):
            return Stats.joined(Stats.of(block) for _, block in self.blocks())
        with at_work(self.device):
            return Stats.joined(map(_stats_of, torch.split(self.array, _BLOCK, dim=1)))

    def blocks(self) -> Iterator[tuple[int, NDArray]]:
        """See `Matrix.blocks`."""
        if isinstance(self.array, OnDisk):
            yield from self.array.blocks()
            return
        for start in range(0, self.shape[1], _BLOCK):
            yield start, as_array(self.array[:, start : start + _BLOCK])

    def numpy(self) -> NDArray:
        """See `Matrix.numpy`."""
        return as_array(self.array)

    def own(self, M: Any) -> Any:
        """See `Matrix.own`."""
        M = M if isinstance(M, torch.Tensor) else as_tensor(M)
        kind = next(torch_type for torch_type, dtype in _TYPES.items() if dtype == self.dtype)
        M = M.to(device="cpu" if self.home is None else self.home, dtype=kind)
        return M.numpy() if self.home is None else M

    def panels(self, width: int | None = None) -> Any:
        """See `Matrix.panels`."""
        from deepmf.data.gpu.panels import TensorPanels

        return TensorPanels(self, width)


@contextmanager
def at_work(device: torch.device) -> Iterator[None]:
    """Compute in full precision whatever PyTorch is set to; explain running out of memory."""
    settings: Any = torch.backends.cuda.matmul
    new = hasattr(settings, "fp32_precision")  # from PyTorch 2.9 on
    name, exact = ("fp32_precision", "ieee") if new else ("allow_tf32", False)
    before = getattr(settings, name)
    try:
        setattr(settings, name, exact)
        yield
    except torch.cuda.OutOfMemoryError as error:
        tried = re.search(r"allocate ([0-9.]+ \w+)", str(error))
        free = torch.cuda.mem_get_info(device)[0] / 2**30
        raise MemoryError(
            Message(
                f"{device} has no room: {tried[1] if tried else 'more'} was needed and {free:.2f} "
                f"GiB are free. Give X as a NumPy array with {setting(device='cuda')}, which sends "
                f"it block by block where it must, lower {setting('panel_size')}, or free some "
                f"memory."
            )
        ) from None
    finally:
        setattr(settings, name, before)


def as_tensor(M: Any) -> torch.Tensor:
    """An array as a CPU tensor, sharing memory where PyTorch can."""
    M = M if min(M.strides) >= 0 else M.copy()
    with warnings.catch_warnings():  # of an array that may not be written: nor is it here
        warnings.simplefilter("ignore")
        return torch.from_numpy(M)


def _stats_of(block: torch.Tensor) -> Stats:
    norms2 = as_array(torch.linalg.vector_norm(block, dim=0, dtype=_EXACT)) ** 2
    low, high, total = block.min(), block.max(), block.sum(dtype=_EXACT)
    return Stats(float(low), float(high), float(total), float(norms2.sum()), norms2)


def _copied(X: Any, device: torch.device) -> torch.Tensor:
    """A matrix on a device, in its order, with rows (or columns) at multiples of 16 bytes."""
    from deepmf.data.gpu import driver

    parts: Iterable[tuple[int, NDArray]] = X.blocks() if isinstance(X, OnDisk) else [(0, X)]
    by_row = isinstance(X, OnDisk) or X.flags.c_contiguous
    rows, length = X.shape if by_row else X.shape[::-1]
    dtype = as_tensor(np.empty(0, X.dtype)).dtype
    room = torch.empty((rows, -(-length // 4) * 4), dtype=dtype, device=device)[:, :length]
    to = room if by_row else room.T
    with torch.cuda.device(device):
        stream = torch.cuda.current_stream()
        for start, part in parts:
            driver.copy(part, to[:, start : start + part.shape[1]], stream)
            stream.synchronize()
    return to


def as_array(M: Any) -> NDArray:
    """A tensor, or a part of an array, as a NumPy array."""
    array: NDArray = M.detach().cpu().numpy() if isinstance(M, torch.Tensor) else np.asarray(M)
    return array


def usable(device: Any) -> torch.device:
    """The device by its name, once it is known to work."""
    try:
        where = torch.device(device)
    except (RuntimeError, TypeError):
        where = None
    if where is None or where.type not in ("cpu", "cuda"):
        raise SettingError(
            f"{setting('device')} must be 'cpu', 'cuda' or 'cuda:0', ..., got {device!r}."
        )
    if where.type == "cpu":
        return where
    if torch.version.cuda is None:
        raise RuntimeError(
            Message(
                f"{setting(device=str(device))} needs a PyTorch with CUDA, but the one installed "
                f"({torch.__version__}) has none: install one as pytorch.org says, or use "
                f"{setting(device='cpu')}."
            )
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.cuda.init()
            count = torch.cuda.device_count()
    except (RuntimeError, AssertionError) as error:
        raise RuntimeError(
            Message(
                f"{setting(device=str(device))} cannot be used: {_first_sentence(error)}. Check "
                f"the driver with nvidia-smi, or use {setting(device='cpu')}."
            )
        ) from None
    index = torch.cuda.current_device() if where.index is None else where.index
    if index >= count:
        raise SettingError(
            f"{setting(device=str(device))} does not exist: there {'is' if count == 1 else 'are'} "
            f"{count}, counted from cuda:0."
        )
    return torch.device("cuda", index)


def _first_sentence(error: BaseException) -> str:
    return str(error).splitlines()[0].partition(". ")[0].rstrip(".")
