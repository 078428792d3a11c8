"""Missing entries and weights: only what is observed counts."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import nnls

from deepmf import L1, DeepMF, Factorization, GroupedSparse, MinVolume, Ridge, factorize
from deepmf._utils.threads import limit_threads
from deepmf.constraints import Nonnegative
from deepmf.core.state import State
from deepmf.core.terms import DataTerm
from deepmf.data.panels import Coding, DensePanels
from deepmf.data.validation import as_matrix
from deepmf.fitting.add_layer import add_layer
from deepmf.fitting.calibration import joint
from deepmf.fitting.problem import build_problem
from deepmf.fitting.registry import resolve_start
from deepmf.fitting.sweep import Sweep
from deepmf.losses import DataCentric, LayerCentric
from deepmf.solvers import FastProjectedGradient

RNG = np.random.default_rng(0)
LOW = RNG.random((20, 3)) @ RNG.random((3, 90))
X = LOW + 0.05 * RNG.random(LOW.shape)
GAPS = RNG.random(X.shape) < 0.4
HOLED = np.where(GAPS, np.nan, X)
WEIGHTS = np.where(GAPS, 0.0, RNG.uniform(0.1, 1.0, X.shape))
WEIGHTS.flat[np.argmax(WEIGHTS)] = 1.0  # the largest, so that the objective's scale is that of X
MODELS = [
    {"model": "layer-centric"},
    {"model": DataCentric([0.5, 2.0])},
    {"model": "multilayer"},
    {"model": "trigeorgis"},
    {"constraint_W": "simplex", "regularizer_W": MinVolume(1e-2)},
    {"model": "data-centric", "regularizer_H": [L1(0.1), Ridge(0.1), None]},
    {"constraint_H": ["simplex", None, None]},
    {"constraint_H": [GroupedSparse(0.3), None, None]},
    {"solver": "hals"},
    {"solver": "mu"},
]
CONSISTENT = [s for s in MODELS if s.get("model") != "trigeorgis"]
RANKS = [4, 3, 2]


def fitted(data, ranks=RANKS, **settings):
    return factorize(
        data, ranks, **{"init": "nndsvd", "max_iter": 12, "tol": 0, "random_state": 0} | settings
    )


def weighted_errors(f, V, data=X):
    """sum V (X - W_l H_l...H_1)^2, written out."""
    return np.array([np.sum(V * (data - f.reconstruct(k)) ** 2) for k in range(1, f.depth + 1)])


def assert_same(f, g, tol=1e-10):
    for a, b in zip(f.W + f.H, g.W + g.H):
        np.testing.assert_allclose(a, b, rtol=tol, atol=tol * np.abs(b).max())
    np.testing.assert_allclose(f.history.objective, g.history.objective, rtol=tol)


# --- identities ----------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", MODELS, ids=str)
def test_weights_of_one_are_the_plain_fit(settings):
    ones = np.full(X.shape, 3.0)
    assert_same(fitted(X, weights=ones, **settings), fitted(X, **settings), 1e-8)


@pytest.mark.parametrize("settings", MODELS[:4], ids=str)
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_mask_zero_weights_and_nan_are_the_same(settings, order):
    nan = fitted(np.asarray(HOLED, order=order), weights="observed", **settings)
    mask = fitted(np.asarray(X, order=order), weights=~GAPS, **settings)
    zeros = fitted(np.where(GAPS, 1e6, X), weights=5.0 * ~GAPS, **settings)
    assert_same(mask, nan)
    assert_same(zeros, nan)


@pytest.mark.parametrize("settings", MODELS, ids=str)
def test_what_is_missing_changes_nothing(settings):
    a = fitted(np.where(GAPS, -7.0, X), weights=WEIGHTS, **settings)
    b = fitted(np.where(GAPS, np.inf, X), weights=WEIGHTS, **settings)
    assert_same(a, b, 0)


def test_only_ratios_of_weights_matter():
    a, b = (fitted(X, weights=c * WEIGHTS) for c in (1.0, 64.0))
    assert_same(a, b, 0)
    assert_same(a, fitted(X, weights=1e-200 * WEIGHTS), 1e-9)


@pytest.mark.parametrize("extrapolate", [False, True])
@pytest.mark.parametrize("settings", MODELS[:4], ids=str)
def test_the_history_is_of_the_weighted_errors(settings, extrapolate):
    f = fitted(X, weights=WEIGHTS, extrapolate=extrapolate, **settings)
    errors = weighted_errors(f, WEIGHTS)
    np.testing.assert_allclose(
        f.history.data_errors[-1], errors / np.sum(WEIGHTS * X**2), rtol=1e-10
    )
    if isinstance(settings["model"], DataCentric):
        assert f.history.objective[-1] == pytest.approx(0.5 * errors @ [1, 0.5, 2], rel=1e-10)


def test_the_objective_of_one_layer_is_half_the_weighted_error():
    f = fitted(X, 3, weights=WEIGHTS)
    assert f.history.objective[-1] == pytest.approx(0.5 * weighted_errors(f, WEIGHTS)[0], rel=1e-10)


def test_weights_pull():
    """Where a weight is large the fit is close, and the other way round."""
    heavy = np.ones(X.shape)
    heavy[:, 7] = 1e4
    plain, pulled = (fitted(X, 2, weights=V, max_iter=300) for V in (None, heavy))
    near, far = (np.linalg.norm(X[:, 7] - f.reconstruct(1)[:, 7]) for f in (pulled, plain))
    assert near < 0.5 * far


# --- decrease ------------------------------------------------------------------------------------


@pytest.mark.parametrize("extrapolate", [False, True])
@pytest.mark.parametrize("settings", CONSISTENT, ids=str)
def test_the_objective_never_rises(settings, extrapolate):
    f = fitted(HOLED, weights="observed", extrapolate=extrapolate, max_iter=60, **settings)
    if settings.get("model") == "multilayer":
        errors = f.history.layer_errors[:, 0]
        assert np.all(np.diff(errors[np.isfinite(errors)]) <= 1e-14)
    else:
        steps = np.diff(f.history.objective)
        assert np.all(steps <= 1e-12 * f.history.objective[0])
    assert f.history.objective[-1] < f.history.objective[0]


def filled_loss(sweep, panels, fills):
    """The loss with every data term's X filled as it was at a former point."""
    s, H = sweep.state, panels.codes.H
    terms = sweep.model.bases(s)
    data = sum(
        0.5 * t.weight * np.sum((F - t.B @ H) ** 2) for t, F in zip(terms, fills, strict=True)
    )
    deeper = [
        0.5 * sweep.calibration.weights[k] * np.sum((s.W[k - 1] - s.W[k] @ s.H[k]) ** 2)
        for k in range(1, s.depth)
    ]
    return data + (0 if sweep.loss.errors == "data" else sum(deeper))


