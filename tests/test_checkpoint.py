"""Checkpoints: a fit that is stopped or killed goes on, to the same bits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from deepmf import (
    Checkpoint,
    DeepMF,
    Fixed,
    GroupedSparse,
    LayerCentric,
    MinVolume,
    Ridge,
    factorize,
)
from deepmf._utils import atomic_files
from deepmf.data.on_disk import OnDisk
from deepmf.fitting import checkpoint
from deepmf.fitting.interrupt import InterruptedWarning


def data(m=9, n=60, seed=0):
    rng = np.random.default_rng(seed)
    return rng.random((m, 5)) @ rng.random((5, n)) + 0.05 * rng.random((m, n))


X = data()
SWEEPS = {"max_iter": 7, "tol": 0, "random_state": 3}


class Stop(Exception):
    """What stands for a kill: nothing of the fit comes after it."""


def stop_at(count):
    """A callback that lets so many sweeps pass."""
    calls = iter(range(count))

    def call(progress):
        if next(calls, None) is None:
            raise Stop

    return call


class Stopping(Checkpoint):
    """After every sweep, of layers that are fitted alone too; the fit is stopped by one of them."""

    def __init__(self, path, number):
        super().__init__(path, interval=0)
        self.number = number

    def save(self, moment):
        super().save(moment)
        self.number -= 1
        if self.number < 0:
            raise Stop


def same(f, g):
    assert f.stop_reason == g.stop_reason
    assert f.start == g.start
    for A, B in zip([*f.W, *f.H, f.weights, f.strength], [*g.W, *g.H, g.weights, g.strength]):
        np.testing.assert_array_equal(A, B)
    for name in ("objective", "layer_errors", "data_errors"):
        np.testing.assert_array_equal(f.history[name], g.history[name])
    assert (np.diff(f.history.time) >= 0).all()


CASES = {
    "layer-centric": {},
    "data-centric": {"model": "data-centric"},
    "multilayer": {"model": "multilayer"},
    "trigeorgis": {"model": "trigeorgis"},
    "plain": {"extrapolate": False},
    "augment": {"augment": 3},
    "starts": {"init": ["random", "random", "snpa"]},
    "two starts": {"init": ["random", "random"], "max_iter": 4, "random_state": 6},
    "starts of multilayer": {"init": ["snpa", "random"], "model": "multilayer"},
    "starts after augment": {
        "init": ["snpa", "random"],
        "augment": 2,
        "constraint_W": "nonnegative",
        "model": LayerCentric(10),
    },
    "min-volume": {"regularizer_W": MinVolume(0.1), "regularizer_H": ["l1", None]},
    "grouped-sparse": {"constraint_W": GroupedSparse(0.3), "constraint_H": GroupedSparse(0.1)},
    "held": {"constraint_W": [Fixed(X[:, :2]), None]},
    "missing": {"weights": (np.arange(540).reshape(9, 60) % 7 > 0).astype(float)},
    "hals": {"solver": "hals"},
    "multiplicative": {"solver": "mu"},
    "panels": {"panel_size": 7, "regularizer_H": "l1"},
    "tol": {"tol": 0.1, "max_iter": 40, "model": "multilayer"},
}
KINDS = {
    "dense": lambda: X,
    "float32": lambda: X.astype(np.float32),
    "sparse": lambda: sparse.random_array((9, 60), density=0.4, rng=1, format="csc"),
    "stored": lambda: OnDisk(X),
}


def resumed_everywhere(A, path, **settings):
    """Stop before every sweep, go on, and compare with the fit that was never stopped."""
    settings = {**SWEEPS, **settings}
    whole = factorize(A, [4, 2], **settings)
    count = 0
    while True:
        try:
            f = factorize(A, [4, 2], **settings, checkpoint=Stopping(path, count))
        except Stop:
            assert path.exists()
        else:
            break
        same(factorize(A, [4, 2], **settings, checkpoint=path), whole)
        assert not path.exists()
        count += 1
    same(f, whole)
    assert count >= whole.n_iter
    return whole


@pytest.mark.parametrize("case", CASES)
def test_goes_on_from_every_sweep(case, tmp_path):
    whole = resumed_everywhere(X, tmp_path / "c", **CASES[case])
    if case in ("two starts", "starts after augment"):
        assert whole.start == 1  # of which nothing was there at first but the generator


@pytest.mark.parametrize("case", ["layer-centric", "multilayer", "two starts"])
@pytest.mark.parametrize("kind", ["float32", "sparse", "stored"])
def test_goes_on_with_every_kind_of_data(kind, case, tmp_path):
    resumed_everywhere(KINDS[kind](), tmp_path / "c", **CASES[case])


@pytest.mark.parametrize("case", ["layer-centric", "plain", "two starts"])
def test_goes_on_with_tensors(case, tmp_path):
    torch = pytest.importorskip("torch")
    resumed_everywhere(torch.from_numpy(X), tmp_path / "c", **CASES[case])


@pytest.mark.parametrize("case", ["layer-centric", "starts after augment", "multilayer"])
def test_goes_on_when_stopped_after_each_single_sweep(case, tmp_path):
    """Many stops in one fit."""
    settings = {**SWEEPS, **CASES[case]}
    every, stops = Checkpoint(tmp_path / "c", interval=0), 0
    while True:
        try:
            f = factorize(X, [4, 2], **settings, checkpoint=every, callbacks=stop_at(1))
        except Stop:
            stops += 1
        else:
            break
    same(f, factorize(X, [4, 2], **settings))
    assert stops >= 5


@pytest.mark.parametrize("bits", [np.random.MT19937(1), np.random.Philox(6)])
def test_goes_on_with_any_generator(bits, tmp_path):
    """Stopped in the second of three starts; the third, which is the best, is as it was to be."""
    first = bits.state

    def fit(**more):
        bits.state = first
        settings = {**SWEEPS, "random_state": np.random.Generator(bits), **more}
        return factorize(X, [4, 2], init=["random"] * 3, constraint_W="nonnegative", **settings)

    every = Checkpoint(tmp_path / "c", interval=0)
    with pytest.raises(Stop):
        fit(checkpoint=every, callbacks=stop_at(10))
    f = fit(checkpoint=every)
    assert f.start == 2
    same(f, fit())


def test_estimator_goes_on(tmp_path):
    def model(**more):
        return DeepMF([4, 2], max_iter=6, tol=0, **more)

    every = Checkpoint(tmp_path / "c", interval=0)
    with pytest.raises(Stop):
        model(checkpoint=every, callbacks=stop_at(3)).fit(X.T)
    assert every.path.exists()
    f = model(checkpoint=every).fit(X.T).factorization_
    same(f, model().fit(X.T).factorization_)


# --- cut short ------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["layer-centric", "multilayer", "augment", "starts"])
def test_goes_on_after_a_callback_stopped_it(case, tmp_path):
    settings = {**SWEEPS, **CASES[case], "checkpoint": tmp_path / "c"}
    f = factorize(X, [4, 2], **settings, callbacks=lambda p: p.sweep == 2)
    assert f.stop_reason == "callback"
    assert (tmp_path / "c").exists()
    whole = factorize(X, [4, 2], **settings)
    same(whole, factorize(X, [4, 2], **{**settings, "checkpoint": None}))
    assert list(tmp_path.iterdir()) == []


def test_goes_on_with_more_time(tmp_path):
    settings = {**SWEEPS, "checkpoint": tmp_path / "c"}
    f = factorize(X, [4, 2], **settings, max_time=0)
    assert (f.stop_reason, f.n_iter) == ("max_time", 1)
    g = factorize(X, [4, 2], **settings, max_time=1000)
    same(g, factorize(X, [4, 2], **SWEEPS))
    assert g.history.time[1] == f.history.time[1]


def interrupt(sweep, times=1):
    def call(p):
        if p.sweep == sweep:
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)

    return call


@pytest.mark.parametrize("case", ["layer-centric", "multilayer", "augment", "starts"])
def test_interrupted(case, tmp_path):
    """What comes back is the last whole sweep, and the same call goes on."""
    settings = {**SWEEPS, **CASES[case]}
    every = {"checkpoint": tmp_path / "c"}
    with pytest.warns(InterruptedWarning, match="same call goes on from the checkpoint"):
        f = factorize(X, [4, 2], **settings, **every, callbacks=interrupt(3))
    assert f.stop_reason == "interrupted"
    whole = factorize(X, [4, 2], **settings)
    if case in ("layer-centric", "multilayer"):
        first = whole.history.data_errors[:4, 0]
        np.testing.assert_array_equal(f.history.data_errors[:4, 0], first)
    B = np.linalg.norm(X - f.W[0] @ f.H[0]) ** 2 / np.linalg.norm(X) ** 2
    assert f.history.data_errors[-1, 0] == pytest.approx(B)
    same(factorize(X, [4, 2], **settings, **every), whole)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_interrupted_while_layers_are_added(tmp_path):
    """The rest of the layers is started, so that the result is whole."""

    def start(panels, rank, rng):
        start.begun.append(rank)
        if len(start.begun) == 2:
            signal.raise_signal(signal.SIGINT)
        return panels.columns(range(rank))

    start.begun = []  # an attribute, as other values in its closure would make it another start

    settings = {**SWEEPS, "init": start, "augment": 3, "checkpoint": tmp_path / "c"}
    with pytest.warns(InterruptedWarning):
        f = factorize(X, [4, 3, 2], **settings)
    assert (f.stop_reason, start.begun, f.n_iter) == ("interrupted", [4, 3, 2], 0)
    start.begun = [0] * 5
    g = factorize(X, [4, 3, 2], **settings)
    same(g, factorize(X, [4, 3, 2], **{**settings, "checkpoint": None}))


def test_interrupted_without_a_checkpoint():
    with pytest.warns(InterruptedWarning, match="Give factorize a checkpoint"):
        f = factorize(X, [4, 2], **SWEEPS, callbacks=interrupt(2))
    assert f.n_iter == 2


def test_second_interruption_is_obeyed_at_once(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        factorize(X, [4, 2], **SWEEPS, callbacks=interrupt(2, times=2))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_interruption_that_comes_too_late_is_raised(tmp_path):
    """The last sweep's callback has been asked; the checkpoint is still there."""
    late = Checkpoint(tmp_path / "c", interval=0)

    def start(panels, rank, rng):
        signal.raise_signal(signal.SIGINT)
        return panels.columns(range(rank))

    with pytest.raises(KeyboardInterrupt):
        factorize(X, [4, 2], max_iter=0, init=start, checkpoint=late)


