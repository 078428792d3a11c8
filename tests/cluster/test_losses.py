"""A lost worker does not lose the fit."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from deepmf import L1, CappedSimplex, FastProjectedGradient, Nonnegative, Solver, factorize
from deepmf.data.dask import pool, worker
from deepmf.data.panels import Coding

da = pytest.importorskip("dask.array")

CHUNKS = (12, 50)
PLAIN = {"tol": 0, "random_state": 0, "init": "random", "extrapolate": False}


@pytest.fixture
def mortal(new_cluster):
    """Two workers of the test's own, to be ended."""
    with new_cluster(n_workers=2) as client, client.as_current():
        yield client


def kill_one(client, which=-1):
    pids = client.run(os.getpid)
    os.kill(pids[sorted(pids)[which]], signal.SIGKILL)


def objective_now(X, f):
    """The loss of a single layer, from the factors themselves."""
    return 0.5 * np.linalg.norm(X - f.W[0] @ np.asarray(f.H[0])) ** 2


@pytest.mark.parametrize("fan", [10, 1])
def test_the_fit_goes_on_and_still_decreases(mortal, X, fan, monkeypatch):
    monkeypatch.setattr(pool, "_FAN", fan)

    def callback(progress):
        if progress.sweep == 3:
            kill_one(mortal)

    D = da.from_array(X, chunks=CHUNKS)
    with pytest.warns(UserWarning, match=r"lost tcp://.* 7 of 14 chunks of X"):
        f = factorize(D, [4], max_iter=10, callbacks=callback, **PLAIN)
    undisturbed = factorize(X, [4], max_iter=10, **PLAIN)
    assert f.n_iter == 10
    assert np.diff(f.history.objective).max() < 0
    np.testing.assert_allclose(
        f.history.objective[:4], undisturbed.history.objective[:4], rtol=1e-10
    )
    # Codes that replace lost ones are optimal, so the fit is ahead of the one without a loss.
    assert f.history.objective[4] <= undisturbed.history.objective[4]
    np.testing.assert_allclose(objective_now(X, f), f.history.objective[-1], rtol=1e-9)


@pytest.mark.parametrize(
    "settings",
    [
        {"constraint_H": CappedSimplex(), "model": "data-centric"},
        {"regularizer_H": L1(1e-2), "constraint_W": "simplex"},
        {"init": "snpa", "solver": "hals"},
    ],
    ids=str,
)
def test_decrease_under_constraints_and_penalties(mortal, X, settings):
    done = []

    def callback(progress):
        if progress.sweep == 2 and not done:
            done.append(kill_one(mortal, 0))

    D = da.from_array(X, chunks=CHUNKS)
    with pytest.warns(UserWarning, match="lost"):
        f = factorize(D, [4], max_iter=6, callbacks=callback, **{**PLAIN, **settings})
    assert np.diff(f.history.objective).max() < 0


def test_a_loss_in_the_middle_of_a_call(mortal):
    """The call under way fails at once, and not after a time-out."""
    big = da.random.default_rng(0).random((60, 40_000), chunks=(60, 5000))
    timer = threading.Timer(0.5, kill_one, [mortal])
    began = []

    def callback(progress):
        if progress.sweep == 1:
            timer.start()
        began.append(time.monotonic())

    with pytest.warns(UserWarning, match="lost"):
        f = factorize(
            big,
            [8],
            max_iter=400,
            max_time=20,
            callbacks=[callback, lambda p: not timer.is_alive() and p.sweep > 1 and _later(began)],
            **PLAIN,
        )
    assert np.diff(f.history.objective).max() < 0
    assert np.diff(began).max() < 15


def _later(began, after=[]):  # noqa: B006
    """A few sweeps after the timer went off."""
    after.append(len(began))
    return len(after) > 5


def test_a_loss_during_the_start(mortal, X):
    def start(panels, rank, rng):
        kill_one(mortal)
        return panels.columns(np.arange(rank))

    D = da.from_array(X, chunks=CHUNKS)
    with pytest.warns(UserWarning, match="lost"):
        f = factorize(D, [4], **{**PLAIN, "init": start, "max_iter": 3})
    g = factorize(X, [4], **{**PLAIN, "init": lambda p, r, _: p.columns(range(r)), "max_iter": 3})
    # The start's own codes are less than optimal, those of the lost columns are not.
    assert 0.9 * g.history.objective[0] < f.history.objective[0] <= g.history.objective[0]
    assert np.diff(f.history.objective).max() < 0


def test_codes_of_a_lost_worker_say_so(mortal, X):
    D = da.from_array(X, chunks=CHUNKS)
    f = factorize(D, [4], max_iter=2, **PLAIN)
    kill_one(mortal)
    with pytest.raises(RuntimeError, match=r"was lost, and they with it.*f\.encode\(X\)"):
        f.H[0].compute()
    assert f.encode(D).compute().shape == (4, 700)