@pytest.mark.parametrize("loss", [LayerCentric(), DataCentric()], ids=str)
def test_every_block_update_decreases_the_filled_loss(loss):
    problem = build_problem(RANKS, loss)
    panels, state = as_matrix(X, weights=WEIGHTS).panels(), State()
    for _ in RANKS:
        add_layer(panels, state, problem, resolve_start("nndsvd", False), RNG)
    calibration = joint(panels, state, problem, loss, [1.0] * 3, [])
    sweep = Sweep(panels, state, problem, loss, calibration, range(3), 5, 0.0)

    def fills():
        H = panels.codes.H
        bases = [t.B for t in sweep.model.bases(state)]
        return [WEIGHTS * X + (1 - WEIGHTS) * (B @ H) for B in bases]

    for _ in range(10):
        for block in sweep.blocks:
            if block in (("H", 0), ("W", 0)):  # X is filled anew for H_1, and after it
                now = fills()
                true = sweep.objective(sweep.measure())
                above = true - filled_loss(sweep, panels, now)
            before = filled_loss(sweep, panels, now)
            sweep.update(block)
            after = filled_loss(sweep, panels, now)
            assert after <= before * (1 + 1e-13)
            assert sweep.objective(sweep.measure()) <= (after + above) * (1 + 1e-13)


