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
    OneParent,
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
    assert f.starts == g.starts
    for A, B in zip([*f.W, *f.H, f.weights, f.strength], [*g.W, *g.H, g.weights, g.strength]):
        np.testing.assert_array_equal(A, B)
    for name in ("objective", "layer_errors", "data_errors"):
        np.testing.assert_array_equal(f.history[name], g.history[name])
    assert (np.diff(f.history.time) >= 0).all()


RNG = np.random.default_rng(5)
GIVEN = [RNG.random((9, 4)), RNG.random((9, 2))], [RNG.random((4, 60)), RNG.random((2, 4))]
GIVEN_CODES = [GIVEN[0][0], RNG.random((4, 2))], [GIVEN[1][0], RNG.random((2, 60))]
CASES = {
    "layer-centric": {},
    "data-centric": {"model": "data-centric"},
    "multilayer": {"model": "multilayer"},
    "trigeorgis": {"model": "trigeorgis"},
    "plain": {"extrapolate": False},
    "augment": {"augment": 3},
    "starts": {"init": ["random", "random", "snpa"]},
    "two starts": {"init": ["random", "random"], "max_iter": 4, "random_state": 9},
    "starts of multilayer": {"init": ["snpa", "random"], "model": "multilayer"},
    "starts after augment": {
        "init": ["snpa", "random"],
        "augment": 2,
        "constraint_W": "nonnegative",
        "model": LayerCentric(10),
        "random_state": 1,
    },
    "min-volume": {"regularizer_W": MinVolume(0.1), "regularizer_H": ["l1", None]},
    "grouped-sparse": {"constraint_W": GroupedSparse(0.3), "constraint_H": GroupedSparse(0.1)},
    "held": {"constraint_W": [Fixed(X[:, :2]), None]},
    "missing": {"weights": (np.arange(540).reshape(9, 60) % 7 > 0).astype(float)},
    "hals": {"solver": "hals"},
    "multiplicative": {"solver": "mu"},
    "panels": {"panel_size": 7, "regularizer_H": "l1"},
    "tol": {"tol": 0.1, "max_iter": 40, "model": "multilayer"},
    "tol of every stage": {"tol": 0.02, "max_iter": 40, "init": ["snpa", "random"]},
    "given": {"init": GIVEN, "constraint_W": "nonnegative"},
    "codes": {"hierarchy": "codes", "init": ["nndsvd", "random"]},
    "codes, data-centric": {"hierarchy": "codes", "model": "data-centric"},
    "codes, multilayer": {"hierarchy": "codes", "model": "multilayer", "init": ["snpa", "random"]},
    "codes, given": {"hierarchy": "codes", "init": GIVEN_CODES},
    "codes, penalties": {
        "hierarchy": "codes",
        "constraint_W": "simplex",
        "regularizer_W": [MinVolume(0.1), None],
        "regularizer_H": ["l1", "ridge"],
    },
    "one parent": {"constraint_H": [None, OneParent()]},
}
KINDS = {
    "dense": lambda: X,
    "float32": lambda: X.astype(np.float32),
    "sparse": lambda: sparse.random_array((9, 60), density=0.4, rng=1, format="csc"),
    "stored": lambda: OnDisk(X),
}


def rows_of(A, **settings):
    """The fit and all rows that callbacks see: of layers alone, of each start, of all together."""
    rows = []
    f = factorize(A, [4, 2], **settings, callbacks=rows.append)
    return f, [(p.layer, p.sweep, p.objective) for p in rows]


def resumed_everywhere(A, path, **settings):
    """Stop before every sweep of every stage, go on, and compare with the fit never stopped."""
    settings = {**SWEEPS, **settings}
    whole, rows = rows_of(A, **settings)
    count = 0
    while True:
        try:
            f = factorize(A, [4, 2], **settings, checkpoint=Stopping(path, count))
        except Stop:
            assert path.exists()
        else:
            break
        g, rest = rows_of(A, **settings, checkpoint=path)
        same(g, whole)
        assert rest == rows[count:]
        assert not path.exists()
        count += 1
    same(f, whole)
    assert count == len(rows) >= whole.n_iter
    return whole


@pytest.mark.parametrize("case", CASES)
def test_goes_on_from_every_sweep(case, tmp_path):
    whole = resumed_everywhere(X, tmp_path / "c", **CASES[case])
    if case in ("two starts", "starts after augment"):
        assert whole.starts[1] == 1  # of which nothing was there at first but the generator


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


@pytest.mark.parametrize("bits", [np.random.MT19937(6), np.random.Philox(5)])
def test_goes_on_with_any_generator(bits, tmp_path):
    """Stopped in the second of three starts; those of the next layer are as they were to be."""
    first = bits.state

    def fit(**more):
        bits.state = first
        settings = {**SWEEPS, "random_state": np.random.Generator(bits), **more}
        return factorize(X, [4, 2], init=["random"] * 3, constraint_W="nonnegative", **settings)

    every = Checkpoint(tmp_path / "c", interval=0)
    with pytest.raises(Stop):
        fit(checkpoint=every, callbacks=stop_at(10))
    f = fit(checkpoint=every)
    assert f.starts[1] == 2
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