def test_own_handlers_and_other_threads_are_left_alone():
    seen = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        f = factorize(X, [4, 2], **SWEEPS, callbacks=interrupt(2))
    finally:
        signal.signal(signal.SIGINT, before)
    assert (f.stop_reason, seen) == ("max_iter", [signal.SIGINT])
    results = []
    thread = threading.Thread(target=lambda: results.append(factorize(X, [4, 2], **SWEEPS)))
    thread.start()
    thread.join()
    same(results[0], f)


# --- the file -------------------------------------------------------------------------------------


def left_by_a_stop(path, A=X, sweeps=3, **settings):
    with pytest.raises(Stop):
        factorize(
            A, [4, 2], **{**SWEEPS, **settings}, checkpoint=Checkpoint(path, 0),
            callbacks=stop_at(sweeps),
        )  # fmt: skip
    return path


def refusal(path, A=X, ranks=(4, 2), **settings):
    with pytest.raises((ValueError, OSError)) as error:
        factorize(A, list(ranks), **{**SWEEPS, **settings}, checkpoint=path)
    said = str(error.value)
    assert said.endswith(".")
    assert "\n" not in said
    return said


def swapped(A, i, j):
    """A with two of its columns exchanged."""
    order = np.arange(A.shape[1])
    order[[i, j]] = j, i
    return A[:, order]


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"ranks": (4, 3)}, r"ranks [4, 2] where this one has [4, 3]"),
        ({"model": "data-centric"}, "model"),
        ({"model": LayerCentric(lam=2)}, "model"),
        ({"constraint_W": "nonnegative"}, "constraint_W"),
        ({"regularizer_W": [None, MinVolume(0.1)]}, "regularizer_W"),
        ({"solver": "hals"}, "solver"),
        ({"init": "random"}, "init"),
        ({"init": ["snpa", "random"]}, "init"),
        ({"augment": 1}, "augment 0 where this one has 1"),
        ({"inner_iter": 3}, "inner_iter 10 where this one has 3"),
        ({"inner_tol": 0.1}, "inner_tol"),
        ({"extrapolate": False}, "extrapolate true where this one has false"),
        ({"random_state": 4}, "random_state 3 where this one has 4"),
        ({"constraint_W": [Fixed(X[:, :2]), None]}, "constraint_W"),
        ({"weights": np.ones((9, 60))}, "X's weights"),
        ({"A": data(9, 61)}, "X's shape [9, 60] where this one has [9, 61]"),
        ({"A": X.astype(np.float32)}, "X's type"),
        ({"A": data(seed=1)}, "X's squared norm"),
        ({"A": X[:, ::-1]}, "X's columns"),
        ({"A": X + 1e-6 * (np.arange(60) == 8)}, "X's squared norm"),
        ({"A": swapped(X, 1, 6)}, "X's digest"),
        ({"A": np.nextafter(X, np.where(np.arange(60) == 6, 2, X))}, "X's digest"),
    ],
)
def test_another_fit_is_refused(settings, what, tmp_path):
    path = left_by_a_stop(tmp_path / "c")
    before = path.read_bytes()
    said = refusal(path, **settings)
    assert "belongs to another fit" in said
    assert what in said
    assert path.read_bytes() == before


