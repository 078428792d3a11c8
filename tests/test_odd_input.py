"""Odd but legal: the fit works, its factors are finite and feasible, its objective falls."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from deepmf import (
    L1,
    Box,
    DataCentric,
    DeepMF,
    Factorization,
    FastProjectedGradient,
    GroupedSparse,
    LayerCentric,
    MinVolume,
    Nonnegative,
    Ridge,
    Simplex,
    factorize,
)

MODELS = ["layer-centric", "data-centric", "multilayer", "trigeorgis"]
INITS = ["snpa", "hierarchical", "nndsvd", "random"]
CONSISTENT = ["layer-centric", "data-centric"]
SHORT = {"max_iter": 6, "tol": 0, "random_state": 0}


def mixed(m=10, n=24, seed=3):
    """Sparse mixtures of four positive spectra, with some noise."""
    rng = np.random.default_rng(seed)
    X = rng.random((m, 4)) @ rng.dirichlet(np.full(4, 0.5), n).T
    return X + 0.02 * rng.random((m, n))


X = mixed()


def fit(X=X, ranks=(3, 2), **settings):
    return factorize(X, ranks, **{**SHORT, **settings})


def check(f, X, monotone=True):
    """All that holds for any fit: finite, feasible, of X's type, and downhill."""
    single = f.W[0].dtype == np.float32
    history = f.history
    for part in (*f.W, *f.H, history.objective, history.layer_errors, history.data_errors):
        assert np.isfinite(part).all()
    assert f.H[0].shape == (f.ranks[0], np.shape(X)[1])
    for W, H, layer in zip(f.W, f.H, f.problem.layers):
        assert W.dtype == H.dtype == f.W[0].dtype
        assert layer.constraint_W.violation(W) <= (2e-6 if single else 1e-9)
        assert layer.constraint_H.violation(H) <= (2e-6 if single else 1e-9)
    if monotone and f.problem.loss.consistent:
        o = history.objective
        # Values come from sums of squares: rounding is relative to ||X||^2, not to the error.
        slack = (1e-6 if single else 1e-15) * float(np.sum(np.square(X, dtype=float)))
        assert np.all(np.diff(o) <= 1e-10 * np.abs(o[:-1]) + slack)


# --- every combination ---------------------------------------------------------------------------

SETS = [
    "none",
    "nonnegative",
    Box(0, 2),
    "simplex",
    "capped-simplex",
    GroupedSparse(0.5),
    GroupedSparse(0.5, nonnegative=False),
]
PENALTIES = [None, Ridge(0.1), L1(0.1), MinVolume(0.1)]


