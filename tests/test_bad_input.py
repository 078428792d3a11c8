"""Rubbish in, one clear sentence out: never a traceback from inside, a warning or a silent NaN."""

from __future__ import annotations

import json
import pickle
from contextlib import contextmanager, nullcontext

import numpy as np
import pytest
from scipy import sparse

from deepmf import (
    HALS,
    L1,
    Box,
    Constraint,
    DataCentric,
    DeepMF,
    Factorization,
    Fixed,
    GroupedSparse,
    LayerCentric,
    Loss,
    MinVolume,
    Ridge,
    Simplex,
    Solver,
    factorize,
)

X = np.random.default_rng(0).random((8, 20))
SHORT = {"max_iter": 3, "tol": 0, "random_state": 0}


class Nameless:
    """Something that is none of the things asked for, with a repr that does not change."""

    def __repr__(self):
        return "Nameless()"


def fit(X=X, ranks=(3, 2), **settings):
    return factorize(X, ranks, **{**SHORT, **settings})


@contextmanager
def refused(*fragments, kind=(ValueError, TypeError, OSError)):
    """The block raises one sentence that holds the fragments (whatever their case)."""
    with pytest.raises(kind) as caught:
        yield
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    assert len(message) < 600
    for fragment in fragments:
        assert fragment.lower() in message.lower()


def with_entry(value, i=2, j=5):
    Z = X.copy()
    Z[i, j] = value
    return Z


def test_parts_of_ones_own_that_lack_a_method():
    class Mine(Loss):
        pass

    class By(Solver):
        pass

    with refused("Mine needs a method terms(depth, w).", kind=NotImplementedError):
        fit(model=Mine())
    with refused("By needs a method solve(", kind=NotImplementedError):
        fit(solver=By())


@pytest.mark.parametrize(
    ("settings", "pointless"),
    [
        ({}, True),
        ({"constraint_W": "simplex"}, True),
        ({"constraint_W": "none", "constraint_H": "none"}, True),
        ({"constraint_H": "simplex"}, False),
        ({"constraint_H": GroupedSparse(0.5)}, False),
        ({"regularizer_H": L1(0.1)}, False),
        ({"regularizer_W": MinVolume(0.1)}, False),
        ({"constraint_W": Fixed(np.ones((8, 4)))}, False),
        ({"constraint_W": GroupedSparse(0.5)}, False),
    ],
    ids=repr,
)
def test_more_components_than_can_tell_something(settings, pointless):
    sentence = r"first rank, 9, exceeds min\(m, n\) = 8 of X with 8 features and 20 samples"
    with pytest.warns(UserWarning, match=sentence) if pointless else nullcontext():
        fit(ranks=9, **settings)
    fit(ranks=8, **settings)


# --- the data ------------------------------------------------------------------------------------

BAD_DATA = {
    "nan": (with_entry(np.nan), ["nan", "row 2", "column 5"]),
    "inf": (with_entry(np.inf), ["inf", "row 2", "column 5"]),
    "minus inf": (with_entry(-np.inf), ["inf", "row 2", "column 5"]),
    "both infinities": (np.array([[np.inf, -np.inf], [1, 1]]), ["2 entries", "row 0"]),
    "nan float32": (with_entry(np.nan).astype("f"), ["row 2", "column 5"]),
    "negative": (with_entry(-0.5), ["negative", "row 2", "column 5", "allow_negative"]),
    "no rows": (np.empty((0, 3)), ["empty", "(0, 3)"]),
    "no columns": (np.empty((3, 0)), ["empty", "(3, 0)"]),
    "empty list": ([], ["2-D", "(0,)"]),
    "scalar": (3.0, ["2-D"]),
    "vector": (np.ones(3), ["2-D", "(3,)"]),
    "cube": (np.ones((2, 3, 4)), ["2-D", "(2, 3, 4)"]),
    "complex": (X + 1j, ["complex"]),
    "object": (X.astype(object), ["real numbers", "object"]),
    "text": (X.astype(str), ["real numbers"]),
    "dates": (np.full((4, 3), "2020-01-01", dtype="M8[D]"), ["real numbers"]),
    "durations": (np.ones((4, 3), dtype="m8[s]"), ["real numbers"]),
    "records": (np.zeros((3, 3), dtype=[("a", float)]), ["real numbers"]),
    "none": (None, ["real numbers"]),
    "dict": ({"a": 1}, ["real numbers"]),
    "ragged": ([[1, 2], [3]], ["rows"]),
    "all masked": (np.ma.array(X, mask=True), ["masked", "every entry of X is left out"]),
    "zeros": (np.zeros((4, 5)), ["zero"]),
    "minus zeros": (-np.zeros((4, 5)), ["zero"]),
    "huge": (X * 1e150, ["e+1", "divide"]),
    "tiny": (X * 1e-150, ["e-1", "divide"]),
    "huge float32": ((X * 1e30).astype("f"), ["float32", "divide"]),
    "tiny float32": ((X * 1e-30).astype("f"), ["float32", "divide"]),
    "long doubles past float64": (X * np.longdouble(10) ** 400, []),
}


