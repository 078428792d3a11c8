"""PyTorch tensors as data: the same fits as NumPy's arrays, in the kind that was given."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

from deepmf import (
    L1,
    Box,
    CappedSimplex,
    Constraint,
    DeepMF,
    Factorization,
    FastProjectedGradient,
    GroupedSparse,
    MinVolume,
    Nonnegative,
    Ridge,
    Simplex,
    Unconstrained,
    factorize,
)
from deepmf.data.on_disk import OnDisk
from deepmf.data.panels import Coding, DensePanels, as_panels, svd

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from deepmf.data.gpu import tensor  # noqa: E402

ROWS, COLS, RANK = 6, 23, 3
WIDTHS = [None, 23, 100, 7, 1]
KINDS = {
    "C": lambda X: torch.from_numpy(X.copy()),
    "F": lambda X: torch.from_numpy(X.T.copy()).T,
    "every second": lambda X: torch.from_numpy(np.repeat(np.repeat(X, 2, 0), 2, 1))[::2, ::2],
}
widths = pytest.mark.parametrize("width", WIDTHS)
kinds = pytest.mark.parametrize("kind", KINDS)
dtypes = pytest.mark.parametrize("dtype", [np.float64, np.float32])


class UnitBall(Constraint):
    """A user's own set."""

    separable = "columns"

    def project(self, M):
        return M / np.maximum(np.linalg.norm(M, axis=0), 1)


SETS = [
    Unconstrained(),
    Nonnegative(),
    Box(0.1, 0.6),
    Simplex(),
    CappedSimplex(),
    GroupedSparse(0.3),
    UnitBall(),
]


def matrix(dtype=np.float64, seed=0):
    X = np.maximum(np.random.default_rng(seed).random((ROWS, COLS)) - 0.3, 0)
    X[:, 11] = 0
    return X.astype(dtype)


def basis(seed=1):
    return np.random.default_rng(seed).random((ROWS, RANK))


def panels(X, kind="C", width=None):
    return as_panels(KINDS[kind](X), width)


def close(a, b, dtype=np.float64):
    tolerance = 1e-10 if dtype == np.float64 else 2e-3  # a step more or less
    np.testing.assert_allclose(np.asarray(a), b, rtol=tolerance, atol=tolerance)


# --- the panels' contract ------------------------------------------------------------------------


