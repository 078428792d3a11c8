from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from deepmf import GroupedSparse, MinVolume, factorize
from deepmf.constraints import CappedSimplex, Nonnegative, Simplex
from deepmf.data.panels import Coding, DensePanels, SparsePanels
from deepmf.solvers import FastProjectedGradient

RNG = np.random.default_rng(0)
X = RNG.random((20, 4)) @ RNG.random((4, 150)) + 0.1 * RNG.random((20, 150))
MODELS = [
    {"model": "layer-centric"},
    {"model": "layer-centric", "constraint_W": "simplex"},
    {"model": "data-centric", "constraint_H": ["simplex", None]},
    {"model": "multilayer"},
    {"regularizer_W": MinVolume(1e-3), "constraint_H": ["capped-simplex", None]},
    {"constraint_W": [GroupedSparse(0.4), GroupedSparse(0.5)]},
    {"solver": "hals"},
]


def fitted(settings, **more):
    return factorize(
        X, [4, 2], init="random", random_state=0, **{"max_iter": 120, "tol": 0} | settings | more
    )


@pytest.mark.parametrize("settings", MODELS, ids=str)
def test_the_objective_never_rises(settings):
    f = fitted(settings)
    objective = f.history.objective
    if settings.get("model") == "multilayer":  # its layers follow each other
        return
    assert np.all(np.diff(objective) <= 0)


@pytest.mark.parametrize("settings", MODELS[:5], ids=str)
def test_it_gets_further_in_as_many_sweeps(settings):
    if settings.get("model") == "multilayer":
        plain, ahead = (fitted(settings, extrapolate=e).history.layer_errors for e in (False, True))
        assert ahead[-1, 0] <= plain[-1, 0]
    else:
        plain, ahead = (fitted(settings, extrapolate=e).history.objective for e in (False, True))
        assert ahead[-1] <= plain[-1]


def test_it_takes_fewer_sweeps_on_a_slow_problem():
    plain, ahead = (
        factorize(X, 8, init="random", random_state=0, max_iter=300, tol=0, extrapolate=e)
        for e in (False, True)
    )
    reached = np.argmax(ahead.history.objective <= plain.history.objective[-1])
    assert 0 < reached < 150


@pytest.mark.parametrize("settings", [{"solver": "mu"}, {"model": "trigeorgis"}], ids=str)
def test_what_cannot_go_ahead_sweeps_plainly(settings):
    settings = {**settings, "max_iter": 8, "augment": 0}  # layers alone have a loss of their own
    plain, ahead = (fitted(settings, extrapolate=e) for e in (False, True))
    np.testing.assert_array_equal(plain.H[0], ahead.H[0])


def test_a_sweep_that_was_taken_back_leaves_everything_as_it_was():
    """Rows of the history that repeat the one before belong to the same factors."""
    seen, settings = [], {"model": "data-centric", "augment": 0}
    f = fitted(settings, max_iter=200, callbacks=seen.append)
    still = np.flatnonzero(np.diff(f.history.objective) == 0)
    assert len(still), "no sweep was taken back: the test shows nothing"
    for k in still:
        np.testing.assert_array_equal(f.history.data_errors[k + 1], f.history.data_errors[k])
    stop = int(still[0]) + 1
    g = fitted(settings, max_iter=stop)
    h = fitted(settings, max_iter=stop - 1)
    for a, b in zip(g.W + g.H, h.W + h.H):
        np.testing.assert_array_equal(a, b)
    assert [p.sweep for p in seen] == list(range(1, 201))


def test_a_sweep_that_was_taken_back_does_not_end_the_fit():
    settings = {"model": "data-centric", "max_iter": 2000}
    f = fitted(settings, tol=1e-7)
    still = np.flatnonzero(np.diff(f.history.objective) == 0)
    assert len(still)
    assert still[0] + 1 < f.n_iter
    assert f.stop_reason == "tol"


def test_extrapolate_is_checked():
    with pytest.raises(ValueError, match="extrapolate must be True or False, got 'yes'"):
        factorize(X, 2, extrapolate="yes")


@pytest.mark.parametrize("constraint", [Nonnegative(), Simplex(), CappedSimplex()], ids=repr)
@pytest.mark.parametrize("kind", [np.ascontiguousarray, np.asfortranarray, sparse.csc_array])
def test_codes_step_ahead_and_back(kind, constraint):
    rng = np.random.default_rng(1)
    make = SparsePanels if kind is sparse.csc_array else DensePanels
    W = rng.random((20, 4))
    panels = make(kind(X), 64)
    panels.begin(Coding.of(W, constraint))
    coding = Coding.of(W, constraint, ahead=0.5)
    steps = [panels.codes.H.copy()]
    for _ in range(2):
        panels.update(coding, FastProjectedGradient(), 3, 0.0)
        steps.append(panels.codes.H.copy())
    panels.codes.undo()
    np.testing.assert_array_equal(panels.codes.H, steps[1])

    plain = make(kind(X), 64)
    start = constraint.project(steps[1] + 0.5 * (steps[1] - steps[0]))
    plain.codes.set(start)
    plain.update(Coding.of(W, constraint), FastProjectedGradient(), 3, 0.0)
    np.testing.assert_allclose(plain.codes.H, steps[2], atol=1e-12)