@pytest.mark.parametrize(("data", "said"), BAD_DATA.values(), ids=BAD_DATA)
def test_bad_data(data, said):
    with refused(*said):
        fit(data)


@pytest.mark.parametrize(
    "name",
    ["nan", "inf", "negative", "no rows", "vector", "cube", "complex", "ragged"]
    + ["zeros", "huge", "tiny", "huge float32", "scalar"],
)
def test_bad_data_for_the_estimator(name):
    """Some of these are scikit-learn's sentences, of several lines."""
    data = BAD_DATA[name][0]
    turned = [list(row) for row in data] if name == "ragged" else getattr(data, "T", data)
    with pytest.raises((ValueError, TypeError)):
        DeepMF((3, 2), **SHORT).fit(turned)


def test_the_message_counts_all_bad_entries():
    Z = X.copy()
    Z[:, 3] = np.nan
    with refused("8 entries"):
        fit(Z)


# --- ranks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ranks",
    [0, -1, 3.0, True, "6", "6,4", b"6", [], (), None, [[3, 2]], [3, [2]], [3, 2.0], [3, None]]
    + [(3, True), [3, 0], {3, 2}, {3: 2}, np.nan, np.array([3.0, 2.0]), Nameless()],
    ids=repr,
)
def test_bad_ranks(ranks):
    with refused("ranks", "integers"):
        fit(ranks=ranks)
    with refused("ranks", "integers"):
        DeepMF(ranks, **SHORT).fit(X.T)


@pytest.mark.parametrize("rank", [10**6, 10**12, 10**30])
def test_a_senseless_rank_is_refused_before_memory_is(rank):
    with refused("rank", "lower"):
        fit(ranks=[rank, 2])


def test_increasing_ranks_warn():
    with pytest.warns(UserWarning, match=r"\[2, 3\] increase"):
        fit(ranks=[2, 3])


# --- names and settings --------------------------------------------------------------------------

KNOWN = {
    "model": ["layer-centric", "data-centric", "multilayer", "trigeorgis"],
    "constraint_W": ["nonnegative", "simplex", "grouped-sparse", "box", "none"],
    "constraint_H": ["nonnegative", "simplex", "grouped-sparse", "box", "none"],
    "regularizer_W": ["min-volume", "ridge", "l1"],
    "regularizer_H": ["min-volume", "ridge", "l1"],
    "solver": ["fpgm", "pg", "hals", "mu"],
    "init": ["snpa", "vca", "nfindr", "mv-dual", "hierarchical", "nndsvd", "random"],
}


@pytest.mark.parametrize("given", ["nosuch", 3, Nameless(), {"name": "nosuch"}, {}], ids=repr)
@pytest.mark.parametrize("setting", KNOWN)
def test_an_unknown_name_lists_the_known_ones(setting, given):
    with refused("unknown", *KNOWN[setting]):
        fit(**{setting: given})


@pytest.mark.parametrize(
    ("setting", "given"),
    [
        ("model", LayerCentric),
        ("constraint_W", Simplex),
        ("constraint_H", GroupedSparse),
        ("regularizer_W", MinVolume),
        ("solver", HALS),
    ],
)
def test_a_class_in_place_of_an_instance(setting, given):
    with refused("class", f"{given.__name__}()"):
        fit(**{setting: given})


@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize(
    ("setting", "one"),
    [
        ("constraint_W", "simplex"),
        ("constraint_H", "simplex"),
        ("regularizer_W", "ridge"),
        ("regularizer_H", "l1"),
    ],
)
def test_wrong_number_of_settings(setting, one, count):
    with refused(setting, f"{count} entr{'y' if count == 1 else 'ies'}", "2 layers"):
        fit(**{setting: [one] * count})