@widths
@kinds
@dtypes
def test_panels_are_those_of_the_array(width, kind, dtype):
    X, G = matrix(dtype), basis()
    p, q = panels(X, kind, width), DensePanels(X, width)
    assert (p.shape, p.dtype) == (q.shape, q.dtype)
    assert p.count == -(-COLS // (width or COLS))
    close(p.norm2, q.norm2)
    close(p.column_norms2(), q.column_norms2())
    close(p.dot(G), q.dot(G), dtype)
    for index in ([4], [5, 0, 5], np.array([22, 3]), []):
        np.testing.assert_array_equal(p.columns(index), q.columns(index))
        close(p.dot(G, np.array(index, dtype=int)), q.dot(G, np.array(index, dtype=int)))
    assert p.dot(G).dtype == p.columns([1]).dtype == p.column_norms2().dtype == np.float64
    H = np.random.default_rng(2).random((RANK, COLS))
    p.codes.set(H)
    q.codes.set(H)
    close(p.residuals2([basis(3), basis(4)]), q.residuals2([basis(3), basis(4)]), dtype)
    H[:] = 7
    close(p.codes.H, q.codes.H, dtype)


@widths
@dtypes
@pytest.mark.parametrize("penalty", [None, L1(), Ridge()], ids=repr)
@pytest.mark.parametrize("constraint", SETS, ids=repr)
def test_codes_begin_and_are_updated_as_those_of_the_array(width, dtype, penalty, constraint):
    whole = constraint.separable is None
    if whole and width in (7, 1):
        pytest.skip("a set that ties all columns has them in one panel")
    X, W = matrix(dtype), basis()
    coding = Coding.of(W, constraint, penalty, 0.3)
    both = panels(X, "F", width), DensePanels(X, COLS if whole else width)
    for positive in (True, False):
        for p in both:
            p.begin(coding, positive)
        close(both[0].codes.H, both[1].codes.H, dtype)
    new, old = (p.update(coding, FastProjectedGradient(), 20, 1e-3) for p in both)
    close(both[0].codes.H, both[1].codes.H, dtype)
    close(new.penalty, old.penalty, dtype)
    assert new.terms[0].C.dtype == new.terms[0].terms[0][1].dtype == np.float64
    H = np.asarray(both[0].codes.H, dtype=float)
    np.testing.assert_allclose(new.terms[0].C, X.astype(float) @ H.T, rtol=1e-12)
    np.testing.assert_allclose(new.terms[0].terms[0][1], H @ H.T, rtol=1e-12)


@pytest.mark.parametrize("constraint", SETS, ids=repr)
def test_updates_from_ahead_can_be_taken_back(constraint):
    X, W = matrix(), basis()
    coding = Coding.of(W, constraint)
    whole = COLS if constraint.separable is None else 7
    both = panels(X, "C", whole), DensePanels(X, whole)
    seen = []
    for p in both:
        p.codes.set(constraint.project(np.random.default_rng(2).random((RANK, COLS))))
        codes = []
        for momentum in (0.0, 0.7, None, 0.9, "undo", "undo", 0.0, 0.4):
            if momentum == "undo":
                p.codes.undo()
            else:
                p.update(replace(coding, ahead=momentum), FastProjectedGradient(), 2, 0.0)
            codes.append(np.asarray(p.codes.H).copy())
        seen.append(codes)
    for new, old in zip(*seen):
        close(new, old)
    assert np.abs(seen[0][4] - seen[0][3]).max() > 1e-6


@widths
@kinds
@pytest.mark.parametrize("lanczos", [False, True], ids=["gram", "lanczos"])
@pytest.mark.parametrize("some", [False, True], ids=["all", "some"])
def test_leading(width, kind, lanczos, some, monkeypatch):
    if lanczos:
        monkeypatch.setattr(svd, "_LARGEST_GRAM", 0)
    members = np.arange(COLS) % 3 != 0 if some else None
    U, s = panels(matrix(), kind, width).leading(3, members)
    Ux, sx, _ = np.linalg.svd(matrix()[:, members] if some else matrix())
    np.testing.assert_allclose(s, sx[:3], rtol=1e-9)
    np.testing.assert_allclose(np.abs(np.sum(U * Ux[:, :3], axis=0)), 1, rtol=1e-9)


# --- through the front door ----------------------------------------------------------------------

SETTINGS = {
    "plain": {},
    "data-centric": {"model": "data-centric"},
    "multilayer": {"model": "multilayer"},
    "trigeorgis": {"model": "trigeorgis"},
    "min-volume": {"regularizer_W": MinVolume(0.1), "init": "snpa"},
    "sparse codes": {"regularizer_H": L1(0.1)},
    "whole set": {"constraint_H": [GroupedSparse(0.3), None]},
    "simplex codes": {"constraint_H": "simplex", "init": "hierarchical"},
    "several starts": {"init": ["snpa", "random", "nndsvd"]},
    "hals": {"solver": "hals"},
    "mu": {"solver": "mu"},
}
SHORT = {"max_iter": 8, "tol": 0, "random_state": 0}


def mixture(dtype=np.float64):
    rng = np.random.default_rng(0)
    return (rng.random((ROWS, 4)) @ rng.dirichlet(np.ones(4) * 0.3, COLS).T).astype(dtype)


@kinds
@pytest.mark.parametrize("name", SETTINGS)
def test_fits_are_those_of_the_array(name, kind):
    X = mixture()
    expected = factorize(X, [4, 2], **SHORT, **SETTINGS[name])
    whole = name == "whole set"
    for size in (None,) if whole else (None, 7):
        f = factorize(KINDS[kind](X), [4, 2], panel_size=size, **SHORT, **SETTINGS[name])
        for a, b in zip([*f.W, *f.H], [*expected.W, *expected.H]):
            close(a, b)
        close(f.history.objective, expected.history.objective)
        assert f.starts == expected.starts


def of_kind(M, kind, dtype):
    assert type(M) is kind
    assert str(M.dtype).removeprefix("torch.") == np.dtype(dtype).name


@dtypes
def test_results_are_of_the_kind_that_was_given(dtype):
    X = mixture(dtype)
    T = torch.from_numpy(X)
    for given, device, kind in (
        (T, None, torch.Tensor),
        (T, "cpu", torch.Tensor),
        (X, "cpu", np.ndarray),
        (np.asfortranarray(X), torch.device("cpu"), np.ndarray),
        (X, None, np.ndarray),
    ):
        f = factorize(given, [4, 2], device=device, **SHORT)
        for M in [*f.W, *f.H, f.basis(2), f.codes(2), f.reconstruct(1), f.encode(given, 2)]:
            of_kind(M, kind, dtype)
        # new data of the other kind: codes are of theirs
        of_kind(f.encode(X), np.ndarray, dtype)
        of_kind(f.encode(T, 2), torch.Tensor, dtype)
        of_kind(f.encode(X, device="cpu"), np.ndarray, dtype)
        assert f.squared_error(T, 2) == pytest.approx(f.squared_error(X, 2), rel=1e-4)
        plain = f.numpy()
        for M in [*plain.W, *plain.H]:
            of_kind(M, np.ndarray, dtype)
        assert f.links(2).shape == (2, 4)


@dtypes
def test_factors_of_a_tensor_are_saved(dtype, tmp_path):
    f = factorize(torch.from_numpy(mixture(dtype)), [4, 2], **SHORT)
    g = Factorization.load(f.save(tmp_path / "f"))
    for a, b in zip([*f.W, *f.H], [*g.W, *g.H]):
        np.testing.assert_array_equal(np.asarray(a), b)
    close(g.encode(mixture(dtype)), f.encode(mixture(dtype)))


def test_factors_to_start_from_may_be_tensors():
    X = mixture()
    f = factorize(X, [4, 2], **SHORT)
    tensors = [[torch.from_numpy(M) for M in factors] for factors in (f.W, f.H)]
    expected = factorize(X, [4, 2], init=(f.W, f.H), max_iter=2, tol=0)
    for given in (X, torch.from_numpy(X)):
        g = factorize(given, [4, 2], init=tuple(tensors), max_iter=2, tol=0)
        close(g.history.objective, expected.history.objective)
    single = factorize(X, [4], init=(tensors[0][0], tensors[1][0]), max_iter=2, tol=0)
    assert single.depth == 1


def test_half_precision_becomes_double():
    X = torch.from_numpy(mixture()).to(torch.bfloat16)
    f = factorize(X, [3], **SHORT)
    assert f.W[0].dtype == torch.float64
    close(f.reconstruct(1), factorize(X.double(), [3], **SHORT).reconstruct(1))


def test_the_callers_tensor_is_left_as_it_is():
    X = torch.from_numpy(mixture())
    kept = X.clone()
    factorize(X, [4, 2], **SHORT)
    assert torch.equal(X, kept)
    frozen = mixture()
    frozen.flags.writeable = False
    factorize(frozen, [4, 2], device="cpu", **SHORT)
    factorize(mixture()[:, ::-1], [4, 2], device="cpu", **SHORT)


@dtypes
def test_the_estimator(dtype):
    X = mixture(dtype).T
    T = torch.from_numpy(X)
    expected = DeepMF([4, 2], **SHORT).fit(X)
    for given, device, kind in ((T, None, torch.Tensor), (X, "cpu", np.ndarray)):
        model = DeepMF([4, 2], device=device, **SHORT).fit(given)
        assert model.n_features_in_ == ROWS
        codes = model.transform(given)
        of_kind(codes, kind, dtype)
        of_kind(model.components_, kind, dtype)
        close(codes, expected.transform(X), dtype)
        of_kind(model.inverse_transform(codes), kind, dtype)
        close(
            model.inverse_transform(codes), expected.inverse_transform(expected.transform(X)), dtype
        )
        assert model.score(given) == pytest.approx(expected.score(X), rel=1e-3)
        assert model.reconstruction_err_ == pytest.approx(expected.reconstruction_err_, rel=1e-3)
        with pytest.raises(ValueError, match="X has 4 features, but DeepMF is expecting 6"):
            model.transform(given[:, :4])


def test_names_of_an_earlier_fit_are_forgotten():
    pandas = pytest.importorskip("pandas")
    model = DeepMF([2], **SHORT).fit(pandas.DataFrame(mixture().T, columns=list("abcdef")))
    model.fit(torch.from_numpy(mixture().T))
    assert not hasattr(model, "feature_names_in_")


def test_the_command_line(tmp_path):
    testing = pytest.importorskip("typer.testing")
    pytest.importorskip("tomli_w")
    from deepmf.cli.app import app

    np.save(tmp_path / "X.npy", mixture())
    said = f"fit {tmp_path}/X.npy --rows features --ranks 3,2 --max-iter 3 --tol 0 --no-report"
    out = tmp_path / "run"
    run = testing.CliRunner().invoke(app, [*said.split(), "--device", "cpu", "-o", str(out)])
    assert run.exit_code == 0, run.output
    assert 'device = "cpu"' in (out / "config.toml").read_text()
    again = ["fit", "--config", str(out / "config.toml"), "-o", str(tmp_path / "again")]
    assert testing.CliRunner().invoke(app, [*again, "--device", "moon"]).exit_code != 0
    assert testing.CliRunner().invoke(app, again).exit_code == 0


# --- bad input -----------------------------------------------------------------------------------


def spoilt(at, value):
    X = torch.from_numpy(mixture())
    X[at] = value
    return X


T = torch.from_numpy(mixture())
BAD = {
    "sparse": (T.to_sparse(), TypeError, r"sparse tensor .*X\.to_dense\(\)"),
    "complex": (T * 1j, TypeError, "X is complex .*real part"),
    "integers": (T.to(torch.int64), TypeError, r"torch.int64, but must be of float32.*X\.float"),
    "truths": (T > 0, TypeError, r"torch.bool"),
    "gradient": (T.clone().requires_grad_(), ValueError, r"requires a gradient.*X\.detach\(\)"),
    "elsewhere": (T.to("meta"), ValueError, "X is on meta, but must be on cpu or cuda"),
    "cube": (T[None], ValueError, r"2-D.*\(1, 6, 23\)"),
    "a number": (T[0, 0], ValueError, "2-D"),
    "nothing": (T[:, :0], ValueError, r"empty: its shape is \(6, 0\)"),
    "nan": (spoilt((2, 5), np.nan), ValueError, r"1 entry that is NaN.*row 2, column 5"),
    "infinite": (spoilt((3, 1), np.inf), ValueError, r"inf at row 3, column 1"),
    "negative": (spoilt((4, 2), -1), ValueError, r"row 4, column 2; .*X\.clip\(0\)"),
    "zeros": (T * 0, ValueError, "all zeros"),
    "huge": (T * 1e200, ValueError, "Divide X"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_tensors(name):
    X, error, said = BAD[name]
    with pytest.raises(error, match=said):
        factorize(X, [2])
    with pytest.raises(error, match="X"):
        DeepMF([2]).fit(X.T if X.ndim == 2 else X)


def test_the_estimator_names_a_bad_entry_by_its_sample():
    for name, place in (("nan", "row 5, column 2"), ("negative", "row 2, column 4")):
        with pytest.raises(ValueError, match=place):
            DeepMF([2]).fit(BAD[name][0].T)


def test_bad_codes():
    model = DeepMF([4, 2], **SHORT).fit(T.T)
    with pytest.raises(ValueError, match=r"codes has shape .*\(n_samples, 2\)"):
        model.inverse_transform(T.T)


@pytest.mark.parametrize("device", ["moon", 3.5, "mps", "cuda:x", ""])
def test_bad_devices(device):
    with pytest.raises(ValueError, match=r"device must be 'cpu', 'cuda' or 'cuda:0', .*, got"):
        factorize(mixture(), [2], device=device)


def test_devices_work_on_dense_data_only():
    from scipy import sparse

    with pytest.raises(TypeError, match="works on arrays and tensors, got scipy's csc_array"):
        factorize(sparse.csc_array(mixture()), [2], device="cpu")


def test_data_on_disk_can_be_sent(tmp_path):
    np.save(tmp_path / "X.npy", mixture())
    stored = OnDisk(np.load(tmp_path / "X.npy", mmap_mode="r"))
    f = factorize(stored, [4, 2], device="cpu", **SHORT)
    of_kind(f.H[0], np.ndarray, np.float64)
    close(f.H[0], factorize(mixture(), [4, 2], **SHORT).H[0])


def test_without_pytorch(monkeypatch):
    for name in [m for m in sys.modules if m.startswith("deepmf.data.gpu")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"needs PyTorch.*pip install 'deepmf\[gpu\]'"):
        factorize(mixture(), [2], device="cuda")


def fail(error):
    def run(*arguments, **named):
        raise error

    return run


def test_a_pytorch_without_cuda(monkeypatch):
    monkeypatch.setattr(torch.version, "cuda", None)
    with pytest.raises(RuntimeError, match=r"needs a PyTorch with CUDA.*or use device='cpu'"):
        factorize(mixture(), [2], device="cuda")


def test_a_driver_that_does_not_work(monkeypatch):
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    old = "The NVIDIA driver on your system is too old (found version 11040). Please update.\nMore"
    monkeypatch.setattr(torch.cuda, "init", fail(RuntimeError(old)))
    with pytest.raises(RuntimeError, match=r"too old \(found version 11040\)\. Check the driver"):
        factorize(mixture(), [2], device="cuda")


def test_a_device_too_many(monkeypatch):
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "init", lambda: None)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(
        ValueError, match="'cuda:4' does not exist: there is 1, counted from cuda:0"
    ):
        factorize(mixture(), [2], device="cuda:4")


def test_too_little_memory(monkeypatch):
    error = torch.cuda.OutOfMemoryError(
        "CUDA out of memory. Tried to allocate 14.90 GiB. GPU 0 ..."
    )
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (3 * 2**30, 8 * 2**30))
    monkeypatch.setattr(torch, "matmul", fail(error))
    with pytest.raises(MemoryError, match=r"14\.90 GiB was needed and 3\.00 GiB are free.*block"):
        factorize(torch.from_numpy(mixture()), [2])


def test_pytorchs_own_settings_are_kept():
    with tensor.at_work(torch.device("cpu")):
        assert torch.get_float32_matmul_precision() == "highest"
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("high")
        factorize(T, [2], **SHORT)
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(before)
