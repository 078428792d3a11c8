"""Ranks and depths: the true rank where there is one, doubt where there is none."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from deepmf import factorize, scan
from deepmf._utils.messages import SettingError
from deepmf.metrics import match
from deepmf.selection.halves import Halves, halves
from deepmf.selection.rule import Candidate, choose
from deepmf.selection.scan import _facts, _fit, _Task


def low_rank(rank, noise=0.05, shape=(30, 60), seed=0):
    rng = np.random.default_rng(seed)
    X = rng.gamma(0.3, size=(shape[0], rank)) @ rng.gamma(0.3, size=(rank, shape[1]))
    return X + noise * X.mean() * rng.random(X.shape)


def candidate(ranks, error, agreement=1.0, deep=1.0, spread=1e-3, **more):
    """Made-up measurements: the halves scatter around the error in the same way for all ranks."""
    ranks = tuple(ranks)
    rng = np.random.default_rng(sum(ranks))
    wave = np.array([-1.0, 1, -1, 1])[:, None] + 0.1 * rng.standard_normal((4, len(ranks)))
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
    assert c.sentence.startswith(
        "3 components: the error on hidden features, 10 % against 30 % with 2"
    )
    assert "agreement of the worst 0.99; with 4 it is 0.80" in c.sentence


def test_signals_that_differ_span_a_range():
    c = choose(flat([0.5, 0.4, 0.1, 0.05, 0.06], [1, 0.97, 0.99, 0.8, 0.7]))
    assert (c.ranks, c.sure, c.between) == ((3,), False, (3, 4))
    assert c.sentence.startswith("Not sure, between 3 and 4 (3 is the best guess)")


def test_without_stable_components_the_error_speaks_alone():
    c = choose(flat([0.5, 0.3, 0.1, 0.11], [1, 0.5, 0.55, 0.4]))
    assert (c.ranks, c.sure) == ((3,), False)
    assert "no rank gives the same components from both halves" in c.sentence


def test_noisy_components_are_judged_by_the_best_of_them():
    c = choose(flat([0.5, 0.3, 0.1, 0.1], [0.8, 0.7, 0.68, 0.55]))
    assert (c.ranks, c.sure) == ((3,), True)


def test_errors_that_never_rise_or_never_fall_leave_doubt():
    falling = choose(flat([0.5, 0.3, 0.1], [1, 0.99, 0.7], first=2))
    assert (falling.ranks, falling.sure, falling.between) == ((3,), False, (3, 4))
    assert "still falls at the largest rank tested, 4" in falling.sentence
    rising = choose(flat([0.5, 0.6, 0.7], [1, 0.4, 0.4]))
    assert (rising.ranks, rising.sure) == ((1,), False)
    assert "no more structure" in rising.sentence


def test_an_error_that_falls_for_ever_begins_the_range_at_its_bend():
    """As in scenes: residuals are correlated, and components beyond the true 4 are reproduced."""
    errors = [0.13, 0.11, 0.05, 0.04, 0.03, 0.025, 0.02]
    c = choose(flat(errors, [1, 0.99, 0.99, 0.98, 0.97, 0.95, 0.5]))
    assert (c.ranks, c.sure, c.between) == ((6,), False, (3, 7))
    assert "all ranks beyond 3 gain less than half of what the step from 2 to 3 does" in c.sentence
    assert "correlated over features" in c.sentence


def test_gains_that_are_nothing_beside_the_last_step_leave_no_doubt():
    """Every difference is a hundred times its spread."""
    c = choose(flat([0.5, 0.3, 0.1, 0.099, 0.098], [1, 0.97, 0.99, 0.5, 0.4], spread=1e-5))
    assert (c.ranks, c.sure) == ((3,), True)


def test_differences_are_judged_half_by_half():
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


FEW = {"max_iter": 20, "tol": 0}


@pytest.mark.parametrize("init", ["random", "snpa", ["hierarchical", "nndsvd"]])
def test_the_other_half_is_not_seen(init):
    """Changing it changes nothing but the error."""
    X = low_rank(3)
    task = _Task(Halves(X), (3,), 2, 0, {**FEW, "init": init})
    other = np.random.default_rng([0, 1]).permutation(60) % 2 == 1
    one = _fit(task)
    two = _fit(task._replace(data=Halves(np.where(other, X + 1, X))))
    np.testing.assert_array_equal(one.bases[0], two.bases[0])
    assert one.errors[0] != two.errors[0]


def test_halves_are_disjoint_and_whole():
    X = np.arange(210.0).reshape(10, 21) + 1
    data = Halves(X)
    for k in (0, 2, 4):
        one, other = data.half(k, 5), data.half(k + 1, 5)
        np.testing.assert_array_equal(one.seen, other.other)
        np.testing.assert_array_equal(one.other, other.seen)
        together = np.column_stack([one.seen, one.other])
        np.testing.assert_array_equal(np.sort(together[0]), X[0])
        assert abs(one.seen.shape[1] - one.other.shape[1]) == 1
        np.testing.assert_array_equal(np.bincount(one.parts), 2)
    assert (data.half(0, 5).seen != data.half(2, 5).seen).any()


def test_fits_have_the_settings_of_the_user(monkeypatch):
    given = {
        "init": ["snpa", "hierarchical"], "regularizer_W": "min-volume", "constraint_H": "simplex",
        "hierarchy": "codes", "max_iter": 2, "tol": 0,
    }  # fmt: skip
    calls = []

    def recorded(X, ranks, **settings):
        calls.append(settings)
        return factorize(X, ranks, **settings)

    monkeypatch.setattr(sys.modules["deepmf.selection.scan"], "factorize", recorded)
    scan(low_rank(3), [2, 3], splits=2, **given)
    assert len(calls) == 8
    for settings in calls:
        own = {name: settings.pop(name) for name in ("weights", "random_state")}
        assert own["weights"] is None
        assert settings == given


@pytest.mark.parametrize("init", [None, "snpa"])
def test_agreement_is_that_of_the_worst_component_of_two_halves(init):
    X = low_rank(3)
    s = scan(X, [2, 4], splits=2, random_state=5, init=init, **FEW)
    expected = []
    for k in (0, 2):
        fits = [
            factorize(Halves(X).half(j, 5).seen, [4], init=init, random_state=5 + j, **FEW).W[0]
            for j in (k, k + 1)
        ]
        expected.append(1 - match(*fits).distances.max() / 50)
    np.testing.assert_allclose(s.candidates[1].agreements[:, 0], np.maximum(expected, 0))


def test_a_deterministic_start_repeats_itself_but_not_what_it_imagined():
    """All fits to the same data would agree, whatever the rank."""
    s = scan(low_rank(3), [3, 5], init="nndsvd", tol=1e-3)
    assert s.candidates[0].agreement > 0.95
    assert s.candidates[1].agreement < 0.6


def test_layers_over_codes_are_compared_as_components_and_predicted():
    X = low_rank(4, shape=(30, 80))
    settings = {"hierarchy": "codes", "init": "nndsvd", "tol": 1e-3}
    deep = scan(X, [3, [4, 2]], splits=2, **settings).candidates[1]
    fits = [factorize(Halves(X).half(k, 0).seen, [4, 2], **settings) for k in (0, 1)]
    both = match(*(f.W[0] @ f.W[1] for f in fits))
    assert deep.agreements[0, 1] == pytest.approx(1 - both.distances.max() / 50)
    assert deep.agreements.shape == (2, 2)
    assert (deep.errors[:, 1] > deep.errors[:, 0]).all()
    assert (deep.errors < 1).all()


def test_of_many_samples_some_are_used(monkeypatch):
    monkeypatch.setattr(sys.modules["deepmf.selection.halves"], "LARGEST", 40)
    X = low_rank(3)
    kept = halves(X, 1).X
    assert kept.shape == (30, 40)
    assert set(kept[0]) <= set(X[0])
    assert scan(X, [2, 3], splits=2, **FEW).samples == 40


def test_a_start_without_enough_vertices_is_a_bad_candidate_and_no_failure():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.eye(6)[:, :3], np.eye(6)[:, :3] @ rng.dirichlet([1] * 3, size=40).T])
    X = np.tile(X, 3)
    s = scan(X, [2, 3, 5], init="snpa", splits=2, **FEW)
    assert np.isinf(s.candidates[2].errors).all()
    assert s.candidates[2].agreement == 0
    assert s.choice.ranks == (3,)
    with pytest.raises(SettingError, match="SNPA found only 3 vertices where rank 4"):
        scan(X, [4, 5], init="snpa", splits=2, **FEW)


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


def test_correlated_residuals_never_make_a_wrong_choice_sure():
    """A scene: three spectra with pure pixels, and smooth residuals of low rank beside noise."""
    rng = np.random.default_rng(0)
    bands = np.linspace(0, 1, 40)
    bumps = np.exp(-0.5 * ((bands[:, None] - rng.random(8)) / 0.15) ** 2)
    X = bumps[:, :3] @ rng.dirichlet([0.3] * 3, size=400).T
    X += 0.2 * bumps[:, 3:] @ rng.random((5, 400)) + 0.002 * rng.random(X.shape)
    c = scan(X, range(2, 7), init="snpa", regularizer_W="min-volume", tol=1e-3).choice
    assert not c.sure
    assert c.between[0] <= 3 < c.between[-1]
    assert "Not sure" in c.sentence


def test_missing_entries_stay_missing():
    X = low_rank(3)
    X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    X[4] = np.nan
    X[4, 7] = 1  # in one half alone
    s = scan(X, range(1, 6), tol=1e-3)
    assert s.choice.ranks == (3,)
    assert all(np.isfinite(c.errors).all() for c in s.candidates)


def test_processes_change_nothing():
    settings = {"splits": 2, "max_iter": 5, "tol": 0}
    one, two = (scan(low_rank(3), [2, [3, 2]], jobs=jobs, **settings) for jobs in (1, 2))
    for a, b in zip(one.candidates, two.candidates):
        np.testing.assert_allclose(a.errors, b.errors, rtol=1e-10)
        np.testing.assert_allclose(a.agreements, b.agreements, rtol=1e-10)


def test_everything_is_plain_data():
    s = scan(low_rank(3), [2, [3, 2]], splits=2, max_iter=5, tol=0)
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
        ([2, 3], {"splits": 1}, "splits must be an integer of at least 2"),
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
    with pytest.raises(ValueError, match="only 3 samples that are not all zeros, too few"):
        scan(np.eye(3, 30), [1, 2])
    with pytest.raises(ValueError, match="only one feature"):
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
    s = scan(low_rank(2), range(1, 4), splits=2, max_iter=30, tol=0)
    assert np.isinf(s.candidates[2].errors).all()
    assert s.candidates[2].agreement == 0
    assert s.choice.ranks == (2,)
    assert json.loads(json.dumps(s.to_dict(), allow_nan=False))["candidates"][2]["errors"] == (
        4 * [[None]]
    )
