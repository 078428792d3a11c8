"""A fit whose objective is not finite stops and says so."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from deepmf import (
    Checkpoint,
    FastProjectedGradient,
    Ridge,
    Trigeorgis,
    factorize,
)

X = np.random.default_rng(0).random((9, 40))


class Spoiled(Ridge):
    """A penalty whose value is not finite from some call on."""

    def __init__(self, weight=0.01, relative=False, good=0, bad=np.nan):
        super().__init__(weight, relative)
        self.good, self.bad = good, bad
        self.calls = 0

    def value(self, M):
        self.calls += 1
        return super().value(M) if self.calls <= self.good else self.bad


class SpoiledSolver(FastProjectedGradient):
    """A solver that loses its way in one factor."""

    rank = 2

    def solve(self, q, constraint, M, max_iter, tol):
        M = super().solve(q, constraint, M, max_iter, tol)
        return np.full_like(M, np.nan) if len(M) == self.rank else M


def message(**settings):
    with pytest.raises(FloatingPointError) as error:
        factorize(X, [4, 2], **{"max_iter": 9, "tol": 0, "random_state": 0, **settings})
    said = str(error.value)
    assert "deepmf.checks" in said
    assert "scale X" in said
    return said


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("extrapolate", [True, False])
def test_a_penalty_that_is_not_finite(bad, extrapolate):
    settings = {"regularizer_W": [Spoiled(bad=bad), None], "extrapolate": extrapolate}
    begins = f"The objective is {bad} at the start"
    assert message(**settings).startswith(f"{begins} of layer 1, so the fit cannot continue.")
    settings["regularizer_W"] = [Spoiled(good=2, bad=bad), None]
    together = message(**settings, augment=0)  # no layer settles alone
    assert together.startswith(f"{begins}, so the fit cannot continue.")


def test_the_sweep_is_named():
    penalty = Spoiled(good=4)  # one for the strength, one at the start, two sweeps
    said = message(regularizer_W=[penalty, None], extrapolate=False)
    assert "The objective is nan after sweep 3 of layer 1, so" in said
    penalty = Spoiled(good=4)  # one for the layer alone, one for the strength, one at the start
    said = message(regularizer_W=[penalty, None], extrapolate=False, augment=0)
    assert "The objective is nan after sweep 2, so" in said


def test_an_extrapolated_sweep_is_first_undone():
    penalty = Spoiled(good=4)
    said = message(regularizer_W=[penalty, None])
    assert "The objective is nan after sweep 4 of layer 1, so" in said


def test_the_layer_is_named():
    said = message(model="multilayer", regularizer_W=[None, Spoiled(good=3)], extrapolate=False)
    assert "after sweep 2 of layer 2, so" in said


@pytest.mark.parametrize("model", ["layer-centric", "data-centric", "multilayer"])
def test_a_solver_that_gives_nan(model):
    assert "The objective is nan after sweep 1" in message(solver=SpoiledSolver(), model=model)


def test_updates_without_a_loss_end_with_a_warning():
    with pytest.warns(ConvergenceWarning, match=r"diverged after 1 sweep.*Trigeorgis\(\)"):
        f = factorize(
            X, [4, 2], model=Trigeorgis(), solver=SpoiledSolver(), max_iter=5, tol=0, augment=0
        )
    assert f.stop_reason == "diverged"


def test_layers_alone_have_a_loss_whatever_the_model():
    said = message(model=Trigeorgis(), solver=SpoiledSolver())
    assert "The objective is nan after sweep 1 of layer 2, so" in said


def test_the_checkpoint_before_is_left(tmp_path):
    every = Checkpoint(tmp_path / "c", interval=0)
    penalty = Spoiled(good=5)
    message(regularizer_W=[penalty, None], extrapolate=False, checkpoint=every)
    with np.load(tmp_path / "c") as file:
        assert all(np.isfinite(file[name]).all() for name in file.files if name != "content")