def test_the_same_chunks_are_not_lost_for_ever(mortal, X, monkeypatch):
    monkeypatch.setattr(pool, "_LOSSES", 0)
    with pytest.raises(RuntimeError, match="lost 1 times, most likely for lack of memory"):
        factorize(
            da.from_array(X, chunks=CHUNKS),
            [4],
            max_iter=5,
            callbacks=lambda p: kill_one(mortal) if p.sweep == 1 else None,
            **PLAIN,
        )


def test_no_worker_is_left(new_cluster, X, monkeypatch):
    monkeypatch.setattr(pool, "_WAIT", 1.0)

    def callback(progress):
        client.cluster.scale(0)
        while client.scheduler_info()["workers"]:
            time.sleep(0.05)

    with (
        new_cluster(n_workers=1, processes=False) as client,
        client.as_current(),
        pytest.warns(UserWarning, match="lost"),
        pytest.raises(RuntimeError, match=r"no workers, and none came within 1 s.*scale"),
    ):
        factorize(da.from_array(X, chunks=CHUNKS), [4], callbacks=callback, **PLAIN)


def test_a_client_that_is_closed(new_cluster, X):
    with new_cluster(n_workers=1, processes=False) as client, client.as_current():
        D = da.from_array(X, chunks=CHUNKS)
        with pytest.raises(RuntimeError, match=r"client is clos.*Keep the Client open"):
            factorize(D, [4], callbacks=lambda p: client.close(), **PLAIN)


def test_codes_built_anew_are_optimal(X):
    """No codes in the set do better for the same coding problem, so the objective cannot rise."""
    rng = np.random.default_rng(1)
    W = rng.random((12, 4))
    coding = Coding.of(W, CappedSimplex())
    s = worker.ColumnStore(
        "x", {0: X[:, :300], 1: X[:, 300:]}, {}, worker.WorkerOptions(1, False), coding
    )

    def value(H):
        return 0.5 * np.sum(H * (coding.A @ H)) - np.sum((W.T @ X) * H)

    best = value(np.hstack(list(s.codes().values())))
    for _ in range(5):
        assert value(CappedSimplex().project(rng.random((4, 700)))) >= best
    XHt, _, _ = s.update(1, coding, _Still(), 1, 0.0)
    np.testing.assert_allclose(XHt, X @ np.hstack(list(s.codes().values())).T)


def test_an_update_that_is_asked_for_again_is_not_done_again(X):
    """So that what is taken back is the update as a whole."""
    W = np.random.default_rng(1).random((12, 4))
    coding = Coding.of(W, Nonnegative())
    s = worker.ColumnStore("x", {0: X}, {}, worker.WorkerOptions(1, False))
    s.begin(coding)
    before = s.codes()[0].copy()
    ahead = replace(coding, ahead=0.5)
    first = s.update(1, ahead, FastProjectedGradient(), 3, 0.0)
    again = s.update(1, ahead, FastProjectedGradient(), 3, 0.0)
    assert all(np.array_equal(a, b) for a, b in zip(first, again))
    assert not np.array_equal(s.codes()[0], before)
    for _ in range(2):
        s.undo()
        np.testing.assert_array_equal(s.codes()[0], before)


def test_new_codes_are_sought_again_after_a_step_back(X):
    """They are optimal for whatever basis the next sweep has, so that it cannot fail for ever."""
    rng = np.random.default_rng(1)
    codings = [Coding.of(W, Nonnegative(), ahead=0.5) for W in rng.random((3, 12, 4))]
    s = worker.ColumnStore("x", {0: X}, {}, worker.WorkerOptions(1, False), codings[0])
    for number, coding in enumerate(codings[1:], start=1):
        s.update(number, coding, FastProjectedGradient(), 1, 0.0)
        best = worker.ColumnStore("y", {0: X}, {}, worker.WorkerOptions(1, False), coding).codes()[
            0
        ]
        np.testing.assert_allclose(s.codes()[0], best, atol=1e-4)
        s.undo()


def test_a_loss_of_a_fit_that_extrapolates(mortal, X):
    D = da.from_array(X, chunks=CHUNKS)
    settings = {**PLAIN, "extrapolate": True, "max_iter": 30}
    with pytest.warns(UserWarning, match="lost"):
        f = factorize(
            D, [4], callbacks=lambda p: kill_one(mortal) if p.sweep == 9 else None, **settings
        )
    objective = f.history.objective
    assert np.diff(objective).max() <= 0
    assert objective[-1] < objective[15] < objective[9]
    undisturbed = factorize(X, [4], **settings).history.objective
    assert objective[-1] < 1.05 * undisturbed[-1]


class _Still(Solver):
    """A solver that stays where it is."""

    def column_kernel(self, *args):
        return None

    def solve(self, q, constraint, M, max_iter, tol):
        return M
