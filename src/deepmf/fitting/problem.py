"""Settings of a model as objects: the loss and, per layer, rank, constraints and regularizers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, Literal, get_args

import numpy as np

from deepmf._utils.messages import SettingError, counted, setting
from deepmf._utils.warnings import warn
from deepmf.constraints import (
    Constraint,
    Nonnegative,
    OneParent,
    Simplex,
    Transposed,
    Unconstrained,
)
from deepmf.constraints.stacked import stacked
from deepmf.core.datafit import SQUARED, Datafit
from deepmf.core.divergence import BETAS, BetaDivergence, beta_of
from deepmf.core.parameters import Parametrized
from deepmf.data.panels import Panels
from deepmf.fitting.registry import resolve
from deepmf.losses import LayerCentric, Loss
from deepmf.regularizers import Regularizer
from deepmf.solvers import Solver

Normalize = Literal["sum", "norm", "codes"]


@dataclass(frozen=True)
class Layer:
    """One layer's settings."""

    rank: int
    constraint_W: Constraint
    constraint_H: Constraint
    regularizer_W: Regularizer | None = None
    regularizer_H: Regularizer | None = None

    def of(self, kind: Literal["H", "W"]) -> tuple[Constraint, Regularizer | None]:
        """Constraint and regularizer of one factor."""
        if kind == "W":
            return self.constraint_W, self.regularizer_W
        return self.constraint_H, self.regularizer_H


@dataclass(frozen=True)
class Problem:
    """A model with all its settings resolved."""

    layers: tuple[Layer, ...]
    loss: Loss
    solver: Solver
    hierarchy: Literal["components", "codes"] = "components"
    """Direction of depth: layer l factors W_{l-1} or H_{l-1}."""
    normalize: Normalize = "sum"
    """Size of a component, or of its codes, that is one where the model leaves scales open."""
    fits: tuple[Datafit, ...] = ()
    """Distance of each layer's term from what it fits; squared errors where there are none."""

    @property
    def ranks(self) -> list[int]:
        """r_1, ..., r_L."""
        return [layer.rank for layer in self.layers]

    @property
    def over_codes(self) -> bool:
        """Whether layer l factors H_{l-1}."""
        return self.hierarchy == "codes"

    def layer(self, k: int) -> Problem:
        """The problem of one layer alone, whose data are the factor before."""
        fits = (self.fit(k),) if self.fits else ()
        return replace(self, layers=(self.layers[k],), hierarchy="components", fits=fits)

    def fit(self, k: int) -> Datafit:
        """The distance of a layer's term."""
        return self.fits[k] if self.fits else SQUARED

    @property
    def beta_loss(self) -> str | float | list[str | float]:
        """The distance of all layers by name or number, or one for each where they differ."""
        named = [beta_of(self.fit(k)) for k in range(len(self.layers))]
        return named if any(each != named[0] for each in named) else named[0]

    @property
    def keeps_zeros(self) -> bool:
        """Whether an entry that is zero may stay zero: starts are then made positive."""
        return self.solver.keeps_zeros or any(fit.nonnegative for fit in self.fits)

    @property
    def codes_constraint(self) -> Constraint:
        """The set of the codes on the data side."""
        if not self.over_codes:
            return self.layers[0].constraint_H
        return stacked([layer.constraint_H for layer in self.layers], self.ranks)

    @property
    def nonnegative(self) -> bool:
        """Whether W_1 H_1 cannot be negative, so that negative data cannot be fitted."""
        first = self.layers[0]
        return first.constraint_W.nonnegative and first.constraint_H.nonnegative

    def overfitted(self, k: int, shape: tuple[int, int]) -> bool:
        """Whether a layer has as many components as its data have features or samples."""
        samples = self.layers[k - 1].rank if k else shape[1]
        return self.layers[k].rank >= min(shape[0], samples)

    def needs_fit(self, k: int, shape: tuple[int, int]) -> bool:
        """Whether the penalties of a layer are measured by its fit without them."""
        layer = self.layers[k]
        penalties = (layer.regularizer_W, layer.regularizer_H)
        return not self.overfitted(k, shape) and any(p and p.needs_fit for p in penalties)

    @property
    def first_tree(self) -> int | None:
        """The first layer with one parent each that is fitted after the others, if any is."""
        if self.over_codes or not isinstance(self.loss, LayerCentric):
            return None
        deeper = range(1, len(self.layers))
        trees = (k for k in deeper if isinstance(self.layers[k].constraint_H, OneParent))
        return next(trees, None)

    def free_links(self) -> Problem:
        """The problem with any links in the place of one parent each."""
        scaled = _knows_simplex(self.solver, self.fits)

        def of(layer: Layer) -> Layer:
            if not isinstance(layer.constraint_H, OneParent):
                return layer
            set_W = layer.constraint_W
            if layer.constraint_H.unit and set_W == Nonnegative():  # the scale was that of H
                set_W = _natural(layer.regularizer_W, scaled)
            set_H = _natural(layer.regularizer_H, scaled=False)
            return replace(layer, constraint_W=set_W, constraint_H=set_H)

        return replace(self, layers=tuple(map(of, self.layers)))

    def spec(self) -> dict[str, Any]:
        """Everything by name, as plain data for files."""

        def of(part: Any) -> Any:
            return part.spec() if part is not None else None

        return {
            "ranks": self.ranks,
            "hierarchy": self.hierarchy,
            "normalize": self.normalize,
            **({"beta_loss": [beta_of(fit) for fit in self.fits]} if self.fits else {}),
            "model": self.loss.spec(),
            "solver": self.solver.spec(),
            **{
                setting: [of(getattr(layer, setting)) for layer in self.layers]
                for setting in ("constraint_W", "constraint_H", "regularizer_W", "regularizer_H")
            },
        }