@pytest.mark.parametrize(
    "make",
    [
        lambda bad: Ridge(bad),
        lambda bad: L1(weight=bad),
        lambda bad: MinVolume(bad),
        lambda bad: MinVolume(delta=bad),
        lambda bad: GroupedSparse(bad),
        lambda bad: Box(0, bad),
        lambda bad: Box(bad, 0),
    ],
    ids=["Ridge", "L1", "MinVolume", "delta", "GroupedSparse", "Box upper", "Box lower"],
)
@pytest.mark.parametrize("bad", ["a", None, np.nan, 1j, [1.0], np.ones(2), True], ids=repr)
def test_a_parameter_that_is_no_number(make, bad, request):
    if bad is None and request.node.callspec.id.endswith("delta"):
        assert make(bad) == MinVolume()  # its default
        return
    with refused("got"):
        make(bad)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Ridge(-1),
        lambda: Ridge(np.inf),
        lambda: L1(-1e-9),
        lambda: MinVolume(delta=0),
        lambda: MinVolume(delta=-1),
        lambda: MinVolume(delta=1e-300),
        lambda: MinVolume(delta=np.inf),
        lambda: GroupedSparse(1.01),
        lambda: GroupedSparse(-0.1),
        lambda: Box(1, 0),
        lambda: Box(1, 1),
        lambda: Box(-np.inf, -np.inf),
        lambda: Ridge().set_params(weight=-1),
        lambda: Ridge().set_params(wait=1),
    ],
)
def test_a_parameter_out_of_range(make):
    with refused():
        make()


@pytest.mark.parametrize(
    "bad", ["a", None, -1, np.nan, np.inf, 1j, [[1], [2, 3]], [[1]], [1, 2, 3]]
)
@pytest.mark.parametrize(("model", "name"), [(LayerCentric, "lam"), (DataCentric, "mu")])
def test_bad_weights_are_refused_before_any_work(model, name, bad):
    def start(panels, rank, rng):
        raise AssertionError("the start ran")

    with refused(name):
        fit(model=model(**{name: bad}), init=start)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"name": "box", "lower": "a"}, ["lower", "'a'"]),
        ({"name": "box", "lo": 1}, ["lo", "lower, upper"]),
        ({"name": "box", "lower": 3}, ["lower"]),
    ],
)
def test_a_bad_spec_blames_what_is_wrong(spec, said):
    with refused(*said):
        fit(constraint_W=spec)


def test_a_bad_value_in_a_spec_is_not_called_an_unknown_parameter():
    with pytest.raises(ValueError, match=r"^(?!.*does not take)"):
        fit(constraint_W={"name": "box", "lower": "a"})


CONTROL = {
    "max_iter": [-1, 2.0, True, None, "5", np.nan],
    "inner_iter": [0, -1, 1.5, None, True],
    "augment": [-1, 1.5, True, "5"],
    "tol": [-1, np.nan, "a", True, 1j, np.complex128(1), [1]],
    "inner_tol": [-1, np.nan, "a", None],
    "max_time": [-1, np.nan, "a", 1j],
    "panel_size": [0, -1, 2.5, "a", True, np.nan],
    "callbacks": [3, "x", [3], [None], {"a": 1}, [print, 3]],
    "random_state": [-1, "a", 1.5, np.nan, {}, Nameless()],
}


@pytest.mark.parametrize(
    ("setting", "bad"),
    [(name, bad) for name, values in CONTROL.items() for bad in values],
    ids=repr,
)
def test_bad_control(setting, bad):
    with refused(setting):
        fit(**{setting: bad})


def test_an_error_in_a_callback_is_the_users_own():
    def fails(progress):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fit(callbacks=fails)


# --- combinations that cannot work ---------------------------------------------------------------


@pytest.mark.parametrize("solver", ["hals", "mu"])
@pytest.mark.parametrize("factor", ["constraint_W", "constraint_H"])
@pytest.mark.parametrize("constraint", ["simplex", "capped-simplex", "grouped-sparse"])
def test_solvers_name_the_constraint_they_cannot_handle(solver, factor, constraint):
    with refused(solver, f"{factor[-1]} of layer 1", "fpgm"):
        fit(solver=solver, **{factor: constraint})


@pytest.mark.parametrize("constraint", ["none", "box"])
def test_multiplicative_updates_are_for_nonnegativity(constraint):
    with refused("mu", "nonnegativ"):
        fit(solver="mu", constraint_W=constraint)


@pytest.mark.parametrize("solver", ["hals", "mu"])
def test_min_volume_brings_the_simplex_which_these_cannot_do(solver):
    with refused(solver, "Simplex()"):
        fit(solver=solver, regularizer_W=MinVolume())