def test_given_starts_are_told_apart(tmp_path):
    rng = np.random.default_rng(0)
    Ws, Hs = [rng.random((9, 4)), rng.random((9, 2))], [rng.random((4, 60)), rng.random((2, 4))]
    path = left_by_a_stop(tmp_path / "c", init=(Ws, Hs))
    Ws[1] = Ws[1] + 1e-9
    assert "init" in refusal(path, init=(Ws, Hs))


def test_columns_of_one_norm_are_told_apart(tmp_path):
    """Neither norms nor sums differ, and X is what counts or one-hot codes often are."""
    Y = np.tile(np.eye(9), (1, 7))[:, :60] + 0.1
    path = left_by_a_stop(tmp_path / "c", A=Y, init="random")
    assert "X's digest" in refusal(path, A=swapped(Y, 1, 2), init="random")


@pytest.mark.parametrize("kind", ["boolean", "fractions", "NaN"])
def test_other_weights_are_refused(kind, tmp_path):
    """Rows are constant, so that masks of one size give X the same norm and the same filling."""
    Y = np.outer(np.arange(1.0, 10), np.ones(60))
    V = np.ones((9, 60), bool)
    V[4, 7] = False
    other = swapped(V, 7, 8)
    given = {"init": "random", "weights": V}
    if kind == "fractions":
        V, other = 0.5 + 0.5 * V, 0.5 + 0.5 * other
    if kind == "NaN":
        path = left_by_a_stop(tmp_path / "c", np.where(V, Y, np.nan), **given | OBSERVED)
        said = refusal(path, np.where(other, Y, np.nan), **given | OBSERVED)
    else:
        path = left_by_a_stop(tmp_path / "c", Y, **given | {"weights": V})
        said = refusal(path, Y, **given | {"weights": other})
    assert "digest" in said