def build_problem(
    ranks: int | Sequence[int],
    model: object = "layer-centric",
    constraint_W: object = None,
    constraint_H: object = None,
    regularizer_W: object = None,
    regularizer_H: object = None,
    solver: object = "fpgm",
    hierarchy: object = "components",
    normalize: object = "sum",
    beta_loss: object = "frobenius",
) -> Problem:
    """Resolve names, spread single settings over the layers, and refuse what cannot work."""
    sizes = check_ranks(ranks)
    _warn_if_increasing(sizes)
    depth = len(sizes)
    W_sets = per_layer("constraint_W", constraint_W, depth)
    H_sets = per_layer("constraint_H", constraint_H, depth)
    W_penalties = per_layer("regularizer_W", regularizer_W, depth)
    H_penalties = per_layer("regularizer_H", regularizer_H, depth)

    loss, by = resolve("model", model), resolve("solver", solver)
    over_codes = check_hierarchy(hierarchy) == "codes" and depth > 1
    fits = check_beta_loss(beta_loss, depth)
    scaled = depth > 1 and loss.errors == "layer" and _knows_simplex(by, fits)
    layers: list[Layer] = []
    for rank, W_set, H_set, W_penalty, H_penalty in zip(
        sizes, W_sets, H_sets, W_penalties, H_penalties
    ):
        on_W, on_H = _penalty(W_penalty), _penalty(H_penalty)
        set_H = _constraint(H_set, _natural(on_H, scaled=False))
        natural_W = Nonnegative() if set_H.bounded and not over_codes else _natural(on_W, scaled)
        if over_codes and layers and isinstance(set_H, OneParent):
            set_H, natural_W = _natural(on_H, scaled=False), Transposed(set_H)
        set_W = _constraint(W_set, natural_W)
        layers.append(Layer(rank, set_W, set_H, on_W, on_H))
    direction: Literal["components", "codes"] = "codes" if over_codes else "components"
    problem = Problem(tuple(layers), loss, by, direction, check_normalize(normalize), fits)
    problem.loss.check_depth(depth)
    _check_trees(problem)
    _check_parts(problem)
    return problem