def combinations(solver):
    """Constraints and regularizers that the solver and each other allow."""
    sets = {"mu": SETS[1:2], "hals": SETS[:3]}.get(solver, SETS)
    for on_W, on_H, penalty_W, penalty_H in itertools.product(sets, sets, PENALTIES, PENALTIES):
        signed = [s == "none" or s == SETS[-1] for s in (on_W, on_H)]
        if (isinstance(penalty_W, L1) and signed[0]) or (isinstance(penalty_H, L1) and signed[1]):
            continue
        volume = isinstance(penalty_W, MinVolume) or isinstance(penalty_H, MinVolume)
        if volume and not {"simplex", "capped-simplex", SETS[2]} & {on_W, on_H}:
            continue
        if isinstance(penalty_H, MinVolume):
            penalty_H = [None, penalty_H, None]
        yield {
            "constraint_W": on_W,
            "constraint_H": on_H,
            "regularizer_W": penalty_W,
            "regularizer_H": penalty_H,
        }


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("solver", ["fpgm", "pg", "hals", "mu"])
@pytest.mark.parametrize("model", MODELS)
def test_every_combination(model, solver, dtype):
    """Constraints x regularizers for each model and solver, the starts taken in turn.

    The long list is thinned, differently for each model and type, to keep the suite quick.
    """
    every = {"fpgm": 17, "pg": 37, "hals": 5, "mu": 1}[solver]
    shift = MODELS.index(model) + 4 * (dtype == np.float32)
    data = X.astype(dtype)
    fitted = 0
    for i, settings in enumerate(combinations(solver)):
        if i % every == shift % every:
            init = INITS[(i // every) % 4]
            f = fit(data, [4, 3, 2], model=model, solver=solver, init=init, **settings)
            check(f, data)
            fitted += 1
    assert fitted >= 8


# --- containers and types ------------------------------------------------------------------------


def memmapped(tmp_path, X):
    path = tmp_path / "X.dat"
    np.asarray(X).tofile(path)
    return np.memmap(path, dtype=X.dtype, mode="r", shape=X.shape)


def readonly(X):
    X = X.copy()
    X.flags.writeable = False
    return X


SAME = {
    "list": lambda X, _: X.tolist(),
    "tuple of arrays": lambda X, _: tuple(X),
    "frame": lambda X, _: pd.DataFrame(X),
    "named frame": lambda X, _: pd.DataFrame(X).rename(columns=str),
    "matrix": lambda X, _: np.asmatrix(X),
    "masked, nothing hidden": lambda X, _: np.ma.array(X),
    "fortran": lambda X, _: np.asfortranarray(X),
    "every other": lambda X, _: np.repeat(np.repeat(X, 2, 0), 2, 1)[::2, ::2],
    "reversed twice": lambda X, _: X[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": lambda X, _: readonly(X),
    "memmap": lambda X, tmp: memmapped(tmp, X),
    "big-endian": lambda X, _: X.astype(">f8"),
    "long double": lambda X, _: X.astype(np.longdouble),
}


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.filterwarnings("ignore:X is a DataFrame")
@pytest.mark.parametrize("model", CONSISTENT)
@pytest.mark.parametrize("make", SAME.values(), ids=SAME)
def test_the_container_does_not_matter(make, model, tmp_path):
    f, expected = fit(make(X, tmp_path), model=model), fit(model=model)
    check(f, X)
    for layer in (1, 2):
        np.testing.assert_allclose(f.reconstruct(layer), expected.reconstruct(layer), atol=1e-9)


@pytest.mark.parametrize("make", [SAME[k] for k in SAME if k not in ("matrix", "frame")])
def test_the_estimators_container_does_not_matter(make, tmp_path):
    a, b = (DeepMF((3, 2), **SHORT).fit_transform(Z) for Z in (X.T, make(X.T.copy(), tmp_path)))
    np.testing.assert_allclose(a, np.asarray(b), atol=1e-9)


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (X > 0.3, np.float64),
        ((9 * X).astype(int), np.float64),
        ((99 * X).astype(np.uint8), np.float64),
        (X.astype(np.float16), np.float64),
        (X.astype(">f4"), np.float32),
        (X.astype(np.float32), np.float32),
    ],
    ids=["bool", "int", "uint8", "float16", "big-endian float32", "float32"],
)
def test_types(data, dtype):
    f = fit(data)
    check(f, data)
    assert f.W[0].dtype == f.H[0].dtype == f.encode(data).dtype == dtype


@pytest.mark.parametrize("solver", ["fpgm", "pg", "hals", "mu"])
@pytest.mark.parametrize("init", INITS)
def test_the_data_are_left_as_they_are(init, solver):
    Z = X.copy()
    fit(Z, init=init, solver=solver)
    f = fit(Z, init=lambda panels, rank, rng: Z[:, :rank], constraint_W="nonnegative")
    f.encode(Z)
    np.testing.assert_array_equal(Z, X)


# --- degenerate data -----------------------------------------------------------------------------

g = np.random.default_rng(0)


def blank(X, rows=(), columns=()):
    X = X.copy()
    X[list(rows)] = 0
    X[:, list(columns)] = 0
    return X


DEGENERATE = {
    "zero columns": blank(g.random((7, 15)), columns=[0, 3, 4]),
    "zero rows": blank(g.random((7, 15)), rows=[0, 3]),
    "constant columns": np.ones((7, 1)) * g.random((1, 15)),
    "duplicated columns": np.repeat(g.random((7, 3)), 5, axis=1),
    "equal columns": np.repeat(g.random((7, 1)), 15, axis=1),
    "rank one": np.outer(g.random(7), g.random(15)),
    "exact low rank": g.random((7, 3)) @ g.random((3, 15)),
    "identity": np.eye(7),
    "one entry": blank(np.ones((7, 15)), rows=[0, 1, 3, 4, 5, 6], columns=range(14)),
    "n = 1": g.random((7, 1)),
    "m = 1": g.random((1, 15)),
    "n < m": g.random((20, 4)),
    "0 and 1": g.integers(0, 2, (7, 15)).astype(float),
    "one giant": blank(g.random((7, 15))) + 1e12 * np.eye(7, 15, 3) * (np.arange(7) == 2)[:, None],
    "columns from 1e-80 to 1e80": g.random((7, 15)) * 10.0 ** np.linspace(-80, 80, 15),
    "rows from 1e-80 to 1e80": g.random((7, 15)) * 10.0 ** np.linspace(-80, 80, 7)[:, None],
}
ODD_SETTINGS = {
    "plain": {},
    "hals": {"solver": "hals"},
    "mu": {"solver": "mu"},
    "semi": {"constraint_W": "none"},
    "signed": {"constraint_W": "none", "constraint_H": "none"},
    "abundances": {"constraint_H": "simplex"},
    "stochastic": {"constraint_W": "simplex"},
    "box": {"constraint_H": Box(0, 0.5)},
    "min-volume": {"regularizer_W": MinVolume(1.0)},
    "min-volume on H": {"regularizer_H": [None, MinVolume(0.5)]},
    "sparse W": {"constraint_W": GroupedSparse(0.8)},
    "sparse H": {"constraint_H": GroupedSparse(1.0)},
    "shrunk": {"regularizer_W": Ridge(10.0), "regularizer_H": L1(10.0)},
    "augmented": {"augment": 3},
}


@pytest.mark.filterwarnings("ignore:The fit diverged")
@pytest.mark.parametrize("settings", ODD_SETTINGS.values(), ids=ODD_SETTINGS)
@pytest.mark.parametrize("data", DEGENERATE.values(), ids=DEGENERATE)
@pytest.mark.filterwarnings("ignore:The first rank")
def test_degenerate_data(data, settings):
    """Works, or says in a sentence why not: no sparsity in one row, nothing left if shrunk."""
    for model, (dtype, init) in itertools.product(
        MODELS, ((np.float64, "random"), (np.float32, None))
    ):
        with np.errstate(over="ignore", under="ignore"):
            Z = data.astype(dtype)
        if not np.isfinite(Z).all():  # past float32
            continue
        try:
            f = fit(Z, [2, 2], model=model, init=init, **settings)
        except ValueError as error:
            message = str(error)
            assert "of length 1" in message or "zero" in message, message
            continue
        check(f, Z)


def test_full_sparsity_of_codes_that_span_many_decades():
    data = DEGENERATE["columns from 1e-80 to 1e80"]
    check(fit(data, [2, 2], init="nndsvd", constraint_H=GroupedSparse(1.0)), data)


@pytest.mark.parametrize("model", MODELS)
def test_a_single_number(model):
    f = fit(np.array([[3.0]]), [1, 1], model=model, max_iter=50)
    check(f, [[3.0]])
    np.testing.assert_allclose(f.reconstruct(2), 3.0, rtol=1e-6)


@pytest.mark.parametrize("model", MODELS)
def test_zero_columns_get_zero_codes(model):
    f = fit(DEGENERATE["zero columns"], model=model)
    assert np.all(f.H[0][:, [0, 3, 4]] == 0)


@pytest.mark.parametrize("model", CONSISTENT)
@pytest.mark.parametrize("init", INITS)
def test_exact_data_are_recovered(model, init):
    """X = W_2 H_2 H_1 with separable parts: errors of both layers go to 0, weights stay finite."""
    rng = np.random.default_rng(0)
    W2 = rng.random((9, 2))
    H2 = np.column_stack([np.eye(2), [0.5, 0.5]])
    H1 = np.column_stack([np.eye(3), rng.dirichlet(np.ones(3), 20).T])
    data = W2 @ H2 @ H1
    f = fit(data, [2, 2], model=model, init=init, max_iter=400)
    check(f, data)
    assert np.isfinite(f.weights).all()
    # From NNDSVD the second layer starts with a small error, so its weight is large and W_1 slow.
    slow = init == "nndsvd" and model == "layer-centric"
    assert f.history.data_errors[-1].max() < (1e-2 if slow else 1e-6)


@pytest.mark.parametrize("model", MODELS)
def test_a_second_layer_that_is_perfect_from_the_start(model):
    def start(panels, rank, rng):
        return panels.columns(range(rank))

    f = fit(ranks=[3, 3], model=model, init=start, max_iter=20)
    check(f, X)
    assert np.isfinite(f.weights).all()
    if model == "layer-centric":
        # The first error is what there is to gain: a perfect layer must not stop its descent.
        single = fit(ranks=3, init=start, max_iter=20).history.data_errors[-1, 0]
        assert f.history.data_errors[-1, 0] < 1.5 * single


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("model", MODELS)
def test_depth_five(model, dtype):
    data = mixed(12, 30).astype(dtype)
    f = fit(data, [8, 6, 4, 2, 1], model=model, max_iter=15)
    check(f, data)
    assert f.depth == 5


@pytest.mark.filterwarnings("ignore:The fit diverged")
@pytest.mark.parametrize("settings", [{}, {"constraint_W": "simplex"}], ids=["plain", "simplex"])
@pytest.mark.parametrize("init", ["hierarchical", "random"])
def test_trigeorgis_deep_and_long_does_not_overflow(init, settings):
    data = DEGENERATE["zero rows"].astype(np.float32)
    f = fit(data, [4, 3, 2, 2, 1], model="trigeorgis", init=init, max_iter=60, **settings)
    check(f, data)


@pytest.mark.parametrize("init", INITS)
def test_tall_data_take_the_lanczos_path(init):
    rng = np.random.default_rng(0)
    data = rng.random((1600, 4)) @ np.column_stack([np.eye(4), rng.dirichlet(np.ones(4), 8).T])
    check(fit(data, [4, 2], init=init, max_iter=3), data)
    flat = np.outer(data[:, 0], np.arange(1, 9))
    check(fit(flat, 1, init=init, max_iter=3), flat)


@pytest.mark.filterwarnings("ignore:The first rank")
def test_ranks_above_both_dimensions():
    f = fit(X[:3], [6, 5], max_iter=50)
    check(f, X[:3])
    assert [W.shape for W in f.W] == [(3, 6), (3, 5)]


# --- signs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("init", ["snpa", "random", None])
@pytest.mark.parametrize("model", CONSISTENT)
@pytest.mark.parametrize("free", ["constraint_W", "constraint_H"])
def test_negative_data_with_a_free_factor(free, model, init):
    """Semi-NMF of data without a positive entry: no start may leave it at zero."""
    if free == "constraint_H" and init == "snpa":
        pytest.skip("negative columns cannot be a nonnegative basis")
    f = fit(-X, model=model, init=init, max_iter=100, **{free: "none"})
    check(f, X)
    assert f.history.data_errors[-1, 0] < 0.1


@pytest.mark.parametrize("model", CONSISTENT)
def test_some_negative_entries_allowed(model):
    data = X - 0.3
    assert data.min() < 0
    f = fit(data, model=model, allow_negative=True)
    check(f, data)
    assert min(M.min() for M in (*f.W, *f.H)) >= 0


def test_centred_data():
    data = X - X.mean(axis=0)
    f = fit(data, constraint_W="none", max_iter=100)
    check(f, data)
    assert f.history.data_errors[-1, 0] < 0.5


# --- scale and order -----------------------------------------------------------------------------

SCALE_FREE = {
    "plain": {},
    "semi": {"constraint_W": "none"},
    "abundances": {"constraint_H": "simplex"},
    "capped": {"constraint_H": "capped-simplex"},
    "stochastic": {"constraint_W": "simplex"},
    "sparse W": {"constraint_W": GroupedSparse(0.5)},
    "sparse H": {"constraint_H": GroupedSparse(0.5)},
    "min-volume": {"regularizer_W": MinVolume(0.1)},
    "shrunk": {"regularizer_W": Ridge(0.1), "regularizer_H": L1(0.1)},
    "hals": {"solver": "hals"},
    "mu": {"solver": "mu"},
}


@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("model", CONSISTENT)
@pytest.mark.parametrize("settings", SCALE_FREE.values(), ids=SCALE_FREE)
def test_scaling_the_data_scales_the_fit(settings, model, init):
    f = fit(model=model, init=init, **settings)
    for scale in (1e6, 1e-6, 1e-90, 1e90):
        scaled = fit(scale * X, model=model, init=init, **settings)
        check(scaled, scale * X)
        for layer in (1, 2):
            np.testing.assert_allclose(
                scaled.reconstruct(layer) / scale,
                f.reconstruct(layer),
                atol=1e-6,
                err_msg=f"{scale:g}",
            )


@pytest.mark.parametrize("scale", [1e-10, 1e-4, 1e4, 1e10])
@pytest.mark.parametrize("init", INITS)
def test_scaling_float32(init, scale):
    f, scaled = (fit((s * X).astype("f"), init=init) for s in (1, scale))
    check(scaled, (scale * X).astype("f"))
    ratio = scaled.history.objective[-1] / f.history.objective[-1]
    assert ratio == pytest.approx(scale**2, rel=1e-2)


@pytest.mark.parametrize("init", ["snpa", "hierarchical", "nndsvd"])
@pytest.mark.parametrize("model", CONSISTENT)
@pytest.mark.parametrize("settings", SCALE_FREE.values(), ids=SCALE_FREE)
def test_the_order_of_the_columns_does_not_matter(settings, model, init):
    order = np.random.default_rng(1).permutation(X.shape[1])
    f, turned = (fit(Z, model=model, init=init, **settings) for Z in (X, X[:, order]))
    for layer in (1, 2):
        np.testing.assert_allclose(
            turned.reconstruct(layer), f.reconstruct(layer)[:, order], atol=1e-7
        )


@pytest.mark.parametrize("panel_size", [1, 7, 10**9, np.int64(5)])
@pytest.mark.parametrize("solver", ["fpgm", "pg", "hals", "mu"])
@pytest.mark.parametrize("model", CONSISTENT)
def test_panels_do_not_matter(model, solver, panel_size):
    f = fit(model=model, solver=solver)
    g = fit(model=model, solver=solver, panel_size=panel_size)
    np.testing.assert_allclose(g.reconstruct(2), f.reconstruct(2), atol=1e-9)


# --- odd settings --------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_no_sweeps(model):
    f = fit(model=model, max_iter=0)
    check(f, X)
    assert f.n_iter == 0
    assert f.stop_reason == "max_iter"


@pytest.mark.parametrize("model", MODELS)
def test_no_time(model):
    f = fit(model=model, max_iter=50, max_time=0)
    check(f, X)
    assert f.n_iter == (1 if model == "multilayer" else 0)  # one sweep, of layer 1 alone
    assert f.stop_reason == "max_time"


@pytest.mark.parametrize("inner_tol", [0, 1, 5])
def test_inner_tol(inner_tol):
    check(fit(inner_tol=inner_tol), X)


@pytest.mark.parametrize("rank_type", [np.int8, np.uint64, int])
def test_integers_of_any_kind(rank_type):
    f = fit(ranks=[rank_type(3), rank_type(2)], max_iter=np.int32(2))
    assert f.ranks == [3, 2]
    assert all(type(r) is int for r in f.problem.ranks)
    assert fit(ranks=np.array([3, 2])).ranks == [3, 2]
    assert fit(ranks=rank_type(3)).ranks == [3]


@pytest.mark.parametrize(
    "state", [None, 0, np.int64(3), [1, 2], np.random.default_rng(0), np.random.RandomState(0)]
)
def test_random_states(state):
    check(fit(init="random", random_state=state), X)


@pytest.mark.parametrize("callbacks", [None, (), [], lambda p: None, [lambda p: 0, lambda p: None]])
def test_callbacks_that_do_not_stop(callbacks):
    assert fit(callbacks=callbacks).n_iter == 6


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("delta", [1e-10, 1e-3, 1e10])
def test_min_volume_with_any_delta(model, delta):
    """More components than dimensions: W'W is singular, and only delta keeps it apart from 0."""
    data = X[:3]
    check(
        fit(data, [5, 4], model=model, init="random", regularizer_W=MinVolume(1, delta=delta)), data
    )
    check(fit(model=model, regularizer_H=[None, MinVolume(1, delta=delta)]), X)
    free = {"constraint_W": "nonnegative", "constraint_H": "simplex"}
    check(fit(model=model, regularizer_W=MinVolume(1, delta=delta), **free), X)


@pytest.mark.parametrize("sparsity", [0, 0.3, 1])
@pytest.mark.parametrize("nonnegative", [True, False])
@pytest.mark.parametrize("where", ["constraint_W", "constraint_H"])
def test_grouped_sparsity_at_its_ends(where, nonnegative, sparsity):
    same_steps = FastProjectedGradient(scaled=False)
    f = fit(**{where: GroupedSparse(sparsity, nonnegative)}, max_iter=10, solver=same_steps)
    check(f, X)
    if sparsity == 1:
        factors = f.W if where == "constraint_W" else f.H
        seen = [np.abs(M) > 1e-12 * np.abs(M).max() for M in factors]
        assert all(np.count_nonzero(M, axis=0).max() <= 1 for M in seen)
    if sparsity == 0 and nonnegative and where == "constraint_W":
        plain = fit(max_iter=10, solver=same_steps, constraint_W="nonnegative")
        np.testing.assert_allclose(f.reconstruct(2), plain.reconstruct(2), atol=1e-9)


@pytest.mark.parametrize(
    "bounds", [(0, 1), (0, 1e-3), (2, 3), (-1, 0.5), (-np.inf, 0.2), (0, np.inf)]
)
@pytest.mark.parametrize("where", ["constraint_W", "constraint_H"])
def test_boxes(where, bounds):
    check(fit(**{where: Box(*bounds)}, allow_negative=True), X)


@pytest.mark.parametrize("scale", [1, 255])
def test_a_box_smaller_than_the_data_does_not_flatten_the_start(scale):
    """W in [0, 1] loses nothing: the codes take up the scale."""
    f = fit(scale * X, constraint_W=Box(0, 1), max_iter=50)
    plain = fit(scale * X, max_iter=50)
    assert f.history.data_errors[-1, 0] < 2 * plain.history.data_errors[-1, 0]


@pytest.mark.parametrize(
    "model",
    [LayerCentric(0), LayerCentric(1e8), LayerCentric(1e-300), LayerCentric(1, calibrate=False)]
    + [DataCentric(0), DataCentric(1e8), DataCentric(1e-300), DataCentric(np.array([2.0]))],
    ids=repr,
)
def test_extreme_layer_weights(model):
    check(fit(model=model), X)


@pytest.mark.parametrize("penalty", [Ridge(0), Ridge(1e10), L1(0), L1(1e10)], ids=repr)
@pytest.mark.parametrize("where", ["regularizer_W", "regularizer_H"])
@pytest.mark.parametrize("model", CONSISTENT)
def test_extreme_regularization(model, where, penalty):
    if where == "regularizer_W" and penalty == L1(1e10):
        with pytest.raises(ValueError, match=r"Layer 1 shrank to zero.*Lower the weights"):
            fit(model=model, **{where: penalty})
        where, penalty = "regularizer_W", [None, penalty]  # nothing depends on the last layer
    check(fit(model=model, **{where: penalty}), X)


def test_settings_per_layer():
    f = fit(
        constraint_W=("simplex", None),
        constraint_H=[None, {"name": "box", "upper": 2}],
        regularizer_W=[None, "ridge"],
    )
    check(f, X)
    first, second = f.problem.layers
    assert (first.constraint_W, second.constraint_W) == (Simplex(), Nonnegative())
    assert second.constraint_H == Box(0, 2)
    assert (first.regularizer_W, second.regularizer_W) == (None, Ridge())


# --- given factors -------------------------------------------------------------------------------


def factors(seed=1):
    rng = np.random.default_rng(seed)
    Ws = [rng.dirichlet(np.ones(10), r).T for r in (3, 2)]
    return Ws, [rng.random((3, 24)), rng.random((2, 3))]


def test_given_factors_in_many_guises():
    Ws, Hs = factors()
    expected = fit(init=(Ws, Hs)).reconstruct(2)
    guises = [
        [Ws, Hs],
        (tuple(Ws), tuple(Hs)),
        ([W.tolist() for W in Ws], Hs),
        ([pd.DataFrame(W) for W in Ws], [np.asfortranarray(H) for H in Hs]),
        ([readonly(W) for W in Ws], [readonly(H) for H in Hs]),
    ]
    for given in guises:
        np.testing.assert_allclose(fit(init=given).reconstruct(2), expected, atol=1e-9)


def test_given_factors_of_a_single_layer_need_no_lists():
    Ws, Hs = factors()
    a, b = fit(ranks=3, init=(Ws[0], Hs[0])), fit(ranks=3, init=(Ws[:1], Hs[:1]))
    np.testing.assert_array_equal(a.W[0], b.W[0])


@pytest.mark.parametrize("solver", ["fpgm", "pg", "hals", "mu"])
def test_given_factors_are_left_as_they_are(solver):
    Ws, Hs = factors()
    f = fit(init=(Ws, Hs), solver=solver)
    check(f, X)
    for mine, yours in zip((*Ws, *Hs), itertools.chain(*factors())):
        np.testing.assert_array_equal(mine, yours)


@pytest.mark.parametrize("solver", ["fpgm", "mu"])
def test_a_hair_outside_the_set_is_projected(solver):
    Ws, Hs = factors()
    Ws[0][0, 0] = -1e-8
    f = fit(init=(Ws, Hs), solver=solver, max_iter=0)
    assert f.W[0].min() >= 0


@pytest.mark.parametrize("model", CONSISTENT)
def test_given_zero_codes_can_leave_zero(model):
    Ws, Hs = factors()
    f = fit(init=(Ws, [0 * Hs[0], Hs[1]]), model=model, max_iter=20)
    check(f, X)
    assert f.history.data_errors[-1, 0] < 0.5


@pytest.mark.parametrize("model", CONSISTENT)
def test_going_on_from_a_result(model):
    """A fit started at another's end does not go up again (with the weights kept)."""
    loss = LayerCentric(3, calibrate=False) if model == "layer-centric" else DataCentric(3)
    f = fit(model=loss, max_iter=20)
    more = fit(model=loss, init=(f.W, f.H), max_iter=5)
    assert more.history.objective[0] == pytest.approx(f.history.objective[-1], rel=1e-10)
    check(more, X)


# --- new data and files --------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("settings", [{}, {"constraint_H": "simplex"}, {"regularizer_H": L1(0.3)}])
def test_codes_of_the_same_data_are_found_again(model, settings):
    """The encoder solves the problem that the fit's own codes solve."""
    f = fit(model=model, max_iter=400, inner_iter=100, inner_tol=0, **settings)
    again = f.encode(X)
    assert f.problem.layers[0].constraint_H.violation(again) < 1e-9
    if model != "trigeorgis":
        np.testing.assert_allclose(f.W[0] @ again, f.W[0] @ f.H[0], atol=0.02)


def test_encode_odd_data():
    f = fit()
    assert np.all(f.encode(np.zeros((10, 3))) == 0)
    assert f.encode(X[:, :1]).shape == (3, 1)
    assert f.encode(X.tolist(), layer=2).shape == (2, 24)
    np.testing.assert_allclose(f.encode(X[:, ::-1])[:, ::-1], f.encode(X), atol=1e-9)


def test_encoding_a_sample_alone_or_among_others():
    f = fit()
    alone = np.column_stack([f.encode(X[:, [j]]) for j in range(5)])
    np.testing.assert_allclose(alone, f.encode(X)[:, :5], atol=1e-9)


@pytest.mark.parametrize(
    "settings",
    [
        {"model": LayerCentric(np.array([2.0]))},
        {"model": DataCentric((2.0,))},
        {"regularizer_W": Ridge(np.float32(0.1)), "regularizer_H": L1(np.int64(1))},
        {"constraint_W": Box(np.float32(0), np.inf)},
        {"constraint_W": GroupedSparse(np.float64(0.3), nonnegative=False)},
    ],
    ids=repr,
)
def test_files_keep_odd_settings(settings, tmp_path):
    f = fit(**settings)
    g = Factorization.load(f.save(tmp_path / "a file, with.dots"))
    assert g.problem.spec() == f.problem.spec()
    np.testing.assert_array_equal(g.encode(X), f.encode(X))