OBSERVED = {"weights": "observed"}


# --- a start of one's own -------------------------------------------------------------------------


FACTOR = 1.0


def picking(first, scale=1.0):
    return lambda panels, rank, rng: scale * panels.columns(range(first, first + rank))


def scaled(panels, rank, rng, scale=1.0):
    return scale * panels.columns(range(rank))


def with_a_global(panels, rank, rng):
    return FACTOR * panels.columns(range(rank))


class Picking:
    def __init__(self, first):
        self.first = first

    def __call__(self, panels, rank, rng):
        return panels.columns(self.first)[:, :rank]

    def pick(self, panels, rank, rng):
        return self(panels, rank, rng)


STARTS = {
    "closure": (picking(0), picking(2)),
    "array in a closure": (picking(0, X[0, 0]), picking(0, X[0, 1])),
    "code": (lambda p, r, g: p.columns(range(r)), lambda p, r, g: p.columns(range(1, r + 1))),
    "default": (
        lambda p, r, g, first=0: p.columns(range(first, first + r)),
        lambda p, r, g, first=1: p.columns(range(first, first + r)),
    ),
    "partial": (partial(scaled, scale=1.0), partial(scaled, scale=2.0)),
    "instance": (Picking([0, 1, 2, 3]), Picking([0, 1, 2, 4])),
    "method": (Picking([0, 1, 2, 3]).pick, Picking([0, 1, 2, 4]).pick),
}


