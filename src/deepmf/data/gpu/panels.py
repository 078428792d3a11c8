"""Panels of a PyTorch tensor, on its device or sent there block by block; H_1 is on the device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, wraps
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from deepmf._utils.messages import setting
from deepmf._utils.warnings import warn
from deepmf.core.datafit import SquaredError
from deepmf.core.divergence import BetaDivergence
from deepmf.core.parameters import check_integer
from deepmf.core.quadratic import Array, Quadratic
from deepmf.core.state import DataSurrogates
from deepmf.core.terms import DataTerm
from deepmf.data.gpu.divergences import BasisSums, DivergenceCoding, distance, strips
from deepmf.data.gpu.streaming import blocks_of
from deepmf.data.gpu.tensor import TensorData, as_array, as_tensor, at_work
from deepmf.data.panels.base import Coding, Panels, squared_answer
from deepmf.data.panels.codes import Codes, Step
from deepmf.data.panels.svd import leading
from deepmf.solvers.base import Solver
from deepmf.solvers.positive import LOWEST, inward, positive_ahead

_EXACT = torch.float64
_WIDTH = {"cpu": 1 << 12, "cuda": 1 << 16}
"""Columns in a panel: on a device enough to keep it busy."""

Method = TypeVar("Method", bound=Callable[..., Any])


def _on_device(method: Method) -> Method:
    """A method of `TensorPanels` under the rules of `at_work`."""

    @wraps(method)
    def run(self: TensorPanels, *arguments: Any, **named: Any) -> Any:
        with at_work(self.data.device):
            return method(self, *arguments, **named)

    return run  # type: ignore[return-value]


class TensorCodes(Codes):
    """Codes on a device."""

    def _copy(self, H: Any) -> torch.Tensor:
        with at_work(self.H.device):
            copy = torch.empty(tuple(H.shape), dtype=self.H.dtype, device=self.H.device)
            return copy.copy_(H if isinstance(H, torch.Tensor) else as_tensor(H))

    def rescale(self, scales: Array) -> None:
        """See `Codes.rescale`."""
        with at_work(self.H.device):
            by = as_tensor(np.ascontiguousarray(scales)).to(self.H.device, self.H.dtype)
            self.take(self.H * by[:, None])

    def _like(self, H: Any) -> torch.Tensor:
        return torch.empty_like(H)


class TensorPanels(Panels):
    """Column panels of a tensor; only A, G, X H' and H H' travel between device and CPU.

    On a CUDA device the whole update of the codes is one pass of compiled kernels, see `kernels`,
    where the solver and the set have one, and the penalty is a shift by numbers (`L1`, `Ridge`).
    For others G'X comes to the CPU and new codes go back, panel by panel. Beta divergences go
    through the operations of PyTorch, see `divergences`.

    Parameters
    ----------
    data : TensorData
        The matrix and its device.
    width : int, optional
        Columns in a panel.
    """

    any_datafit = True

    def __init__(self, data: TensorData, width: int | None = None) -> None:
        self.data = data
        self.shape, self.dtype = data.shape, data.dtype
        self.width = _WIDTH[data.device.type] if width is None else width
        check_integer(setting("panel_size"), self.width, 1)
        self.count = -(-self.shape[1] // self.width)
        self.type = as_tensor(np.empty(0, self.dtype)).dtype
        self.blocks = blocks_of(data.array, data.device, self.type)
        self._passes: dict[Any, Any] = {}
        self.norm2 = data.stats.norm2

    @cached_property
    def codes(self) -> TensorCodes:
        """See `Panels.codes`."""
        return TensorCodes(self._zeros(0, self.shape[1], self.type))

    @_on_device
    def own(self, M: Any) -> Any:
        """See `Panels.own`."""
        return self.data.own(M)

    def close(self) -> None:
        """See `Panels.close`."""
        self.blocks.close()
        self._passes.clear()

    def _zeros(self, *shape: Any) -> torch.Tensor:
        """An empty matrix of a shape and a type on the device."""
        return torch.zeros(shape[:-1], dtype=shape[-1], device=self.data.device)

    def _small(self, M: Array) -> torch.Tensor:
        """A matrix of the small side on the device."""
        return as_tensor(np.ascontiguousarray(M)).to(self.data.device, self.type)

    def _panels(self) -> Iterator[tuple[slice, torch.Tensor]]:
        """Columns of X on the device, panel by panel."""
        return self.blocks.each(self.width)

    # --- the fit -----------------------------------------------------------------------------

    def check_datafits(self, terms: Sequence[DataTerm]) -> None:
        """See `Panels.check_datafits`: squared errors and beta divergences alone."""
        wrong = [t.fit for t in terms if type(t.fit) not in (SquaredError, BetaDivergence)]
        if wrong:
            raise ValueError(
                f"{wrong[0]!r} cannot be fitted to tensors or on a device, which know squared "
                f"errors and beta divergences alone. Give X as a NumPy array, without device."
            )

    @_on_device
    def begin(self, coding: Coding, positive: bool = False) -> None:
        """See `Panels.begin`."""
        K = self._small(coding.least_squares)
        H = self._zeros(coding.rank, self.shape[1], self.type)
        for cols, P in self._panels():
            torch.matmul(K, P, out=H[:, cols])
        if positive:
            H.clamp_(min=LOWEST * float(H.abs().mean(dtype=_EXACT)))
        for start in range(0, self.shape[1], self.width):
            some = H[:, start : start + self.width]
            own = coding.constraint.project(as_array(some))
            some.copy_(as_tensor(inward(own, coding.constraint) if positive else own))
        self.codes.take(H)

    @_on_device
    def update(self, coding: Coding, solver: Solver, max_iter: int, tol: float) -> DataSurrogates:
        """See `Panels.update`; the kernels extrapolate and improve the codes in one go."""
        self.check_datafits(coding.terms)
        H = self.codes.H
        step = Step(H, H, 0.0) if coding.ahead is None else self.codes.step(coding.ahead)
        if not coding.squared:
            return self._by_majorizers(coding, step, max_iter, tol)
        found = self._compiled(coding, solver, max_iter, tol)
        if found is None:
            XHt, HHt, penalty = self._by_panels(coding, step, solver, max_iter, tol)
        else:
            over, A, (tau, shift), descent = found
            XHt, HHt = over(A, coding.G, shift, step, descent)
            total = float(self.codes.H.sum(dtype=_EXACT)) if shift else 0.0
            penalty = 0.5 * tau * float(np.trace(HHt)) - shift * total
            penalty = penalty / coding.strength if coding.strength else 0.0
        return squared_answer(XHt, HHt, self.norm2, len(coding.terms), penalty)

    def improve(self, coding: Coding, solver: Solver, max_iter: int, tol: float) -> DataSurrogates:
        """See `Panels.improve`."""
        return self.update(replace(coding, ahead=None), solver, max_iter, tol)

    def _compiled(self, coding: Coding, solver: Solver, max_iter: int, tol: float) -> Any:
        """The device's pass, A, the penalty's shift and the descent's settings; None: no pass.

        A penalty whose majorizer is the same for all codes is its own value (up to a constant).
        """
        if self.data.device.type != "cuda":
            return None
        shift = coding.shift(np.ones((coding.rank, 1), self.dtype))
        if shift is None or not isinstance(shift[1], float):
            return None
        A = coding.A + shift[0] * np.eye(coding.rank)
        descent = solver.column_kernel(A, coding.constraint, self.dtype, max_iter, tol)
        if descent is None:
            return None
        over = self._pass(*coding.G.shape, descent.set_code, descent.accelerated)
        return None if over is None else (over, A, shift, descent)

    def _pass(self, *sizes: Any) -> Any:
        """The device's own way over X for these sizes, or None where it has none."""
        from deepmf.data.gpu.driver import NoPassError
        from deepmf.data.gpu.kernels import Pass

        if sizes not in self._passes:
            try:
                self._passes[sizes] = Pass(self.blocks, self.type, self.width, *sizes)
            except NoPassError as error:
                warn(f"Codes are updated on the CPU: {error}.")
                self._passes[sizes] = None
        return self._passes[sizes]

    def _by_panels(
        self, coding: Coding, step: Step, solver: Solver, max_iter: int, tol: float
    ) -> tuple[Array, Array, float]:
        """Update the codes with any set, penalty and solver; X H', H H' and the penalty."""
        Gt, to = self._small(coding.G.T), step.to
        m, r = coding.G.shape
        A = coding.A.astype(self.dtype)
        XHt, HHt, penalty = self._zeros(m, r, _EXACT), self._zeros(r, r, _EXACT), 0.0
        for cols, P in self._panels():
            H = _begun(coding, step, cols)
            q = coding.with_penalty(Quadratic.of(A=A, C=as_array(Gt @ P)), H)
            H = solver.improve(q, coding.constraint, H, max_iter, tol)
            to[:, cols] = as_tensor(H)
            H64 = to[:, cols].double()
            XHt += P.double() @ H64.T
            HHt += H64 @ H64.T
            penalty += coding.penalty(H)
        return as_array(XHt), as_array(HHt), penalty

    def _by_majorizers(
        self, coding: Coding, step: Step, max_iter: int, tol: float
    ) -> DataSurrogates:
        """Update the codes for divergences, a strip of each panel at a time."""
        problem = DivergenceCoding(coding, self.data.device)
        sums = [BasisSums(t, self.data.device) for t in coding.terms]
        HHt, penalty = self._zeros(coding.rank, coding.rank, _EXACT), 0.0
        for cols, T in strips(self._panels()):
            H = problem.descend(T, _begun(coding, step, cols), max_iter, tol)
            step.to[:, cols] = as_tensor(H)
            H64 = step.to[:, cols].double()
            for own in sums:
                own.add(T, H64)
            HHt += H64 @ H64.T
            penalty += coding.penalty(H)
        terms = tuple(own.surrogate(self.norm2) for own in sums)
        return DataSurrogates(terms, False, penalty, as_array(HHt))

    @_on_device
    def values(self, terms: Sequence[DataTerm]) -> Array:
        """See `Panels.values`."""
        self.check_datafits(terms)
        if all(type(t.fit) is SquaredError for t in terms):
            return super().values(terms)
        out = self._zeros(len(terms), _EXACT)
        bases = [as_tensor(np.ascontiguousarray(t.B)).to(self.data.device, _EXACT) for t in terms]
        for cols, T in strips(self._panels()):
            H = self.codes.H[:, cols].double()
            for k, (t, B) in enumerate(zip(terms, bases)):
                out[k] += distance(t.fit, T, B @ H)
        return as_array(out)

    @_on_device
    def row_sums(self) -> Array:
        """See `Panels.row_sums`."""
        out = self._zeros(self.shape[0], 1, _EXACT)
        for _, P in self._panels():
            out += P.sum(dim=1, keepdim=True, dtype=_EXACT)
        return as_array(out)

    @_on_device
    def residuals2(self, bases: Sequence[Array]) -> Array:
        """See `Panels.residuals2`."""
        small = [self._small(B) for B in bases]
        out = self._zeros(len(bases), _EXACT)
        for cols, P in self._panels():
            for i, B in enumerate(small):
                rest = torch.addmm(P, B, self.codes.H[:, cols], alpha=-1)
                out[i] += torch.sum(rest.square_(), dtype=_EXACT)
        return as_array(out)

    # --- the starts --------------------------------------------------------------------------

    def column_norms2(self) -> Array:
        """See `Panels.column_norms2`."""
        return np.asarray(self.data.stats.norms2)

    @_on_device
    def columns(self, index: Sequence[int] | NDArray[np.intp]) -> Array:
        """See `Panels.columns`."""
        return self.blocks.some(np.asarray(index, dtype=np.intp)).astype(np.float64)

    @_on_device
    def dot(self, G: Array, index: NDArray[np.intp] | None = None) -> Array:
        """See `Panels.dot`."""
        if index is not None:
            return G.T @ self.columns(index)
        Gt = self._small(G.T)
        return np.concatenate([as_array((Gt @ P).double()) for _, P in self._panels()], axis=1)

    @_on_device
    def leading(self, k: int, members: NDArray[np.bool_] | None = None) -> tuple[Array, Array]:
        """See `Panels.leading`."""

        def gram() -> Array:
            total = self._zeros(self.shape[0], self.shape[0], _EXACT)
            for P in self._members(members):
                total += P @ P.T
            return as_array(total)

        def gram_times(v: Array) -> Array:
            there, total = self._small(v), self._zeros(self.shape[0], _EXACT)
            for P in self._members(members):
                total += P @ (P.T @ there)
            return as_array(total)

        return leading(self.shape[0], k, gram, gram_times)

    def _members(self, members: NDArray[np.bool_] | None) -> Iterator[torch.Tensor]:
        for cols, P in self._panels():
            yield P if members is None else P[:, torch.as_tensor(members[cols], device=P.device)]


def _begun(coding: Coding, step: Step, cols: slice) -> Array:
    """Codes of some columns from which a step begins."""
    if not step.beta:
        return as_array(step.H[:, cols])
    if coding.keeps_zeros:
        H, before = as_array(step.H[:, cols]), as_array(step.to[:, cols])
        return positive_ahead(H, before, step.beta, coding.constraint)
    ahead = step.H[:, cols] + step.beta * (step.H[:, cols] - step.to[:, cols])
    return coding.constraint.project(as_array(ahead))
