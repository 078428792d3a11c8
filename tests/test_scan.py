"""Ranks and depths: the true rank where there is one, doubt where there is none."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from deepmf import factorize, scan
from deepmf.metrics import match
from deepmf.selection.halves import Halves
from deepmf.selection.rule import Candidate, choose
from deepmf.selection.scan import _facts, _fit, _Task


def low_rank(rank, noise=0.05, shape=(30, 60), seed=0):
    rng = np.random.default_rng(seed)
    X = rng.gamma(0.3, size=(shape[0], rank)) @ rng.gamma(0.3, size=(rank, shape[1]))
    return X + noise * X.mean() * rng.random(X.shape)


def candidate(ranks, error, agreement=1.0, deep=1.0, spread=1e-3, **more):
    """Made-up measurements: the folds scatter around the error in the same way for all ranks."""
    ranks = tuple(ranks)
    rng = np.random.default_rng(sum(ranks))
    wave = np.array([-1.0, 1, -1, 1, 0])[:, None] + 0.1 * rng.standard_normal((5, len(ranks)))
    agreements = np.full((3, len(ranks)), deep)
    agreements[:, 0] = agreement
    facts = {"smallest": 1.0, "logdet": 0.0, "effective_rank": 1.0, "duplicates": 0, "empty": 0}
    return Candidate(ranks, error + spread * wave, agreements, error, **{**facts, **more})


# --- the choice ----------------------------------------------------------------------------------


def flat(errors, agreements, first=1, **more):
    return [
        candidate([first + k], e, a, **more) for k, (e, a) in enumerate(zip(errors, agreements))
    ]


def test_error_and_stability_that_agree_are_sure():
    c = choose(flat([0.5, 0.3, 0.1, 0.1, 0.11], [1, 0.97, 0.99, 0.8, 0.7]))
    assert (c.ranks, c.sure, c.between) == ((3,), True, (3,))
    assert c.sentence.startswith("3 components: the error on held-out entries, 10 %")


def test_signals_that_differ_are_named():
    c = choose(flat([0.5, 0.3, 0.1, 0.05, 0.06], [1, 0.97, 0.99, 0.8, 0.7]))
    assert (c.sure, c.between) == (False, (3, 4))
    assert c.sentence.startswith("Not sure between 3 and 4.")


def test_without_stable_components_the_error_speaks_alone():
    c = choose(flat([0.5, 0.3, 0.1, 0.11], [1, 0.7, 0.8, 0.7]))
    assert (c.ranks, c.sure) == ((3,), False)
    assert c.sentence.startswith("Probably 3 components")
    assert "no rank gives the same components" in c.sentence


def test_errors_that_never_rise_or_never_fall_leave_doubt():
    falling = choose(flat([0.5, 0.3, 0.1], [1, 0.99, 0.7], first=2))
    assert (falling.sure, falling.between) == (False, (3, 4))
    assert "still falls at the largest rank tested, 4" in falling.sentence
    rising = choose(flat([0.5, 0.6, 0.7], [1, 0.4, 0.4]))
    assert (rising.ranks, rising.sure) == ((1,), False)
    assert "no more structure" in rising.sentence


def test_differences_are_judged_fold_by_fold():
    """Each error scatters by ten times the difference, the difference itself hardly."""
    c = choose(flat([0.5, 0.32, 0.3, 0.31], [1, 0.97, 0.99, 0.8], spread=0.05))
    assert (c.ranks, c.sure) == ((3,), True)


def test_repeated_and_empty_components_leave_doubt():
    c = choose(flat([0.5, 0.3, 0.1, 0.1], [1, 0.97, 0.99, 0.8], duplicates=1, empty=2))
    assert not c.sure
    assert c.sentence.endswith("1 of them repeat another and 2 of them carry next to nothing.")


def test_hierarchies_are_chosen_by_stability_on_the_chosen_rank():
    deep = [
        candidate([3, 2], 0.2, 0.9, deep=0.6),
        candidate([3, 1], 0.2, 0.9, deep=0.9),
        candidate([2, 1], 0.3, 0.9, deep=1.0),
    ]
    c = choose([*flat([0.5, 0.3, 0.1, 0.11], [1, 0.97, 0.99, 0.8]), *deep])
    assert (c.ranks, c.sure) == ((3, 1), True)
    assert "most stable hierarchy is 3,1" in c.sentence


def test_what_diverged_is_never_chosen():
    found = flat([0.5, 0.3, 0.1, np.inf], [1, 0.97, 0.99, 0.0])
    assert choose(found).ranks == (3,)


def test_where_everything_diverged_there_is_a_sentence():
    c = choose(flat([np.inf, np.inf], [0, 0], first=2))
    assert (c.ranks, c.sure, c.between) == ((2,), False, (2, 3))
    assert "no rank tested has a finite error" in c.sentence


# --- the measurements ----------------------------------------------------------------------------


def test_held_out_entries_are_not_seen():
    """Changing them changes nothing but the error."""
    X = low_rank(3)
    task = _Task(Entries(X), (3,), 0, 2, {"max_iter": 20, "tol": 0})
    held = np.random.default_rng(0).integers(10, size=X.shape) == 2
    one = _fit(task)
    other = _fit(task._replace(data=Entries(np.where(held, X + 1, X))))
    np.testing.assert_array_equal(one.W[0], other.W[0])
    assert one.errors[0] != other.errors[0]
    assert 0.05 < held.mean() < 0.15


@pytest.mark.parametrize("shape", [(2, 100), (100, 2), (4, 300), (2, 10)])
@pytest.mark.parametrize("missing", [0, 0.3])
def test_no_row_or_column_is_held_out_whole(shape, missing):
    rng = np.random.default_rng(1)
    X = np.where(rng.random(shape) < missing, np.nan, rng.random(shape))
    observed = ~np.isnan(X)
    parts = Entries(X).parts(0)
    assert (parts[~observed] == -1).all()
    for part in range(10):
        seen = observed & (parts != part)
        for axis in (0, 1):
            np.testing.assert_array_equal(seen.any(axis), observed.any(axis))


def test_every_part_has_an_entry_other_than_zero():
    X = np.zeros((30, 40))
    X[np.arange(20), np.arange(20)] = 1
    for seed in range(20):
        parts = Entries(X).parts(seed)
        assert set(parts[X > 0]) >= set(range(10))


def test_a_few_bands_can_be_scanned():
    s = scan(low_rank(2, shape=(2, 100)), [1, 2], folds=10, seeds=2, max_iter=20, tol=0)
    assert all(np.isfinite(c.errors).all() for c in s.candidates)


def test_errors_are_those_of_the_held_out_entries():
    X = low_rank(3)
    held = np.random.default_rng(0).integers(10, size=X.shape) == 1
    f = factorize(
        np.where(held, np.nan, X), [4, 2], weights="observed", init="random", random_state=0,
        max_iter=15, tol=0,
    )  # fmt: skip
    expected = [
        np.linalg.norm((X - f.reconstruct(k))[held]) / np.linalg.norm(X[held]) for k in (1, 2)
    ]
    got = _fit(_Task(Entries(X), (4, 2), 0, 1, {"max_iter": 15, "tol": 0})).errors
    np.testing.assert_allclose(got, expected, rtol=1e-10)


def test_agreement_is_that_of_matched_components():
    X = low_rank(3)
    s = scan(X, [2, 4], folds=2, seeds=2, max_iter=10, tol=0, random_state=5)
    fits = [
        factorize(X, [4], init="random", random_state=k, max_iter=10, tol=0).W[0] for k in (5, 6)
    ]
    expected = 1 - match(*fits).mean / 50
    assert s.candidates[1].agreement == pytest.approx(expected, rel=1e-10)


def test_signs_of_too_many_components():
    rng = np.random.default_rng(0)
    W, H = rng.random((8, 4)), rng.random((4, 20))
    W[:, 2] = 3 * W[:, 0]
    H[3] *= 1e-5
    facts = _facts(W, H)
    assert (facts["duplicates"], facts["empty"]) == (1, 1)
    assert facts["smallest"] == pytest.approx(0, abs=1e-12)
    sizes = np.array([1.0, 10.0, 0.2])  # shared out between the factors, which must not matter
    even = _facts(np.eye(8)[:, :3] * sizes, (np.eye(3) / sizes[:, None]).repeat(5, axis=1))
    assert even["effective_rank"] == pytest.approx(3)
    assert (even["smallest"], even["logdet"]) == (pytest.approx(1), pytest.approx(0))
    assert _facts(rng.random((2, 3)), H[:3])["smallest"] == 0


# --- scans ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [3, 5])
def test_the_true_rank_is_found(rank):
    s = scan(low_rank(rank), range(1, 8), tol=1e-3)
    assert (s.choice.ranks, s.choice.sure) == ((rank,), True)


def test_pure_noise_gives_no_rank():
    s = scan(np.random.default_rng(0).random((40, 60)), range(1, 6), tol=1e-3)
    assert not s.choice.sure
    assert "Not sure" in s.choice.sentence


def test_missing_entries_stay_missing():
    X = low_rank(3)
    X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    s = scan(X, range(1, 6), tol=1e-3)
    assert s.choice.ranks == (3,)
    assert all(np.isfinite(c.errors).all() for c in s.candidates)


def test_processes_change_nothing():
    settings = {"folds": 2, "seeds": 2, "max_iter": 5, "tol": 0}
    one, two = (scan(low_rank(3), [2, [3, 2]], jobs=jobs, **settings) for jobs in (1, 2))
    for a, b in zip(one.candidates, two.candidates):
        np.testing.assert_allclose(a.errors, b.errors, rtol=1e-10)
        np.testing.assert_allclose(a.agreements, b.agreements, rtol=1e-10)


def test_everything_is_plain_data():
    s = scan(low_rank(3), [2, [3, 2]], folds=2, seeds=2, max_iter=5, tol=0)
    said = json.loads(json.dumps(s.to_dict()))
    assert [c["ranks"] for c in said["candidates"]] == [[2], [3, 2]]
    columns, rows = s.table()
    assert [row[0] for row in rows] == ["2", "3,2"]
    assert all(len(row) == len(columns) for row in rows)
    assert s.choice.sentence in repr(s)


@pytest.mark.parametrize(
    ("ranks", "settings", "sentence"),
    [
        (3, {}, "ranks must list candidates"),
        ("2-8", {}, "ranks must list candidates"),
        ([3], {}, "different numbers of components"),
        ([], {}, "different numbers of components"),
        ([[3, 2], [3, 1]], {}, "different numbers of components"),
        ([2, 0], {}, "at least 1"),
        ([2, 3], {"folds": 1}, "folds must be an integer of at least 2"),
        ([2, 3], {"folds": 11}, "folds must be at most 10"),
        ([2, 3], {"seeds": 1}, "seeds must be an integer of at least 2"),
        ([2, 3], {"random_state": None}, "random_state must be an integer"),
        ([2, 3], {"weights": np.ones((30, 60))}, "scan sets weights itself"),
        ([2, 3], {"checkpoint": "c"}, "scan sets checkpoint itself"),
        ([2, 3], {"model": "deep"}, "Unknown model"),
    ],
)
def test_bad_input_gets_a_sentence(ranks, settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        scan(low_rank(3), ranks, **settings)


def test_bad_data_get_a_sentence():
    with pytest.raises(ValueError, match="infinite"):
        scan(np.full((9, 9), np.inf), [1, 2])
    with pytest.raises(ValueError, match="too few to hold out"):
        scan(np.ones((3, 3)), [1, 2])
    with pytest.raises(ValueError, match="only 10 entries other than zero, too few"):
        scan(np.eye(10), [1, 2])
    with pytest.raises(ValueError, match="at least two rows and two columns"):
        scan(np.ones((1, 30)), [1, 2])
    with pytest.raises(ValueError, match="Negative values"):
        scan(-low_rank(3), [1, 2])


def test_a_fit_that_diverged_is_a_bad_candidate_and_no_failure(monkeypatch):
    def diverging(X, ranks, **settings):
        f = factorize(X, ranks, **settings)
        if ranks == (3,):
            f.W[0][:] = np.nan
        return f

    monkeypatch.setattr(sys.modules["deepmf.selection.scan"], "factorize", diverging)
    s = scan(low_rank(2), range(1, 4), folds=2, seeds=2, max_iter=30, tol=0)
    assert np.isinf(s.candidates[2].errors).all()
    assert s.candidates[2].agreement == 0
    assert s.choice.ranks == (2,)
    assert json.loads(json.dumps(s.to_dict(), allow_nan=False))["candidates"][2]["errors"] == [
        [None],
        [None],
    ]
