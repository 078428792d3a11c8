"""Calls of the CUDA driver and of NVRTC that PyTorch does not offer."""

from __future__ import annotations

import ctypes
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray

_ATTRIBUTE_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_OPT_IN = 97  # CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
_HOST, _DEVICE = 1, 2  # CUmemorytype


class NoPassError(RuntimeError):
    """The device has no kernels of its own for what is asked, and why."""


class Kernel:
    """A compiled function of a device."""

    def __init__(self, function: ctypes.c_void_p, threads: tuple[int, int], shared: int) -> None:
        self.function, self.threads, self.shared = function, threads, shared
        _call("cuFuncSetAttribute", function, _ATTRIBUTE_SHARED, shared)
        resident = ctypes.c_int()
        _call(
            "cuOccupancyMaxActiveBlocksPerMultiprocessor",
            ctypes.byref(resident),
            function,
            threads[0] * threads[1],
            ctypes.c_size_t(shared),
        )
        self.resident = resident.value
        """Blocks that a multiprocessor holds at a time."""

    def __call__(self, grid: tuple[int, int, int], *arguments: Any) -> None:
        """Queue it on the current stream: tensors go as pointers, ints as 64 bits."""
        values = [
            ctypes.c_void_p(a.data_ptr()) if isinstance(a, torch.Tensor) else ctypes.c_longlong(a)
            for a in arguments
        ]
        places = (ctypes.c_void_p * len(values))(
            *(ctypes.cast(ctypes.pointer(v), ctypes.c_void_p) for v in values)
        )
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        _call("cuLaunchKernel", self.function, *grid, *self.threads, 1, self.shared, stream, places,
              None)  # fmt: skip


def kernels(source: str, names: Mapping[str, tuple[tuple[int, int], int]]) -> dict[str, Kernel]:
    """Functions of a source for the current device, by name: their threads and shared memory."""
    module = ctypes.c_void_p()
    torch.cuda.current_stream().synchronize()  # makes the device's context this thread's own
    _call(
        "cuModuleLoadData",
        ctypes.byref(module),
        _compiled(source, torch.cuda.get_device_capability()),
    )
    out = {}
    for name, (threads, shared) in names.items():
        function = ctypes.c_void_p()
        _call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        out[name] = Kernel(function, threads, shared)
    return out


def shared_memory() -> int:
    """Bytes of shared memory that a block may have on the current device."""
    device, size = ctypes.c_int(), ctypes.c_int()
    torch.cuda.current_stream().synchronize()
    _call("cuCtxGetDevice", ctypes.byref(device))
    _call("cuDeviceGetAttribute", ctypes.byref(size), _OPT_IN, device)
    return size.value


def copy(part: NDArray, to: torch.Tensor, stream: torch.cuda.Stream) -> None:
    """Queue the copy of a matrix to a device; both have contiguous rows or contiguous columns."""
    by_row = to.stride(1) == 1
    lines, length = part.shape if by_row else part.shape[::-1]
    width = length * part.itemsize
    job = _Copy(
        source_kind=_HOST,
        source_host=part.ctypes.data,
        source_pitch=max(width, part.strides[0 if by_row else 1]),  # of a single line: anything
        target_kind=_DEVICE,
        target_device=to.data_ptr(),
        target_pitch=max(width, to.stride(0 if by_row else 1) * part.itemsize),
        width=width,
        height=lines,
    )
    _call("cuMemcpy2DAsync_v2", ctypes.byref(job), ctypes.c_void_p(stream.cuda_stream))


def lock(X: NDArray, device: torch.device) -> Callable[[], object] | None:
    """Keep an array's pages in memory; gives what undoes it, or None where it is not allowed."""
    torch.cuda.current_stream(device).synchronize()
    place = ctypes.c_void_p(X.ctypes.data)
    if _driver().cuMemHostRegister_v2(place, ctypes.c_size_t(X.nbytes), 0) != 0:
        return None
    return weakref.finalize(X, _driver().cuMemHostUnregister, place)


class _Copy(ctypes.Structure):
    """CUDA_MEMCPY2D."""

    _fields_ = (
        ("source_x", ctypes.c_size_t),
        ("source_y", ctypes.c_size_t),
        ("source_kind", ctypes.c_int),
        ("source_host", ctypes.c_void_p),
        ("source_device", ctypes.c_void_p),
        ("source_array", ctypes.c_void_p),
        ("source_pitch", ctypes.c_size_t),
        ("target_x", ctypes.c_size_t),
        ("target_y", ctypes.c_size_t),
        ("target_kind", ctypes.c_int),
        ("target_host", ctypes.c_void_p),
        ("target_device", ctypes.c_void_p),
        ("target_array", ctypes.c_void_p),
        ("target_pitch", ctypes.c_size_t),
        ("width", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
    )


@cache
def _driver() -> Any:
    return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")


def _call(name: str, *arguments: Any) -> None:
    """A call of the driver, or its own message on why it failed."""
    code = getattr(_driver(), name)(*arguments)
    if code != 0:
        text = ctypes.c_char_p()
        _driver().cuGetErrorString(code, ctypes.byref(text))
        said = (text.value or b"error %d" % code).decode()
        raise RuntimeError(f"The CUDA driver's {name} failed: {said}.")


@cache
def _compiled(source: str, kind: tuple[int, int]) -> bytes:
    """Machine code of a CUDA C++ source."""
    rtc, program = _compiler(), ctypes.c_void_p()
    options = [f"--gpu-architecture=sm_{kind[0]}{kind[1]}", "--std=c++17"]
    rtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"pass.cu", 0, None, None)
    given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    try:
        if rtc.nvrtcCompileProgram(program, len(options), given) != 0:
            log = _fetch(rtc, "ProgramLog", program).decode(errors="replace").strip("\0\n ")
            raise NoPassError(f"NVIDIA's compiler refuses sm_{kind[0]}{kind[1]}: {log[:300]}")
        return _fetch(rtc, "CUBIN", program)
    finally:
        rtc.nvrtcDestroyProgram(ctypes.byref(program))


def _fetch(rtc: Any, what: str, program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    getattr(rtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(rtc, f"nvrtcGet{what}")(program, text)
    return text.raw


@cache
def _compiler() -> Any:
    """The NVRTC library that comes with PyTorch."""
    major = str(torch.version.cuda).partition(".")[0]
    home = Path(torch.__file__).parent
    places: Sequence[Path] = [
        *home.parent.glob(f"nvidia/*/lib/libnvrtc.so.{major}*"),
        *home.glob("lib/libnvrtc*.so*"),
        *home.glob(f"lib/nvrtc64_{major}*_0.dll"),
    ]
    for place in (f"libnvrtc.so.{major}", *map(str, places)):
        try:
            return ctypes.CDLL(place)
        except OSError:
            continue
    raise NoPassError("NVIDIA's run-time compiler (NVRTC) is not where PyTorch keeps it")