@pytest.mark.parametrize(("ranks", "sweeps"), [([4, 2], 0), ([4], 1)])
def test_goes_on_with_more_time(ranks, sweeps, tmp_path):
    """There is time for one sweep, which is of the first layer alone."""
    settings, rows = {**SWEEPS, "checkpoint": tmp_path / "c"}, []
    f = factorize(X, ranks, **settings, max_time=0, callbacks=rows.append)
    assert (f.stop_reason, f.n_iter, len(rows)) == ("max_time", sweeps, 1)
    g = factorize(X, ranks, **settings, max_time=1000)
    same(g, factorize(X, ranks, **SWEEPS))
    if sweeps:
        assert g.history.time[1] == f.history.time[1] == rows[0].time
    else:
        assert g.history.time[0] > rows[0].time


def interrupt(sweep, times=1, layer=None):
    """A callback that interrupts after a sweep of a layer alone, or of all together."""

    def call(p):
        if (p.sweep, p.layer) == (sweep, layer):
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)

    return call


@pytest.mark.parametrize(
    ("case", "layer"),
    [
        *(("layer-centric", layer) for layer in (1, 2, None)),
        *(("multilayer", layer) for layer in (1, 2)),
        *(("augment", layer) for layer in (1, 2, None)),
        *(("starts", layer) for layer in (1, 2, None)),
        *(("codes", layer) for layer in (1, 2, None)),
        *(("codes, multilayer", layer) for layer in (1, 2)),
    ],
)
def test_interrupted(case, layer, tmp_path):
    """What comes back is the last whole sweep, no sweep follows, and the same call resumes."""
    settings = {**SWEEPS, **CASES[case]}
    every, seen = {"checkpoint": tmp_path / "c"}, []
    calls = [interrupt(2, layer=layer), lambda p: seen.append((p.layer, p.sweep, p.objective))]
    with pytest.warns(InterruptedWarning, match="same call resumes from the checkpoint"):
        f = factorize(X, [4, 2], **settings, **every, callbacks=calls)
    assert f.stop_reason == "interrupted"
    whole, rows = rows_of(X, **settings)
    assert seen == rows[: len(seen)]
    assert seen[-1][:2] == (layer, 2)
    if settings.get("model") == "multilayer":  # whose longest stage counts
        assert f.n_iter == (2 if layer == 1 else 7)
    else:
        assert f.n_iter == (2 if layer is None else 0)
    B = np.linalg.norm(X - f.reconstruct(1)) ** 2 / np.linalg.norm(X) ** 2
    assert f.history.data_errors[-1, 0] == pytest.approx(B)
    same(factorize(X, [4, 2], **settings, **every), whole)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_cut_short_in_a_start_that_is_not_kept(tmp_path):
    """No sweep of another start or layer follows the one that was cut short."""
    settings = {**SWEEPS, **CASES["starts"], "checkpoint": tmp_path / "c"}
    rows = []

    def stop(p):
        rows.append((p.layer, p.sweep))
        return len(rows) == 2

    f = factorize(X, [4, 2], **settings, callbacks=stop)
    assert f.starts[0] != 0  # the first one was being fitted
    assert rows == [(1, 1), (1, 2)]
    same(factorize(X, [4, 2], **settings), factorize(X, [4, 2], **SWEEPS, **CASES["starts"]))


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
        ({"augment": 1}, "augment null where this one has 1"),
        ({"inner_iter": 3}, "inner_iter 10 where this one has 3"),
        ({"inner_tol": 0.1}, "inner_tol"),
        ({"extrapolate": False}, "extrapolate true where this one has false"),
        ({"random_state": 4}, "random_state 3 where this one has 4"),
        ({"constraint_W": [Fixed(X[:, :2]), None]}, "constraint_W"),
        ({"weights": np.ones((9, 60))}, "X's weights"),
        ({"A": data(9, 61)}, "X's shape [9, 60] where this one has [9, 61]"),
        ({"A": X.astype(np.float32)}, "X's type"),
        ({"A": data(seed=1)}, "X's squared norm"),
        ({"A": X[:, ::-1]}, "X's digest"),
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


def test_an_unfinished_fit_of_the_first_version_is_refused(tmp_path):
    """Whatever its data and settings: its sweeps were others, and its file names no version."""
    old = Path(__file__).parent / "data" / "checkpoints-0.1.0" / "layer-centric"
    path = tmp_path / "c"
    path.write_bytes(old.read_bytes())
    said = refusal(path)
    assert "was written by deepmf 0.1.0, but this is deepmf" in said
    assert "finish the fit with deepmf 0.1.0, or delete it" in said
    assert path.read_bytes() == old.read_bytes()


# --- NaN ------------------------------------------------------------------------------------------


def spoil(number):
    def change(content, members):
        name = next(name for name, M in members.items() if M.dtype.kind == "f" and M.size > 100)
        members[name].flat[7] = number

    return change


def spoil_a_row(content, members):
    content["moment"]["trials"][0]["stages"][1]["rows"][1]["objective"] = float("nan")


@pytest.mark.parametrize("change", [spoil(np.nan), spoil(np.inf), spoil_a_row])
def test_a_checkpoint_with_numbers_that_are_not_finite_is_refused(change, tmp_path):
    path = left_by_a_stop(tmp_path / "c")
    rewritten(path, change)
    said = refusal(path)
    assert "holds NaN or infinite numbers" in said
    assert "delete it to begin anew" in said


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
    assert len(written) == len(rows_of(X, **SWEEPS)[1]) == 21  # each layer alone, then both


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