def problem_from_spec(spec: dict[str, Any], custom: Sequence[type[Parametrized]] = ()) -> Problem:
    """Problem from its `spec`; ``custom`` lists classes of users."""

    def part(kind: str, given: Any) -> Any:
        return None if given is None else resolve(kind, given, custom)

    layers = [
        Layer(
            rank,
            part("constraint", spec["constraint_W"][k]),
            part("constraint", spec["constraint_H"][k]),
            part("regularizer", spec["regularizer_W"][k]),
            part("regularizer", spec["regularizer_H"][k]),
        )
        for k, rank in enumerate(spec["ranks"])
    ]
    return Problem(
        tuple(layers),
        part("model", spec["model"]),
        part("solver", spec["solver"]),
        check_hierarchy(spec.get("hierarchy", "components")),
        check_normalize(spec.get("normalize", "sum")),
        check_beta_loss(spec.get("beta_loss", "frobenius"), len(layers)),
    )


def check_hierarchy(given: Any) -> Literal["components", "codes"]:
    """The direction of depth, checked: ``"components"`` or ``"codes"``."""
    if given not in ("components", "codes"):
        raise SettingError(
            f"{setting('hierarchy')} must be 'components' (each layer factors the components "
            f"of the one before) or 'codes' (its codes), got {given!r}."
        )
    return given


def check_normalize(given: Any) -> Normalize:
    """``"sum"``, ``"norm"`` or ``"codes"``."""
    if given not in get_args(Normalize):
        raise SettingError(
            f"{setting('normalize')} must be 'sum' (components that sum to one), 'norm' "
            f"(components of norm one) or 'codes' (codes whose mean square is one), got {given!r}."
        )
    return given


def check_beta_loss(given: Any, depth: int) -> tuple[Datafit, ...]:
    """The distance of each layer from one name or number, or one for each; none: all squared."""
    listed = per_layer("beta_loss", list(given) if isinstance(given, tuple) else given, depth)
    betas = [_beta(each) for each in listed]
    if all(beta == 2 for beta in betas):
        return ()
    return tuple(SQUARED if beta == 2 else BetaDivergence(beta) for beta in betas)


def _beta(given: Any) -> float:
    if isinstance(given, str) and given in BETAS:
        return BETAS[given]
    real = isinstance(given, Real) and not isinstance(given, bool | np.bool_)
    if not real or not 0 <= given <= 2:
        raise SettingError(
            f"{setting('beta_loss')} must be {', '.join(map(repr, BETAS))} or a number from 0 to "
            f"2, one for all layers or one for each, got {given!r}."
        )
    return float(given)


def check_ranks(ranks: object) -> list[int]:
    """Positive integers, one per layer."""
    values: list[Any] = []
    if isinstance(ranks, Integral):
        values = [ranks]
    elif isinstance(ranks, np.ndarray):
        values = np.atleast_1d(ranks).tolist()
    elif isinstance(ranks, Sequence) and not isinstance(ranks, str | bytes):
        values = list(ranks)
    if not values:
        raise SettingError(
            f"{setting('ranks')} must be a list of integers such as [6, 4, 2], got {ranks!r}."
        )
    for r in values:
        if not isinstance(r, Integral) or isinstance(r, bool) or r < 1:
            raise SettingError(
                f"{setting('ranks')} must be integers of at least 1, got {r!r} in {values}."
            )
    return [int(r) for r in values]


def _warn_if_increasing(sizes: list[int]) -> None:
    if any(b > a for a, b in pairwise(sizes)):
        warn(
            f"ranks {sizes} increase: a layer at least as wide as the one before can copy it and "
            f"brings no new feature. Decreasing ranks are usual."
        )


def _warn_if_overcomplete(layers: Sequence[Layer], m: int, n: int) -> None:
    """Warn of a first rank above min(m, n), unless a penalty or constraint gives it a meaning."""
    free = all(
        isinstance(layer.constraint_W, Nonnegative | Unconstrained | Simplex)
        and isinstance(layer.constraint_H, Nonnegative | Unconstrained)
        and layer.regularizer_W is layer.regularizer_H is None
        for layer in layers
    )
    if layers[0].rank > min(m, n) and free:
        warn(
            f"The first rank, {layers[0].rank}, exceeds min(m, n) = {min(m, n)} of X with {m} "
            f"features and {n} samples: a model of this rank can reproduce X exactly, so its "
            f"components mean nothing. Take fewer, or a penalty or constraint that prevents it."
        )