@pytest.mark.parametrize("case", STARTS)
def test_another_start_of_one_name_is_refused(case, tmp_path):
    first, second = STARTS[case]
    path = left_by_a_stop(tmp_path / "c", init=first)
    assert "init's digest" in refusal(path, init=second)
    whole = factorize(X, [4, 2], **SWEEPS, init=first)
    same(factorize(X, [4, 2], **SWEEPS, init=first, checkpoint=path), whole)


def test_a_global_that_a_start_uses_is_part_of_it(tmp_path, monkeypatch):
    path = left_by_a_stop(tmp_path / "c", init=with_a_global)
    monkeypatch.setattr(sys.modules[__name__], "FACTOR", 2.0)
    assert "init's digest" in refusal(path, init=with_a_global)


def test_a_start_that_cannot_be_compared_is_announced(tmp_path):
    rng = np.random.default_rng(0)

    def start(panels, rank, _):
        return panels.columns(range(rank)) + rng.random()

    with pytest.warns(UserWarning, match="init holds a numpy.*Generator, which cannot"):
        path = left_by_a_stop(tmp_path / "c", init=start)
    rng = np.random.default_rng(1)
    with pytest.warns(UserWarning, match="Delete the checkpoint when you change it"):
        factorize(X, [4, 2], **SWEEPS, init=start, checkpoint=path)


class Pulled(Ridge):
    """A regularizer with a function for a parameter."""

    def __init__(self, weight=0.01, relative=True, pull=None):
        super().__init__(weight, relative)
        self.pull = pull


def test_a_function_in_a_setting_is_compared(tmp_path):
    path = left_by_a_stop(tmp_path / "c", regularizer_W=Pulled(pull=lambda M: M))
    assert "settings' digest" in refusal(path, regularizer_W=Pulled(pull=lambda M: 2 * M))


# --- versions -------------------------------------------------------------------------------------


def rewritten(path, change):
    """The file with its content changed by a function."""
    with np.load(path) as file:
        members = dict(file)
    content = json.loads(str(members["content"]))
    change(content, members)
    with path.open("wb") as file:
        np.savez(file, **{**members, "content": np.array(json.dumps(content))})


def test_another_version_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "__version__", "0.0.9")
    path = left_by_a_stop(tmp_path / "c")
    monkeypatch.undo()
    rewritten(path, lambda content, members: content["moment"].update(unheard_of=1))
    said = refusal(path)
    assert "was written by deepmf 0.0.9, but this is deepmf" in said
    assert "finish the fit with deepmf 0.0.9, or delete it" in said


def old_data():
    rng = np.random.default_rng(0)
    A = (rng.random((12, 5)) ** 3 @ rng.random((5, 40)) + 0.05 * rng.random((12, 40))).round(6)
    rng.random((12, 5)), rng.random((5, 7))
    return A, np.where(rng.random(A.shape) > 0.1, A, np.nan)


OLD_X, OLD_OBSERVED = old_data()
OLD_GIVEN = [OLD_X[:, :4] + 1, OLD_X[:, :2] + 1], [OLD_X[:4] + 1, OLD_X[:2, :4] + 1]
OLD = {
    "layer-centric": ([4, 3, 2], {}, 8, 0.6459866536712444),
    "multilayer": ([4, 3, 2], {"model": "multilayer"}, 20, 0.45764680915998457),
    "data-centric": ([4, 2], {"model": "data-centric", "init": "random"}, 8, 2.6268328916035557),
    "augment": ([4, 3, 2], {"augment": 3}, 12, 0.4593484684443064),
    "starts": (
        [4, 2],
        {"init": ["random", "snpa", "random"], "constraint_W": "nonnegative"},
        20,
        1.2497594134179963,
    ),
    "missing": ([4, 2], {**OBSERVED, "solver": "hals"}, 8, 1.725285500900165),
    "given": ([4, 2], {"constraint_W": "nonnegative", "init": OLD_GIVEN}, 8, 10.557172721804614),
}
"""Ranks, settings, sweeps that are left to do, and the objective in the end."""