def test_l1_on_a_signed_factor():
    with refused("L1", "W of layer 1", "nonnegative"):
        fit(regularizer_W=L1(), constraint_W="none")
    with refused("L1", "H of layer 2"):
        fit(regularizer_H=L1(), constraint_H=["nonnegative", Box(-1, 1)])


def test_min_volume_needs_a_scale():
    with refused("MinVolume", "W of layer 1", "simplex"):
        fit(regularizer_W=MinVolume(), constraint_W="nonnegative")


def test_min_volume_on_the_codes_of_the_data():
    with refused("MinVolume", "H of layer 1"):
        fit(regularizer_H=MinVolume())


@pytest.mark.parametrize("sparsity", [0, 0.5, 1])
@pytest.mark.filterwarnings("ignore:The first rank")
def test_sparsity_of_columns_of_length_one(sparsity):
    with refused("GroupedSparse", "H of layer 2", "1 x 3"):
        fit(ranks=[3, 1], constraint_H=GroupedSparse(sparsity))
    with refused("GroupedSparse", "W of layer 1", "1 x 3"):
        fit(X[:1], [3], constraint_W=GroupedSparse(sparsity), init="random")


def test_a_constraint_that_ties_columns_over_several_panels():
    with refused("GroupedSparse", "3 panels", "panel_size"):
        fit(constraint_H=GroupedSparse(0.5), panel_size=7)


@pytest.mark.parametrize(
    ("data", "rank"),
    [
        (X[:5, :3], 4),
        (X[:, :1], 2),
        (np.ones((4, 6)), 2),
        (np.outer(X[:, 0], np.arange(1, 7)), 2),
        (np.repeat(X[:, :2], 4, axis=1), 3),
        (X[:1], 2),
        (np.eye(5)[:, [0, 0, 1, 1, 1]], 3),
    ],
    ids=["n < r", "n = 1", "constant", "rank 1", "duplicates", "m = 1", "unit vectors"],
)
@pytest.mark.parametrize("init", ["snpa", "hierarchical"])
@pytest.mark.filterwarnings("ignore:The first rank")
def test_starts_say_how_many_components_they_found(init, data, rank):
    with refused("Layer 1", "found only", f"rank {rank}", "lower the rank", "random"):
        fit(data, rank, init=init)


def test_k_means_of_fewer_samples_than_clusters():
    with refused("Layer 1", "3 are not zero", "rank 4", "lower the rank", "random"):
        fit(np.c_[X[:, :3], 0 * X[:, :2]], 4, init="k-means")


@pytest.mark.filterwarnings("ignore:The first rank")
def test_nndsvd_past_its_reach():
    with refused("NNDSVD", "rank 9", "random"):
        fit(ranks=9, init="nndsvd")


# --- given factors -------------------------------------------------------------------------------

rng = np.random.default_rng(1)
WS = [rng.dirichlet(np.ones(8), r).T for r in (3, 2)]
HS = [rng.random((3, 20)), rng.random((2, 3))]

BAD_GIVEN = {
    "W of wrong shape": (([WS[1], WS[0]], HS), ["W of layer 1", "(8, 2)", "(8, 3)"]),
    "H turned": ((WS, [HS[0].T, HS[1]]), ["H of layer 1", "(20, 3)", "(3, 20)"]),
    "nan": (([WS[0], WS[1] * np.nan], HS), ["W of layer 2", "nan"]),
    "inf": ((WS, [HS[0] * np.inf, HS[1]]), ["H of layer 1", "inf"]),
    "infeasible": (([WS[0] - 1, WS[1]], HS), ["W of layer 1", "Simplex()", "project"]),
    "too few": ((WS[:1], HS), ["1 W", "2 layers"]),
    "too many": ((WS, [*HS, HS[1]]), ["3 H", "2 layers"]),
    "none": (([], []), ["0 W", "2 layers"]),
    "strings": ((["a", "b"], HS), ["W of layer 1"]),
    "Nones": ((WS, [None, None]), ["H of layer 1"]),
    "ragged": (([[[1, 2], [3]], WS[1]], HS), ["W of layer 1"]),
    "complex": (([WS[0] + 1j, WS[1]], HS), ["W of layer 1", "complex"]),
    "sparse": (([sparse.csr_array(WS[0]), WS[1]], HS), ["W of layer 1", "sparse"]),
    "arrays, not lists": ((WS[0], HS[0]), ["list", "2 layers"]),
    "flat list": ([*WS, *HS], ["pair of lists"]),
    "dict": ({"W": WS, "H": HS}, ["pair of lists"]),
    "huge": (([WS[0] * 1e200, WS[1]], HS), ["W of layer 1", "e+"]),
    "tiny": (([WS[0], WS[1] * 1e-200], HS), ["W of layer 2", "e-"]),
    "zero W": (([WS[0] * 0, WS[1]], HS), ["W of layer 1", "zero"]),
}