def per_layer(name: str, given: object, depth: int) -> list[Any]:
    """One setting per layer, from one for all or a list of ``depth``."""
    if not isinstance(given, list | tuple):
        return [given] * depth
    if len(given) != depth:
        raise SettingError(
            f"{setting(name)} has {counted(len(given), 'entry', 'entries')} for "
            f"{counted(depth, 'layer')}; give one for all layers or a list of {depth}."
        )
    return list(given)


def _constraint(given: object, natural: Constraint) -> Constraint:
    """The named set, or without one the natural one."""
    return natural if given is None else resolve("constraint", given)


def _penalty(given: object) -> Regularizer | None:
    """The named penalty; none for None and "none"."""
    return None if given is None or given == "none" else resolve("regularizer", given)


def _knows_simplex(solver: Solver, fits: Sequence[Datafit]) -> bool:
    """Whether blocks are updated on the simplex: those of divergences always are."""
    return bool(fits) or solver.objection(Simplex()) is None


def _natural(penalty: Regularizer | None, scaled: bool) -> Constraint:
    """Default set of a factor: as its penalty needs, else the simplex if its scale must be fixed.

    Models that compare layers need one: they take W_l for data, but W_l D^-1 and D H_l are as good
    as W_l and H_l for any diagonal D > 0. For nonnegative factors nothing is lost.
    """
    if penalty is not None:
        return penalty.natural_set or Nonnegative()
    return Simplex() if scaled else Nonnegative()


def _check_trees(problem: Problem) -> None:
    """Refuse one parent each where it makes no tree."""
    for number, layer in enumerate(problem.layers, start=1):
        put = "give it to constraint_H of the layers after the first"
        example = setting(constraint_H=["nonnegative", "one-parent"])
        if isinstance(layer.constraint_W, OneParent):
            raise SettingError(
                f"{layer.constraint_W!r} cannot act on W of layer {number}: it gives each "
                f"component one parent in the next layer, which is a set of links. Instead, {put}, "
                f"as in {example} for two layers."
            )
        if number == 1 and isinstance(layer.constraint_H, OneParent):
            raise SettingError(
                f"{layer.constraint_H!r} cannot act on H of layer 1, whose columns are samples, "
                f"not components: each sample would have a single component. Instead, {put}, as in "
                f"{example} for two layers. To group samples, take the largest code of each."
            )
        if isinstance(layer.constraint_W, Transposed) and layer.regularizer_W is not None:
            reason = layer.regularizer_W.objection(layer.constraint_W, layer.constraint_H)
            if reason:
                raise SettingError(
                    f"{layer.regularizer_W!r} cannot act on layer {number}, where "
                    f"{layer.constraint_W.constraint!r} acts on the same factor, as "
                    f"{setting(hierarchy='codes')} has it. Use {setting(hierarchy='components')}, "
                    f"or no penalty: {setting(regularizer_W='none')}."
                )


def _check_parts(problem: Problem) -> None:
    """Refuse, with both sides named, a combination that cannot work."""
    for number, layer in enumerate(problem.layers, start=1):
        for factor, own, penalty, partner in (
            ("W", layer.constraint_W, layer.regularizer_W, layer.constraint_H),
            ("H", layer.constraint_H, layer.regularizer_H, layer.constraint_W),
        ):
            where = f"{factor} of layer {number}"
            reason = None if problem.fits else problem.solver.objection(own.inner)
            if reason:
                raise SettingError(
                    f"Solver {problem.solver.name!r} cannot handle {own!r} on {where}: {reason}. "
                    f"Use {setting(solver='fpgm')} or another constraint."
                )
            reason = penalty.objection(own, partner) if penalty is not None else None
            if reason:
                raise ValueError(f"{penalty!r} cannot act on {where}: {reason}.")
    _check_divergences(problem)
    for number, layer in enumerate(problem.layers if problem.over_codes else problem.layers[:1]):
        penalty = layer.regularizer_H
        shifts = penalty is not None and penalty.shifts and not problem.over_codes
        if penalty is not None and not penalty.separable and not shifts:
            raise ValueError(
                f"{penalty!r} cannot act on H of layer {number + 1}, whose columns are updated "
                f"apart from each other: only a regularizer with separable = True can. Put it on "
                f"another factor."
            )


