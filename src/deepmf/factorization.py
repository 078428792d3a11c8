"""The result of a fit."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from deepmf._utils.atomic_files import UNREADABLE, write_whole
from deepmf._utils.messages import counted
from deepmf._utils.safe_archives import load_npz
from deepmf._utils.threads import single_blas
from deepmf.core.datafit import SQUARED, Datafit
from deepmf.core.divergence import beta_of
from deepmf.core.parameters import Parametrized, check_integer
from deepmf.core.quadratic import Array
from deepmf.core.state import State
from deepmf.core.terms import DataTerm, Model
from deepmf.data.containers import check_same_features
from deepmf.data.dataset import Dataset
from deepmf.data.layout import Layout
from deepmf.data.matrix import Matrix, as_numpy
from deepmf.data.panels import Coding, Panels
from deepmf.data.preparation import check_unprepared, prepared_alike, weights_of, words_of
from deepmf.data.validation import (
    as_matrix,
    check_divergence,
    check_scale,
    check_seen,
    check_whole,
)
from deepmf.fitting.diagnostics.finding import Finding
from deepmf.fitting.history import History
from deepmf.fitting.problem import Problem, problem_from_spec
from deepmf.fitting.registry import UnknownNameError
from deepmf.hierarchy.names import feature_names, layer_names, top_rows
from deepmf.hierarchy.tree import draw_tree
from deepmf.metrics import links
from deepmf.regularizers import Regularizer
from deepmf.regularizers.stacked import Part, Stacked
from deepmf.unmixing import LayerView

_FORMAT = "deepmf factorization 1"

_ENCODE_ITER = 20_000
_ENCODE_TOL = 1e-8

_MAJORIZED_ITER, _MAJORIZED_TOL = 1000, 1e-5
"""Limits with a divergence, whose steps gain less."""


@dataclass(frozen=True, repr=False, eq=False)
class Factorization:
    """X ~ W_1 H_1, W_1 ~ W_2 H_2, ...: factors, history and settings.

    Columns are data points, as in the paper. Layers count from 1 in every method.

    Attributes
    ----------
    W, H : lists of arrays
        ``W[l]`` is m x r_{l+1}, ``H[0]`` is r_1 x n, ``H[l]`` is r_{l+1} x r_l; of the kind of the
        data, see `numpy`.
    history : History
        Per sweep: objective, errors of both kinds per layer, time.
    stop_reason : {"tol", "max_iter", "max_time", "callback", "diverged", "interrupted"}
        Why the fit ended; only ``"trigeorgis"`` can diverge.
    weights : array
        Weight of each layer's term in the loss (lambda or mu), 1 for the first.
    problem : Problem
        Ranks, model, constraints and regularizers.
    starts : list of int
        Which of several starts each layer came from, counted from 0.
    layout : Layout
        What is known of the data's rows and columns: names, wavelengths, pictures.
    findings : list of Finding
        What went wrong although the fit converged, the most important first: ``kind``, ``layer``
        and ``sentence`` of each.
    """

    W: list[Any]
    H: list[Any]
    history: History
    stop_reason: str
    weights: Array
    problem: Problem
    starts: list[int]
    strength: float = 0.0
    """Strength of the penalty on H_1, with which new data are coded."""
    layout: Layout = field(default_factory=Layout)
    scales: list[Array] = field(default_factory=list)
    """Divisors of H_1, ..., H_{L-1} before the next layer, for depth over codes."""
    findings: list[Finding] = field(default_factory=list)
    deeper_strengths: list[float] = field(default_factory=list)
    """Strengths of the penalties on H_2, ..., H_L, for depth over codes."""
    data_sizes: list[float] = field(default_factory=list)
    """Deviance of X from a model that knows nothing, in each layer's distance."""

    @property
    def over_codes(self) -> bool:
        """Whether layer l factors the codes H_{l-1}, and not the components W_{l-1}."""
        return self.problem.over_codes and self.depth > 1

    @property
    def depth(self) -> int:
        """Number of layers."""
        return len(self.W)

    @property
    def ranks(self) -> list[int]:
        """r_1, ..., r_L."""
        return [W.shape[1] for W in self.W]

    @property
    def n_iter(self) -> int:
        """Number of sweeps."""
        return len(self.history) - 1

    def basis(self, layer: int) -> Any:
        """The layer's components as columns: W_l, or W_1 Z_2 ... Z_l for depth over codes.

        Parameters
        ----------
        layer : int
            From 1, or from the end with negative numbers.

        Returns
        -------
        array, m x r_l
            Of the kind of the data.
        """
        k = self._index(layer)
        if not self.over_codes:
            return self.W[k]
        return reduce(lambda B, Z: B @ Z, self.W[1 : k + 1], self.W[0])

    def codes(self, layer: int) -> Any:
        """Codes of the layer: the amount of each component in every data point.

        H_l ... H_1, or H_l itself for depth over codes.

        Parameters
        ----------
        layer : int
            From 1, or from the end with negative numbers.

        Returns
        -------
        array, r_l x n
            Of the kind of the data.
        """
        k = self._index(layer)
        return self.H[k] if self.over_codes else _chain(self.H[1 : k + 1], self.H[0])

    def view(self, layer: int) -> LayerView:
        """Fractions, spectra and codes of a layer, each computed once.

        A view does not follow later changes to the arrays in ``W`` and ``H``.

        Parameters
        ----------
        layer : int
            From 1, or from the end with negative numbers.

        Returns
        -------
        LayerView
            With NumPy arrays.
        """
        k = self._index(layer)
        if k not in self._views:
            H = [self.codes(k + 1)] if self.over_codes else self.H[: k + 1]
            W, H = as_numpy(self.basis(k + 1)), [as_numpy(M) for M in H]
            self._views[k] = LayerView(k + 1, W, H, self.layout)
        return self._views[k]

    @cached_property
    def _views(self) -> dict[int, LayerView]:
        return {}

    def links(self, layer: int = -1) -> Array:
        """Share of each component of a layer in those of the layer before, from H_l.

        For depth over codes, from Z_l: a component's codes are ``Z_l`` times those of this layer,
        and each of these has a share in their sum over all samples.

        Parameters
        ----------
        layer : int, default -1
            From 2, or from the end with negative numbers.

        Returns
        -------
        array, r_l x r_{l-1}
            Columns add up to 1; a column of zeros stays zero.
        """
        if self._index(layer) == 0:
            raise ValueError("Layer 1 links components to data points: these are its codes.")
        k = self._index(layer)
        if self.over_codes:
            return links((as_numpy(self.W[k]) * as_numpy(self.H[k]).sum(axis=1)).T)
        return links(as_numpy(self.H[k]))

    def reconstruct(self, layer: int) -> Any:
        """W_l H_l ... H_1, the layer's approximation of X.

        Parameters
        ----------
        layer : int
            From 1, or from the end with negative numbers.

        Returns
        -------
        array, m x n
            Of the kind of the data.
        """
        return self.basis(layer) @ self.codes(layer)

    def encode(self, X: Any, layer: int = 1, device: Any = None, weights: Any = None) -> Any:
        """Codes of new data points under the fitted components, in the kind that X is.

        ::

            argmin over H in H_1's set of sum_k w_k d(X, B_k H),    lifted by H_l ... H_2

        with the terms (w_k, B_k) that the model's own update of H_1 uses, and d half the squared
        error or as ``beta_loss`` has it. Each column is solved by itself (unless H_1's constraint
        ties columns together, as `GroupedSparse` does).

        Parameters
        ----------
        X : matrix, m x k, or Dataset
            Data points as columns, of any kind that `factorize` takes. Of a Dask array, nothing is
            computed before its codes are. They are scaled as the data of the fit were, and reduced
            to the features that it kept: they need all features, or where nothing was scaled
            those kept.
        layer : int, default 1
            The layer whose components they are coded by.
        device : str or torch.device, optional
            As in `factorize`.
        weights : None, "observed", or matrix, m x k
            As in `factorize`: a column is coded by what is observed of it.

        Returns
        -------
        array, r_l x k
            Codes, in the kind that X is.
        """
        data = self._new_data(X, device, weights)
        if data.lazy:
            check_whole(data, self.problem.layers[0].constraint_H.inner)
            encode = replace(self, H=self._without_codes()).encode
            rank = self.ranks[self._index(layer)]
            return data.by_columns(partial(encode, layer=layer, device=device), rank)
        if self.over_codes and not self.problem.loss.joint:
            return self._coded_in_turn(data, self._index(layer))
        panels = self._coded(data)
        codes = panels.own(panels.codes.H)
        if self.over_codes:
            return codes[self._state().rows(self._index(layer))]
        return _chain([panels.own(M) for M in self._lifts(layer)], codes)

    def _coded_in_turn(self, X: Matrix, k: int) -> Any:
        """Codes of a layer, each layer's from those of the layer before."""
        one = [self.problem.layer(i) for i in range(k + 1)]
        codes = replace(self, W=self.W[:1], problem=one[0], scales=[]).encode(X)
        for i in range(1, k + 1):
            scales = self.scales[i - 1][:, None]
            Z, strength = as_numpy(self.W[i]) / scales, self.deeper_strengths[i - 1]
            own = one[i].layers[0].constraint_W.scales(Z)  # the fit had Z in its set
            own = np.ones(Z.shape[1]) if own is None else own
            part = replace(self, W=[Z / own], problem=one[i], scales=[], strength=strength)
            panels = part._coded(as_matrix(as_numpy(codes) / scales))
            codes = as_numpy(panels.own(panels.codes.H)) / own[:, None]
        return codes

    def squared_error(
        self, X: Any, layer: int = 1, device: Any = None, weights: Any = None
    ) -> float:
        """||X - W_l codes||^2 of data coded as `encode` does, each entry times its weight.

        Parameters
        ----------
        X, layer, device, weights
            As in `encode`.

        Returns
        -------
        float
            0 where the layer's components make up X exactly.
        """
        return 2 * self._distance(SQUARED, self._new_data(X, device, weights), layer)

    def deviance(self, X: Any, layer: int = 1, device: Any = None, weights: Any = None) -> float:
        """Twice the layer's distance from data coded as `encode` does: what ``beta_loss`` measures.

        Parameters
        ----------
        X, layer, device, weights
            As in `encode`.

        Returns
        -------
        float
            The squared error where that is the layer's distance; the statistical deviance of
            counts under the Kullback-Leibler divergence. 0 where the components make up X exactly.
        """
        k, data = self._index(layer), self._new_data(X, device, weights)
        return 2 * self._distance(self.problem.fit(k), data, layer)

    def explained(self, layer: int = -1) -> float:
        """Share of the data that a layer explains: 1 minus its part of the deviance.

        That of a model that knows nothing is 0: zero for squared errors, the product of the sums of
        rows and columns for divergences.

        Parameters
        ----------
        layer : int, default -1
            From 1, or from the end with negative numbers.

        Returns
        -------
        float
            At most 1.
        """
        return 1 - float(self.history.data_errors[-1, self._index(layer)])

    def _distance(self, fit: Datafit, data: Matrix, layer: int) -> float:
        B = self._state().basis(self._index(layer))
        with self._coded(data) as panels:
            return float(panels.values([DataTerm(1.0, B, fit)])[0])

    def of_rows(self, rows: Any) -> Factorization:
        """Factorization of some rows of X: `encode` then finds codes from these alone.

        Parameters
        ----------
        rows : index, slice or mask of m bools
            The rows to keep.

        Returns
        -------
        Factorization
            With those rows of each W, and without a layout.
        """
        W = [as_numpy(M) for M in self.W]
        W = [W[0][rows], *W[1:]] if self.over_codes else [M[rows] for M in W]
        return replace(self, W=W, layout=Layout())

    def numpy(self) -> Factorization:
        """Copy with NumPy arrays, for data of another library or on a device.

        Returns
        -------
        Factorization
            With ``W`` and ``H`` in memory; all else is shared.
        """
        W, H = ([as_numpy(M) for M in factors] for factors in (self.W, self.H))
        return replace(self, W=W, H=H)

    def _new_data(self, X: Any, device: Any, weights: Any) -> Matrix:
        """New samples as a matrix with the rows of the fit."""
        layout = self.layout
        if isinstance(X, Dataset):
            if layout.kept is not None:
                check_same_features(X.layout, layout, X.X.shape, layout.kept.size)
            X = X.X
        if not isinstance(X, Matrix):
            if layout.scaling is not None or layout.kept is not None:
                check_unprepared(X, weights)
            X, weights = prepared_alike(X, layout), weights_of(weights, layout.kept)
        data = as_matrix(X, weights=weights, device=device)
        self._check_rows(data.shape[0])
        if self.problem.fits and not data.lazy:
            check_divergence(data, self.problem.beta_loss, new=True)
        return data

    def _coded(self, data: Matrix) -> Panels:
        """New samples with their codes in the first layer."""
        check_scale(data, zero_ok=True)
        check_seen(data, features=False)
        constraint = self.problem.codes_constraint.inner  # held codes are those of the fit's data
        panels: Panels = data.panels(None if constraint.separable else data.shape[1])
        s, model = self._state(), self._model()
        penalty, strength = self._penalty(s)
        coding = Coding(model.bases(s), constraint, penalty, strength, coupling=model.coupling(s))
        limits = (
            (_ENCODE_ITER, _ENCODE_TOL) if coding.squared else (_MAJORIZED_ITER, _MAJORIZED_TOL)
        )
        with single_blas():
            panels.code(coding, *limits)
        return panels

    def _penalty(self, s: State) -> tuple[Regularizer | None, float]:
        """The penalty on the codes of new samples, and its strength.

        One that ties the samples of the fit together says nothing about others.
        """
        if not self.over_codes:
            penalty = self.problem.layers[0].regularizer_H
            known = penalty is not None and penalty.separable
            return (penalty, self.strength) if known else (None, 0.0)
        strengths = [self.strength, *self.deeper_strengths]
        parts = [
            Part(s.rows(k), strength, layer.regularizer_H)
            for k, (layer, strength) in enumerate(zip(self.problem.layers, strengths))
            if layer.regularizer_H is not None
        ]
        return (Stacked(parts, sum(self.ranks)), 1.0) if parts else (None, 0.0)

    def _state(self) -> State:
        """The small side of the fit."""
        W = [as_numpy(M).astype(np.float64) for M in self.W]
        none: list[Array] = [np.empty((rank, 0)) for rank in self.ranks]
        if self.over_codes:
            return State(W, none, scales=self.scales)
        return State(W, [none[0], *(as_numpy(M).astype(np.float64) for M in self.H[1:])])

    def _model(self) -> Model:
        """The terms of the model's own update of the codes."""
        if self.over_codes:
            return self.problem.loss.model_over_codes(self.depth, self.weights, self.problem.fits)
        return self.problem.loss.model(self.depth, self.weights, [0], self.problem.fits)

    def _without_codes(self) -> list[Any]:
        """H without those factors that have a column for each sample."""
        dtype = as_numpy(self.W[0]).dtype
        none = [np.empty((rank, 0), dtype) for rank in self.ranks]
        return none if self.over_codes else [none[0], *self.H[1:]]

    def _check_rows(self, rows: int) -> None:
        fitted = self.W[0].shape[0]
        if rows != fitted:
            raise ValueError(f"X has {rows} rows, but the factorization was fitted to {fitted}.")

    def save(self, path: str | os.PathLike[str], codes: bool = True) -> Path:
        """Write everything to one ``.npz`` file without pickle; it appears whole or not at all.

        Parameters
        ----------
        path : path
            The file; ``.npz`` is added where it is missing.
        codes : bool
            Whether H_1 goes into it. Without, the file is small and still codes data with `encode`.

        Returns
        -------
        Path
            The file that was written.
        """
        if not codes:
            layout = self.layout.of_samples(None)
            return replace(self, H=self._without_codes(), layout=layout).save(path)
        target = Path(path)
        if target.suffix != ".npz":
            target = target.with_name(target.name + ".npz")
        plain = self.numpy()
        arrays: dict[str, Array] = {f"W{k}": M for k, M in enumerate(plain.W, start=1)}
        arrays |= {f"H{k}": M for k, M in enumerate(plain.H, start=1)}
        arrays |= {f"history_{name}": a for name, a in self.history.to_dict().items()}
        arrays["weights"] = self.weights
        arrays |= {f"scales_{k}": M for k, M in enumerate(self.scales, start=1)}
        arrays |= {f"layout_{name}": a for name, a in self.layout.to_arrays().items()}
        meta = {
            "format": _FORMAT,
            "depth": self.depth,
            "stop_reason": self.stop_reason,
            "strength": self.strength,
            "deeper_strengths": self.deeper_strengths,
            "data_sizes": self.data_sizes,
            "starts": self.starts,
            "findings": [finding.spec() for finding in self.findings],
            "settings": self.problem.spec(),
        }
        arrays["meta"] = np.array(json.dumps(meta))
        write_whole(target, lambda file: np.savez_compressed(file, **arrays))  # type: ignore[arg-type]
        return target

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], custom: Sequence[type[Parametrized]] = ()
    ) -> Factorization:
        """Read what `save` wrote.

        Parameters
        ----------
        path : path
            The ``.npz`` file.
        custom : sequence of classes
            Your own constraints, regularizers, losses and solvers that the fit used.

        Returns
        -------
        Factorization
            With NumPy arrays.
        """
        try:
            arrays = load_npz(_with_suffix(path))
            meta = json.loads(str(arrays["meta"]))
            if meta["format"] != _FORMAT:
                raise KeyError("format")
            layers = range(1, meta["depth"] + 1)
            history = History(**_family(arrays, "history_"))
            layout = Layout.from_arrays(_family(arrays, "layout_"))
            W, H = ([arrays[f"{name}{k}"] for k in layers] for name in "WH")
            weights, stop_reason = arrays["weights"], str(meta["stop_reason"])
            starts = [int(i) for i in meta.get("starts") or [meta["start"]] * meta["depth"]]
            problem = problem_from_spec(meta["settings"], custom)
            strength = float(meta["strength"])
            scales = list(_family(arrays, "scales_").values())
            f = cls(W, H, history, stop_reason, weights, problem, starts, strength, layout, scales)
            f = replace(
                f,
                findings=[Finding.from_spec(spec) for spec in meta.get("findings", [])],
                deeper_strengths=[float(s) for s in meta.get("deeper_strengths", [])],
                data_sizes=[float(s) for s in meta.get("data_sizes", [])],
            )
            _check_parts(f)
        except FileNotFoundError:
            raise FileNotFoundError(f"There is no file {os.fspath(path)!r}.") from None
        except UnknownNameError as error:
            raise ValueError(
                f"{os.fspath(path)!r} was fitted with a class that is not deepmf's own. {error} "
                f"Pass the class: Factorization.load(path, custom=[...])."
            ) from None
        except UNREADABLE as error:
            raise ValueError(
                f"{os.fspath(path)!r} is not a whole deepmf factorization of this version "
                f"({type(error).__name__}). Save it again with Factorization.save."
            ) from None
        return f

    def tree(
        self,
        labels: Sequence[Sequence[str] | None] | None = None,
        top: int = 3,
        features: Sequence[str] | None = None,
    ) -> str:
        """The hierarchy as text: each component below the one that has its largest share.

        The last layer is at the left edge. In brackets is the share, see `links`; what else of
        a component belongs to others is not shown.

        Parameters
        ----------
        labels : per layer a sequence of str or None, optional
            Names of the components. Default: layer and number, ``L1-1``.
        top : int
            How many features of each component are named, those of its largest entries.
        features : sequence of m str, optional
            Names of X's rows, all or those kept. Default: the layout's; without them, no features
            are named.

        Returns
        -------
        str
            One line for each component of each layer.

        Examples
        --------
        >>> import numpy as np
        >>> from deepmf import factorize
        >>> topics = np.kron(np.diag([5, 4, 3, 2]), [[2.0], [1.0]])
        >>> X = topics @ np.kron(np.eye(2), [[1, 0, 2, 1], [0, 1, 1, 2]])
        >>> f = factorize(X, [4, 2], model="data-centric", constraint_W="nonnegative")
        >>> words = ["sun", "sky", "sea", "sand", "code", "bug", "test", "type"]
        >>> print(f.tree(top=2, features=words))
        L2-1  code, test
        ├── L1-1 (100%)  test, type
        └── L1-3 (100%)  code, bug
        L2-2  sun, sea
        ├── L1-2 (100%)  sun, sky
        └── L1-4 (100%)  sea, sand
        """
        check_integer("top", top, 1)
        names = layer_names(labels, self.ranks)
        words = [[""] * rank for rank in self.ranks]
        if features is not None or self.layout.features is not None:
            rows = feature_names(self.layout, len(self.W[0]), features)
            bases = [as_numpy(self.basis(k)) for k in range(1, self.depth + 1)]
            tops = [top_rows(W, rows, top) for W in bases]
            words = [[", ".join(word for word, _ in column) for column in W] for W in tops]
        return draw_tree([self.links(k) for k in range(2, self.depth + 1)], names, words)

    def __repr__(self) -> str:
        model = self.problem.loss.name or type(self.problem.loss).__name__
        prepared = words_of(self.layout)
        return "\n".join(
            [
                f"{model} factorization, ranks {self.ranks}",
                *([f"data: {prepared}"] if prepared else []),
                f"{counted(self.n_iter, 'sweep')}, stopped by {self.stop_reason}",
                *self._errors_in_words(),
            ]
        )

    def _errors_in_words(self) -> list[str]:
        errors, fits = self.history.data_errors[-1], self.problem.fits
        if not fits:
            lines = (f"  layer {k}: {error:.3g}" for k, error in enumerate(errors, start=1))
            return ["relative squared data errors:", *lines]
        return [
            "explained deviance:",
            *(
                f"  layer {k}: {100 * (1 - error):.3g} % ({beta_of(fit)})"
                for k, (error, fit) in enumerate(zip(errors, fits), start=1)
            ),
        ]

    def _lifts(self, layer: int) -> list[Array]:
        """H_2, ..., H_l as NumPy arrays."""
        return [as_numpy(M) for M in self.H[1 : self._index(layer) + 1]]

    def _index(self, layer: int) -> int:
        return layer_number(layer, self.depth) - 1