# --- what it is for ------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.3, 0.5])
@pytest.mark.parametrize("init", ["nndsvd", "random", "snpa", "hierarchical"])
def test_held_out_entries_of_low_rank_data_are_found(share, init):
    hidden = np.random.default_rng(1).random(LOW.shape) < share
    data = np.where(hidden, np.nan, LOW)
    f = fitted(data, 3, weights="observed", init=init, max_iter=1500)
    error = np.linalg.norm((f.reconstruct(1) - LOW)[hidden]) / np.linalg.norm(LOW[hidden])
    assert error < 1e-2


def test_the_first_of_several_layers_finds_them_too():
    f = fitted(
        np.where(GAPS, np.nan, LOW),
        [3, 2],
        weights="observed",
        max_iter=1500,
        model=LayerCentric(1e-3),
    )
    assert np.linalg.norm((f.reconstruct(1) - LOW)[GAPS]) < 1e-2 * np.linalg.norm(LOW[GAPS])


# --- kinds of data -------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["layer-centric", "data-centric"])
@pytest.mark.parametrize("weights", ["observed", ~GAPS, WEIGHTS], ids=["nan", "mask", "weights"])
def test_panels_of_any_width_give_the_same(model, weights):
    data = HOLED if isinstance(weights, str) else X
    whole = fitted(data, weights=weights, model=model)
    for width in (1, 7, 64):
        assert_same(fitted(data, weights=weights, panel_size=width, model=model), whole, 1e-9)


def test_data_and_weights_on_disk_are_read_in_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("deepmf.data.on_disk._LARGE", 1)
    monkeypatch.setattr("deepmf.data.on_disk._BLOCK", 1)
    np.save(tmp_path / "X.npy", HOLED)
    np.save(tmp_path / "V.npy", WEIGHTS)
    there, V = (np.load(tmp_path / name, mmap_mode="r") for name in ("X.npy", "V.npy"))
    assert_same(fitted(there, weights="observed"), fitted(HOLED, weights="observed"), 1e-9)
    assert_same(fitted(there, weights=V), fitted(X, weights=WEIGHTS), 1e-9)
    assert_same(fitted(X, weights=V), fitted(X, weights=WEIGHTS), 1e-9)