@pytest.fixture
def old(request, tmp_path):
    """A copy of a checkpoint of the first version, and the call that it belongs to."""
    ranks, settings, left, objective = OLD[request.param]
    kept = Path(__file__).parent / "data" / "checkpoints-0.1.0" / request.param
    path = tmp_path / "old"
    path.write_bytes(kept.read_bytes())
    A = OLD_OBSERVED if request.param == "missing" else OLD_X
    settings = {"max_iter": 12, "tol": 0, "random_state": 3, **settings, "checkpoint": path}
    return A, {"ranks": ranks, **settings}, left, objective


@pytest.mark.parametrize("old", OLD, indirect=True)
def test_resumes_from_checkpoints_without_a_version(old):
    A, settings, left, objective = old
    sweeps = []
    f = factorize(A, **settings, callbacks=lambda p: sweeps.append(p.sweep))
    assert len(sweeps) == left
    assert f.history.objective[-1] == pytest.approx(objective, rel=1e-9)


@pytest.mark.parametrize("old", ["layer-centric"], indirect=True)
def test_checkpoints_without_a_version_are_compared_by_what_they_have(old):
    A, settings, *_ = old
    with pytest.raises(ValueError, match="X's columns"):
        factorize(A[:, ::-1], **settings)
    with pytest.raises(ValueError, match="with init"):
        factorize(A, **settings, init="random")


# --- NaN ------------------------------------------------------------------------------------------


def spoil(number):
    def change(content, members):
        name = next(name for name, M in members.items() if M.dtype.kind == "f" and M.size > 100)
        members[name].flat[7] = number

    return change


def spoil_a_row(content, members):
    content["moment"]["stages"][0]["rows"][1]["objective"] = float("nan")


@pytest.mark.parametrize("change", [spoil(np.nan), spoil(np.inf), spoil_a_row])
def test_a_checkpoint_with_numbers_that_are_not_finite_is_refused(change, tmp_path):
    path = left_by_a_stop(tmp_path / "c")
    rewritten(path, change)
    said = refusal(path)
    assert "holds NaN or infinite numbers" in said
    assert "delete it to begin anew" in said


def test_starts_after_one_that_diverged_resume(tmp_path):
    """Its numbers may be anything; it is not the best one."""
    path = left_by_a_stop(tmp_path / "c", sweeps=9, init=["random", "random"])

    def diverged(content, members):
        best = content["moment"]["best"]
        best["stop_reason"] = "diverged"
        members[f"array{best['history']['objective']['@array']}"][-1] = np.nan

    rewritten(path, diverged)
    f = factorize(X, [4, 2], **SWEEPS, init=["random", "random"], checkpoint=path)
    assert f.start == 1


def test_limits_may_change(tmp_path):
    """They decide when a fit ends, not where it goes."""
    path = left_by_a_stop(tmp_path / "c")
    more = {**SWEEPS, "max_iter": 12}
    same(factorize(X, [4, 2], **more, checkpoint=path), factorize(X, [4, 2], **more))


def outcome(path):
    """The fit that goes on, or what is said instead."""
    try:
        return factorize(X, [4, 2], **SWEEPS, checkpoint=path)
    except ValueError as error:
        return str(error)