def _check_divergences(problem: Problem) -> None:
    """Refuse divergences with models, directions and sets that they cannot be combined with."""
    if not problem.fits:
        return
    wanted = setting(beta_loss=problem.beta_loss)
    loss, by_layer = problem.loss, problem.loss.errors == "layer"
    divergent = [fit.nonnegative for fit in problem.fits]
    if not loss.consistent:
        raise SettingError(f"{wanted} cannot be used with {loss!r}, whose updates share no loss.")
    if problem.over_codes and by_layer and loss.joint and any(divergent[1:]):
        mixed = [beta_of(problem.fits[0]), *["frobenius"] * (len(problem.layers) - 1)]
        raise SettingError(
            f"{wanted} cannot be used with {loss!r} and {setting(hierarchy='codes')}: layers below "
            f"the first fit codes there, by squared errors. Use {setting(beta_loss=mixed)}, or "
            f"{setting(model='data-centric')}."
        )
    for k, layer in enumerate(problem.layers):
        # a term acts on its own factors and on the one that it fits, or on all that it goes through
        if not any(divergent[k : k + 2] if by_layer else divergent):
            continue
        for factor, own in (("W", layer.constraint_W), ("H", layer.constraint_H)):
            where = f"{factor} of layer {k + 1}"
            if not own.minimizes:
                raise SettingError(
                    f"{wanted} cannot be used with {own!r} on {where}: divergences need factors "
                    f"that are nonnegative, columns on the simplex, one parent each, or bounds on "
                    f"entries. Use {setting(beta_loss='frobenius')} or another constraint."
                )
            deeper = by_layer and k > 0 and factor == "H" and layer.regularizer_H is None
            if isinstance(own, OneParent | Transposed) and not deeper:
                raise SettingError(
                    f"{wanted} can have {own!r} only on H of deeper layers without a penalty, in "
                    f"models that fit each layer to the one before; it is on {where} of {loss!r}. "
                    f"Use {setting(model='layer-centric')}, or {setting(beta_loss='frobenius')}."
                )


def check_against_data(problem: Problem, panels: Panels) -> None:
    """Refuse what only the data's shape shows to be impossible, and warn of what is pointless."""
    m, n = panels.shape
    aboves = [m if problem.over_codes else n, *problem.ranks]
    for number, (layer, above) in enumerate(zip(problem.layers, aboves), start=1):
        if layer.rank > m * n:
            raise ValueError(
                f"Layer {number}'s rank {layer.rank} exceeds the {m * n} entries of X ({m} x {n}). "
                f"Lower it; useful ranks are at most {min(m, n)}."
            )
        sized: tuple[tuple[Literal["H", "W"], Constraint, tuple[int, int]], ...] = (
            ("W", layer.constraint_W, (above if problem.over_codes else m, layer.rank)),
            ("H", layer.constraint_H, (layer.rank, n if problem.over_codes else above)),
        )
        for factor, constraint, shape in sized:
            reason = constraint.objection_on(factor, shape)
            if reason:
                raise ValueError(
                    f"{constraint!r} cannot act on {factor} of layer {number} "
                    f"({shape[0]} x {shape[1]}): {reason}."
                )
    first = problem.codes_constraint
    if first.separable is None and panels.count > 1:
        raise SettingError(
            f"{first!r} on H of layer 1 ties all its columns together, but the data come in "
            f"{panels.count} panels of columns. Use a constraint that separates over columns, or "
            f"keep the data in one panel ({setting(panel_size=n)})."
        )
    penalty = problem.layers[0].regularizer_H
    if penalty is not None and not penalty.separable and not panels.may_tie_columns:
        raise ValueError(
            f"{penalty!r} ties the columns of H of layer 1 together, which needs all codes in one "
            f"place, but the data ({type(panels).__name__}) are elsewhere. Give X as an array or a "
            f"sparse matrix."
        )
    _warn_if_overcomplete(problem.layers, m, n)