@pytest.mark.parametrize("weights", ["observed", WEIGHTS], ids=["nan", "weights"])
@pytest.mark.parametrize("model", ["layer-centric", "data-centric"])
def test_float32_stays_and_is_close(model, weights):
    f = fitted(HOLED.astype(np.float32), weights=weights, model=model)
    g = fitted(HOLED, weights=weights, model=model)
    assert {M.dtype for M in f.W + f.H} == {np.dtype(np.float32)}
    np.testing.assert_allclose(f.history.data_errors, g.history.data_errors, rtol=1e-3)
    f = fitted(HOLED.astype(np.float32), weights=weights, model=model, max_iter=200)
    assert np.all(np.diff(f.history.objective) <= 1e-6 * f.history.objective[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weights", [None, ~GAPS, WEIGHTS], ids=["nan", "mask", "weights"])
def test_products_are_those_of_the_filled_data(weights, dtype):
    given = "observed" if weights is None else weights
    panels = as_matrix(HOLED.astype(dtype), weights=given).panels(16)
    V = ~GAPS if weights is None else weights
    B = [RNG.random((20, 3)) for _ in range(2)]
    H = RNG.random((3, 90)).astype(dtype)
    panels.codes.set(H)
    w = (1.0, 0.5)
    coding = Coding(tuple(DataTerm(a, b) for a, b in zip(w, B)), Nonnegative())
    still = panels.update(coding, FastProjectedGradient(), 0, 0.0)
    filled = [V * X + (1 - V) * (b @ H) for b in B]
    tol = 1e-5 if dtype == np.float32 else 1e-12
    for q, F in zip(still.terms, filled, strict=True):
        np.testing.assert_allclose(q.C, F @ H.T, rtol=tol)
    expected = [np.sum(V * (X - b @ H) ** 2) for b in B]
    np.testing.assert_allclose(panels.residuals2(B), expected, rtol=tol)
    assert panels.norm2 == pytest.approx(np.sum(V * X**2), rel=tol)


def test_starts_see_every_row_filled_by_its_mean():
    panels = as_matrix(X, weights=WEIGHTS).panels(16)
    means = np.sum(WEIGHTS * X, axis=1) / WEIGHTS.sum(axis=1)
    filled = WEIGHTS * X + (1 - WEIGHTS) * means[:, None]
    plain = DensePanels(filled)
    np.testing.assert_allclose(panels.columns([5, 2]), filled[:, [5, 2]], rtol=1e-12)
    np.testing.assert_allclose(panels.column_norms2(), plain.column_norms2(), rtol=1e-12)
    np.testing.assert_allclose(panels.dot(X[:, :3]), plain.dot(X[:, :3]), rtol=1e-12)
    np.testing.assert_allclose(panels.leading(2)[1], plain.leading(2)[1], rtol=1e-12)


def test_memory_goes_with_a_few_columns_not_with_all():
    big = np.ones((100, 40_000))
    big[::3, ::2] = np.nan
    panels = as_matrix(big, weights="observed").panels()
    panels.codes.set(np.ones((2, big.shape[1])))
    coding = Coding.of(np.ones((100, 2)), Nonnegative())
    with limit_threads(2):  # each holds a few columns of its own
        panels.update(coding, FastProjectedGradient(), 2, 0.1)  # loads what is compiled
        tracemalloc.start()
        panels.update(coding, FastProjectedGradient(), 2, 0.1)
        panels.residuals2([coding.G])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.5 * big.nbytes


# --- new data ------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", ["observed", ~GAPS, WEIGHTS], ids=["nan", "mask", "weights"])
@pytest.mark.parametrize("model", ["layer-centric", DataCentric(2.0), "multilayer"], ids=str)
def test_codes_of_new_data_are_exact(model, weights):
    f = fitted(X, [3, 2], model=model, max_iter=30)
    data = HOLED if isinstance(weights, str) else X
    V = np.sqrt(~GAPS if isinstance(weights, str) else weights)
    B = [f.W[0]] if not isinstance(model, DataCentric) else [f.W[0], 2**0.5 * f.W[1] @ f.H[1]]
    x = [X] if len(B) == 1 else [X, 2**0.5 * X]
    exact = np.empty((3, X.shape[1]))
    for j, v in enumerate(V.T):
        values = np.hstack([M[:, j] * v for M in x])
        exact[:, j] = nnls(np.vstack([b * v[:, None] for b in B]), values)[0]
    codes = f.encode(data, weights=weights)
    np.testing.assert_allclose(codes, exact, atol=1e-6 * exact.max())
    lifted = f.encode(data, layer=2, weights=weights)
    np.testing.assert_allclose(lifted, f.H[1] @ exact, atol=1e-5 * exact.max())
    error = f.squared_error(data, layer=2, weights=weights)
    assert error == pytest.approx(np.sum(V**2 * (X - f.W[1] @ f.H[1] @ exact) ** 2), rel=1e-6)


def test_codes_depend_on_their_column_alone():
    """But for the rounding of products, which may depend on the number of columns."""
    f = fitted(X, 3)
    codes = f.encode(HOLED, weights="observed")
    for j in range(0, X.shape[1], 9):
        alone = f.encode(HOLED[:, [j]], weights="observed")
        np.testing.assert_allclose(alone, codes[:, [j]], rtol=1e-12, atol=1e-12)


def test_codes_that_are_tied_together_settle():
    f = fitted(X, 3, constraint_H=GroupedSparse(0.3))
    ones = f.encode(X, weights=np.ones(X.shape))
    np.testing.assert_allclose(f.reconstruct(1), f.W[0] @ ones, atol=0.1)
    assert f.squared_error(HOLED, weights="observed") < 2 * f.squared_error(X)


def test_a_loaded_factorization_codes_the_same(tmp_path):
    f = fitted(HOLED, weights="observed", model="data-centric")
    g = Factorization.load(f.save(tmp_path / "f.npz"))
    np.testing.assert_array_equal(
        f.encode(HOLED, weights="observed"), g.encode(HOLED, weights="observed")
    )


# --- the estimator -------------------------------------------------------------------------------


def test_the_estimator_takes_nan_for_missing():
    model = DeepMF([3], weights="observed", tol=1e-6, random_state=0).fit(HOLED.T)
    assert_same(
        model.factorization_,
        fitted(HOLED, [3], init=None, weights="observed", tol=1e-6, max_iter=500),
        1e-9,
    )
    codes = model.transform(HOLED.T)
    np.testing.assert_array_equal(codes, model.fit_transform(HOLED.T))
    squares = (X.T - codes @ model.components_)[~GAPS.T] ** 2
    assert model.score(HOLED.T) == pytest.approx(-squares.mean(), rel=1e-9)
    assert model.reconstruction_err_**2 == pytest.approx(squares.sum(), rel=1e-2)


def test_the_estimator_takes_weights_of_samples_by_features():
    model = DeepMF([3], tol=1e-6, random_state=0).fit(X.T, weights=WEIGHTS.T)
    codes = model.transform(X.T, weights=WEIGHTS.T)
    np.testing.assert_array_equal(codes, model.fit_transform(X.T, weights=WEIGHTS.T))
    squares = WEIGHTS.T * (X.T - codes @ model.components_) ** 2
    score = model.score(X.T, weights=WEIGHTS.T)
    assert score == pytest.approx(-squares.sum() / WEIGHTS.sum(), rel=1e-9)


def test_the_estimator_says_where_weights_go():
    with pytest.raises(ValueError, match=r"None or 'observed'.*fit\(X, weights=\.\.\.\)"):
        DeepMF([3], weights=WEIGHTS.T).fit(X.T)
    with pytest.raises(ValueError, match="NaN"):
        DeepMF([3]).fit(HOLED.T)
    with pytest.raises(ValueError, match="NaN"):
        DeepMF([3], tol=1e-2).fit(X.T).transform(HOLED.T)
    with pytest.raises(ValueError, match="at row 1, column 0"):
        DeepMF([3]).fit(X.T, weights=np.where(np.eye(90, 20, -1), -1.0, 1.0))


# --- bad input -----------------------------------------------------------------------------------


def one(value, row=1, column=2, fill=1.0):
    V = np.full(X.shape, fill)
    V[row, column] = value
    return V


def without(row=None, column=None):
    rows, columns = np.indices(X.shape)
    return (rows != row) & (columns != column)


BAD = {
    "negative": ({"weights": one(-1.0)}, "but 1 are not, the first -1.0 at row 1, column 2"),
    "nan weight": ({"weights": one(np.nan)}, "nonnegative and finite"),
    "infinite weight": ({"weights": one(np.inf)}, "nonnegative and finite"),
    "shape": ({"weights": np.ones((20, 89))}, r"\(20, 89\), but X has \(20, 90\): give one weight"),
    "all zero": ({"weights": np.zeros(X.shape)}, "weights are all 0"),
    "a word": ({"weights": "seen"}, "must be 'observed'"),
    "a number": ({"weights": 2.0}, "weights must be a matrix"),
    "nan that counts": ({"X": HOLED, "weights": one(0.5)}, "give them weight 0"),
    "infinite": ({"X": one(np.inf), "weights": "observed"}, "the first inf at row 1, column 2"),
    "plain nan": ({"X": HOLED}, "weights='observed' takes NaN for missing"),
    "empty column": ({"weights": without(column=5)}, "1 columns .* the first column 5"),
    "empty row": ({"weights": without(row=5)}, "1 rows .* the first row 5"),
    "all missing": ({"X": np.full(X.shape, np.nan), "weights": "observed"}, "90 columns of X"),
    "zeros": ({"X": one(3.0, fill=0.0), "weights": one(0.0)}, "all zeros"),
    "negative data": ({"X": one(-3.0), "weights": "observed"}, "Negative values in data"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_a_sentence(case):
    settings, sentence = BAD[case]
    settings = {"X": X, **settings}
    with pytest.raises(ValueError, match=sentence) as info:
        factorize(settings["X"], 2, **{k: v for k, v in settings.items() if k != "X"})
    assert str(info.value).endswith(".")


def test_a_column_that_is_not_seen_cannot_be_coded():
    f = fitted(X, 2)
    new = X[:, :3].copy()
    new[:, 1] = np.nan
    with pytest.raises(ValueError, match="the first column 1"):
        f.encode(new, weights="observed")
    new = X[:, :3].copy()
    new[2] = np.nan  # a feature that new data lack altogether
    assert np.isfinite(f.encode(new, weights="observed")).all()


def test_other_kinds_of_data_are_refused_with_the_way_out():
    with pytest.raises(TypeError, match=r"sparse matrix, whose zeros are data.*X\.toarray\(\)"):
        factorize(sparse.csc_array(X), 2, weights="observed")
    with pytest.raises(TypeError, match=r"weights is sparse.*weights\.toarray\(\)"):
        factorize(X, 2, weights=sparse.csc_array(WEIGHTS))
    with pytest.raises(TypeError, match=r"device='cpu'\. Leave device out"):
        factorize(X, 2, weights=WEIGHTS, device="cpu")
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match=r"X is torch's Tensor.*np\.asarray\(X\)"):
        factorize(torch.from_numpy(X), 2, weights=WEIGHTS)
    da = pytest.importorskip("dask.array")
    with pytest.raises(TypeError, match="X is dask's Array"):
        factorize(da.from_array(X), 2, weights="observed")


# --- files and the command line ------------------------------------------------------------------


def test_a_table_with_empty_cells_is_fitted_from_the_command_line(tmp_path):
    pytest.importorskip("typer")
    pytest.importorskip("pandas")
    from typer.testing import CliRunner

    from deepmf.cli.app import app

    lines = [",".join("" if np.isnan(v) else repr(float(v)) for v in row) for row in HOLED.T]
    (tmp_path / "t.csv").write_text("\n".join([",".join(f"f{i}" for i in range(20)), *lines]))
    ask = ["fit", str(tmp_path / "t.csv"), "--ranks", "3", "--tol", "1e-3"]
    refused = CliRunner().invoke(app, [*ask, "-o", str(tmp_path / "no")])
    assert refused.exit_code != 0
    assert "--weights observed" in " ".join(refused.output.split())
    done = CliRunner().invoke(app, [*ask, "-o", str(tmp_path / "run"), "--weights", "observed"])
    assert done.exit_code == 0, done.output
    assert 'weights = "observed"' in (tmp_path / "run" / "config.toml").read_text()
    again = ["fit", "--config", str(tmp_path / "run" / "config.toml"), "-o", str(tmp_path / "two")]
    assert CliRunner().invoke(app, again).exit_code == 0
    W = [Factorization.load(tmp_path / name / "factors.npz").W[0] for name in ("run", "two")]
    np.testing.assert_array_equal(*W)
    f = factorize(HOLED, 3, weights="observed", tol=1e-3, random_state=0)
    np.testing.assert_allclose(W[0], f.W[0], rtol=1e-9)