def _chain(factors: Sequence[Any], H: Any) -> Any:
    """H_l ... H_2 H, from H_2, ..., H_l."""
    for M in factors:
        H = M @ H
    return H


def _check_parts(f: Factorization) -> None:
    """Refuse arrays of a file that do not fit each other."""
    (m, _), (_, n) = f.W[0].shape, f.H[0].shape
    ranks = f.problem.ranks
    tall = [m, *ranks] if f.over_codes else [m] * f.depth
    wide = [n] * f.depth if f.over_codes else [n, *ranks]
    rows = (len(f.history), f.depth)
    wanted = [
        *((W, (size, rank)) for W, size, rank in zip(f.W, tall, ranks)),
        *((H, (rank, size)) for H, rank, size in zip(f.H, ranks, wide)),
        *((scales, (rank,)) for scales, rank in zip(f.scales, ranks)),
        (f.history.objective, rows[:1]),
        (f.history.time, rows[:1]),
        (f.history.data_errors, rows),
        (f.history.layer_errors, rows),
        (f.weights, rows[1:]),
    ]
    if len(f.W) != len(ranks) or len(f.scales) != (f.depth - 1 if f.over_codes else 0):
        raise ValueError("parts")
    if not len(f.history) or any(M.shape != s or M.dtype.kind != "f" for M, s in wanted):
        raise ValueError("parts")
    f.layout.check((m, n))


def _family(arrays: dict[str, Array], prefix: str) -> dict[str, Array]:
    """Arrays whose names begin alike, by the rest of their names."""
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}


def _with_suffix(path: str | os.PathLike[str]) -> Path:
    """The path, or with the ``.npz`` that `save` adds where only that exists."""
    longer = Path(os.fspath(path) + ".npz")
    return longer if longer.exists() and not Path(path).exists() else Path(path)


def layer_number(layer: object, depth: int) -> int:
    """1..depth from a layer counted from 1, or from the end with negative numbers."""
    if isinstance(layer, Integral) and not isinstance(layer, bool):
        number = int(layer) + depth + 1 if layer < 0 else int(layer)
        if 1 <= number <= depth:
            return number
    raise ValueError(f"layer must be between 1 and {depth}, or -1 for the last; got {layer!r}.")