@pytest.mark.parametrize(("given", "said"), BAD_GIVEN.values(), ids=BAD_GIVEN)
def test_bad_given_factors(given, said):
    with refused(*said):
        fit(init=given)


def test_given_factors_out_of_the_reach_of_float32():
    with refused("W of layer 1", "float32"):
        fit(X.astype("f"), init=([WS[0] * 1e25, WS[1]], [HS[0] * 1e-25, HS[1]]))


@pytest.mark.parametrize("setting", [{"constraint_W": Box(2, 3)}, {"constraint_H": Box(0, 0.1)}])
def test_given_factors_outside_a_set(setting):
    with refused("not in"):
        fit(init=(WS, HS), **setting)


BAD_STARTS = {
    "text": (lambda p, r, g: "a", ["layer 1"]),
    "None": (lambda p, r, g: None, ["layer 1"]),
    "wrong shape": (lambda p, r, g: np.ones((2, 2)), ["layer 1", "(2, 2)", "(8, 3)"]),
    "turned": (lambda p, r, g: np.ones((r, p.shape[0])), ["layer 1", "(3, 8)", "(8, 3)"]),
    "nan": (lambda p, r, g: np.full((p.shape[0], r), np.nan), ["layer 1", "nan"]),
    "complex": (lambda p, r, g: 1j * np.ones((p.shape[0], r)), ["layer 1", "complex"]),
    "ragged": (lambda p, r, g: [[1], [2, 3]], ["layer 1"]),
    "zeros": (lambda p, r, g: np.zeros((p.shape[0], r)), ["layer 1", "zero"]),
    "huge": (lambda p, r, g: np.full((p.shape[0], r), 1e300), ["layer 1", "e+300"]),
    "tiny": (lambda p, r, g: np.full((p.shape[0], r), 1e-300), ["layer 1", "e-300"]),
}


@pytest.mark.parametrize(("start", "said"), BAD_STARTS.values(), ids=BAD_STARTS)
def test_custom_start_returning_rubbish(start, said):
    with refused(*said):
        fit(init=start)


def test_custom_start_bad_in_the_second_layer_only():
    def start(panels, rank, rng):
        return np.ones((panels.shape[0], 3))

    with refused("layer 2", "(8, 3)", "(8, 2)"):
        fit(init=start)


# --- results and files ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def result():
    return fit()


@pytest.mark.parametrize("layer", [0, 3, 9, -7, 1.5, "1", None, [1]], ids=repr)
@pytest.mark.parametrize("method", ["basis", "codes", "links", "reconstruct"])
def test_bad_layer(result, method, layer):
    with refused("layer", "2"):
        getattr(result, method)(layer)


def test_links_of_the_first_layer(result):
    with refused("codes"):
        result.links(1)


def test_encode_bad_data(result):
    with refused("3 rows", "8"):
        result.encode(X[:3])
    with refused("nan", "row 2"):
        result.encode(with_entry(np.nan))
    with refused("3 rows", "8"):
        result.encode(sparse.csr_array(X[:3]))
    with refused("empty"):
        result.encode(X[:, :0])


def test_save_into_a_missing_folder(result, tmp_path):
    with refused("missing", kind=OSError):
        result.save(tmp_path / "missing" / "a.npz")
    with pytest.raises(OSError, match=r"^(?!.*\.part)"):
        result.save(tmp_path / "missing" / "a.npz")


def test_save_over_a_folder(result, tmp_path):
    (tmp_path / "a.npz").mkdir()
    with refused("a.npz", kind=OSError):
        result.save(tmp_path / "a.npz")
    assert [p.name for p in tmp_path.iterdir()] == ["a.npz"]