def test_damage_is_refused_wherever_it_is(tmp_path):
    path = left_by_a_stop(tmp_path / "c", sweeps=2)
    content, whole = path.read_bytes(), factorize(X, [4, 2], **SWEEPS)
    bad = tmp_path / "bad"
    rng = np.random.default_rng(0)
    places = {0, 1, 4, 30, 100, len(content) - 1, len(content) - 22, len(content) // 2}
    for length in places | set(rng.integers(len(content), size=10).tolist()):
        bad.write_bytes(content[:length])
        assert "is not a whole checkpoint" in refusal(bad)
        assert bad.read_bytes() == content[:length]
    harmless = 0
    for place in places | set(rng.integers(len(content), size=40).tolist()):
        flipped = bytearray(content)
        flipped[place] ^= 1 << int(rng.integers(8))
        bad.write_bytes(flipped)
        found = outcome(bad)
        if isinstance(found, str):
            assert "is not a whole checkpoint" in found
        else:  # a bit that nobody reads, such as those of a date
            same(found, whole)
            harmless += 1
    assert harmless < 10


@pytest.mark.parametrize("what", ["text", "factors", "npz", "other version"])
def test_foreign_files_are_refused(what, tmp_path):
    path = tmp_path / "c.npz"
    if what == "text":
        path.write_text("notes of mine\n")
    elif what == "factors":
        factorize(X, [4, 2], **SWEEPS).save(path)
    elif what == "npz":
        np.savez(path, content=np.zeros(3))
    else:
        np.savez(path, content=np.array(json.dumps({"format": "deepmf checkpoint 0"})))
    before = path.read_bytes()
    assert "is not a whole checkpoint" in refusal(path)
    assert path.read_bytes() == before


def test_places_that_cannot_be_written_to(tmp_path, monkeypatch):
    assert "does not exist; make it" in refusal(tmp_path / "none" / "c")
    assert "is a folder" in refusal(tmp_path)
    assert "path of a file" in refusal(3)
    assert "path of a file" in refusal("")
    with pytest.raises(ValueError, match="interval of checkpoints"):
        Checkpoint("c", interval=-1)
    monkeypatch.setattr(os, "access", lambda *place: False)
    assert "Nothing can be written" in refusal(tmp_path / "c")


def test_full_disk_does_not_end_the_fit(tmp_path, monkeypatch):
    """The last checkpoint stays, and the fit goes on with a warning."""
    path = left_by_a_stop(tmp_path / "c", sweeps=2)
    before = path.read_bytes()

    def full(handle):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(atomic_files.os, "fsync", full)
        with pytest.warns(UserWarning, match=r"could not be written \(No space left on device\)"):
            left_by_a_stop(path, sweeps=2)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["c"]
    same(factorize(X, [4, 2], **SWEEPS, checkpoint=path), factorize(X, [4, 2], **SWEEPS))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_real_full_device_is_a_sentence(tmp_path):
    """Not one that is silently replaced: a device is no checkpoint."""
    assert "is not a whole checkpoint" in refusal("/dev/full")


def test_dask_arrays_are_refused(tmp_path):
    da = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match="checkpoint is not for Dask arrays"):
        factorize(da.from_array(X), [4, 2], checkpoint=tmp_path / "c")


def test_interval(tmp_path, monkeypatch):
    """Nothing is written before the first one has passed; then once in each."""
    written = []
    monkeypatch.setattr(Checkpoint, "save", lambda self, moment: written.append(moment.time))
    factorize(X, [4, 2], **SWEEPS, checkpoint=tmp_path / "c")
    assert written == []
    factorize(X, [4, 2], **SWEEPS, checkpoint=Checkpoint(tmp_path / "c", 0))
    assert len(written) == 7


def test_kept_where_the_caller_removes_it(tmp_path):
    kept = Checkpoint(tmp_path / "c", 0, keep=True)
    f = factorize(X, [4, 2], **SWEEPS, checkpoint=kept)
    assert kept.path.exists()
    (tmp_path / ".c.77.part").write_bytes(b"of a process that was killed")
    same(factorize(X, [4, 2], **SWEEPS, checkpoint=kept), f)
    kept.remove()
    assert list(tmp_path.iterdir()) == []


def test_no_pickle_is_read_or_written(tmp_path):
    path = left_by_a_stop(tmp_path / "c")
    with np.load(path, allow_pickle=False) as file:
        assert all(file[name].dtype.kind in "fuiU" for name in file.files)
    assert "pickle" not in Path(checkpoint.__file__).read_text().replace("allow_pickle=False", "")


# --- real processes -------------------------------------------------------------------------------


def test_killed_processes_go_on():
    """`benchmarks.kills` with few kills; run it with many after a change."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.kills", "--kills", "5", "--each", "2"],
        cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 kills" in done.stdout