def files(folder):
    """Files that are no factorization, by name."""
    whole = fit().save(folder / "whole.npz").read_bytes()
    out = {
        "empty": b"",
        "text": b"hello\n",
        "few bytes": whole[:10],
        "half": whole[: len(whole) // 2],
        "almost": whole[:-5],
        "pickle": pickle.dumps([1, 2]),
    }
    for name, content in out.items():
        (folder / name).write_bytes(content)
    np.savez(folder / "foreign.npz", a=1)
    np.save(folder / "array.npy", X)
    np.savez(folder / "other.npz", meta=np.array(json.dumps({"format": "something else"})))
    (folder / "folder").mkdir()
    return [*out, "foreign.npz", "array.npy", "other.npz", "folder"]


def test_load_of_what_is_no_factorization(tmp_path):
    for name in files(tmp_path):
        with refused(name, "not a whole deepmf factorization", kind=ValueError):
            Factorization.load(tmp_path / name)


def test_load_of_a_damaged_file(tmp_path):
    """Wherever bytes are overwritten, the file is refused or loads whole."""
    path = fit().save(tmp_path / "a.npz")
    whole = path.read_bytes()
    refusals = 0
    for k in range(0, len(whole), max(1, len(whole) // 60)):
        path.write_bytes(whole[:k] + b"\xff" * 8 + whole[k + 8 :])
        try:
            assert Factorization.load(path).depth == 2
        except ValueError as error:
            assert "not a whole deepmf factorization" in str(error)  # noqa: PT017
            refusals += 1
    assert refusals > 30


@pytest.mark.parametrize(
    "damage",
    [
        lambda m: m.pop("settings"),
        lambda m: m.update(depth="a"),
        lambda m: m.update(depth=9),
        lambda m: m["settings"].pop("ranks"),
        lambda m: m["settings"].update(constraint_W=[]),
        lambda m: m["settings"].update(model={"name": "nosuch"}),
        lambda m: m.update(settings=3),
    ],
)
def test_load_with_damaged_settings(damage, tmp_path):
    with np.load(fit().save(tmp_path / "a.npz")) as file:
        arrays = dict(file)
    meta = json.loads(str(arrays["meta"]))
    damage(meta)
    np.savez(tmp_path / "b.npz", **{**arrays, "meta": np.array(json.dumps(meta))})
    with refused(kind=ValueError):
        Factorization.load(tmp_path / "b.npz")


def test_load_of_a_missing_file(tmp_path):
    with refused("no file", "nosuch.npz", kind=FileNotFoundError):
        Factorization.load(tmp_path / "nosuch.npz")


class UnitBall(Constraint):
    separable = "columns"
    bounded = True

    def project(self, M):
        return M / np.maximum(np.linalg.norm(M, axis=0), 1)


def test_load_with_the_users_own_class_names_the_way_out(tmp_path):
    path = fit(constraint_W=UnitBall()).save(tmp_path / "a.npz")
    assert Factorization.load(path, custom=[UnitBall]).problem.layers[0].constraint_W == UnitBall()
    with refused("UnitBall", "custom"):
        Factorization.load(path)


# --- the estimator -------------------------------------------------------------------------------


@pytest.mark.parametrize("layer", [0, 9, -3, 1.5, "1", None, True], ids=repr)
def test_the_estimators_layer_is_checked_before_the_fit(layer):
    def sweep(progress):
        raise AssertionError("the fit ran")

    with refused("layer", "between 1 and 2"):
        DeepMF((3, 2), layer=layer, callbacks=sweep, **SHORT).fit(X.T)


@pytest.mark.parametrize("layer", [0, 9, -3, 1.5, "1"], ids=repr)
def test_bad_layer_of_the_estimator(layer):
    model = DeepMF((3, 2), **SHORT).fit(X.T)
    for call in (
        lambda: model.transform(X.T, layer=layer),
        lambda: model.components(layer),
        lambda: model.links(layer),
        lambda: model.inverse_transform(np.ones((4, 2)), layer=layer),
    ):
        with refused("layer", "between 1 and 2"):
            call()


@pytest.mark.parametrize("codes", [np.ones(2), np.ones((4, 3)), np.ones((2, 2, 2)), [["a", "b"]]])
def test_inverse_transform_of_bad_codes(codes):
    with refused("codes"):
        DeepMF((3, 2), **SHORT).fit(X.T).inverse_transform(codes)


@pytest.mark.parametrize("data", [np.ones((4, 7)), np.ones((4, 9)), np.empty((0, 8)), np.ones(8)])
def test_transform_of_bad_data(data):
    with pytest.raises(ValueError, match=r"features|sample|1D array"):
        DeepMF((3, 2), **SHORT).fit(X.T).transform(data)
