"""Kernels of a CUDA device against NumPy, and fits there against those on the CPU."""

from __future__ import annotations

import gc
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
    Nonnegative,
    ProjectedGradient,
    Simplex,
    Unconstrained,
    factorize,
)
from deepmf.data.on_disk import OnDisk
from deepmf.data.panels import Coding, as_panels
from deepmf.data.validation import as_matrix
from deepmf.solvers import projected_gradient
from deepmf.solvers.base import Solver

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
if not torch.cuda.is_available():
    pytest.skip("there is no CUDA device", allow_module_level=True)

from deepmf.data.gpu import tensor  # noqa: E402

SETS = [Unconstrained(), Nonnegative(), Box(0.01, 0.6), Simplex(), CappedSimplex()]
SIZES = {
    "scene": (162, 1000, 6),
    "odd": (163, 333, 3),
    "one": (20, 50, 1),
    "few columns": (30, 5, 4),
    "sixteen": (50, 777, 16),
    "shared by two": (30, 500, 17),
    "shared by eight": (60, 300, 50),
    "shared by sixteen": (90, 130, 100),
    "many rows": (1500, 200, 9),
}
dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])
SHORT = {"max_iter": 10, "tol": 0, "random_state": 0}


class Plain(Solver):
    """The reference in NumPy, never compiled."""

    def __init__(self, like):
        self.like = like

    def solve(self, q, constraint, M, max_iter, tol):
        size = projected_gradient.step_sizes(q, constraint, self.like.scaled).astype(M.dtype)
        run = projected_gradient._Descent(q, constraint, M, size, tol, self.like.accelerated)
        for _ in range(max_iter):
            if not run.step():
                break
        return run.result()


def problem(m, n, r, constraint, dtype, order="C"):
    rng = np.random.default_rng(m + n + r)
    W = rng.random((m, r))
    X = W @ rng.dirichlet(np.ones(r), n).T + 0.05 * rng.random((m, n))
    H = constraint.project(rng.dirichlet(np.ones(r), n).T)
    return np.asarray(X, dtype=dtype, order=order), H, Coding.of(W, constraint)


def on_device(X, width=None):
    return as_matrix(X, device="cuda").panels(width)


def host(H):
    return H.cpu().numpy().astype(float)


def loss(X, W, H):
    return 0.5 * float(np.linalg.norm(X.astype(float) - W @ H) ** 2)


def check_update(p, X, H, coding, solver, max_iter=10, tol=0.01):
    """Codes are the reference's, products those of the codes."""
    expected = as_panels(X)
    expected.codes.set(H)
    expected.update(coding, Plain(solver), max_iter, tol)
    p.codes.set(H)
    new = p.update(coding, solver, max_iter, tol)
    codes = host(p.codes.H)
    assert any(way is not None for way in p._passes.values()), "not by the kernels"
    exact = X.dtype == np.float64
    best = loss(X, coding.G, expected.codes.H.astype(float))
    assert loss(X, coding.G, codes) == pytest.approx(best, rel=1e-10 if exact else 1e-4)
    np.testing.assert_allclose(codes, expected.codes.H, atol=1e-8 if exact else 2e-2)
    np.testing.assert_allclose(new.terms[0].C, X.astype(float) @ codes.T, rtol=1e-12)
    np.testing.assert_allclose(new.terms[0].terms[0][1], codes @ codes.T, rtol=1e-12)
    assert coding.constraint.violation(codes) < (1e-12 if exact else 1e-6)


# --- kernels -------------------------------------------------------------------------------------


@dtypes
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("number", range(len(SETS)), ids=[s.name for s in SETS])
def test_every_set(number, order, dtype):
    X, H, coding = problem(37, 450, 5, SETS[number], dtype, order)
    check_update(on_device(X), X, H, coding, FastProjectedGradient())


@dtypes
@pytest.mark.parametrize("number", range(len(SETS)), ids=[s.name for s in SETS])
def test_every_set_where_threads_share_a_column(number, dtype):
    X, H, coding = problem(37, 150, 21, SETS[number], dtype)
    for max_iter, tol in ((10, 0.01), (30, 0.5)):
        check_update(on_device(X), X, H, coding, FastProjectedGradient(), max_iter, tol)


@dtypes
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("size", SIZES)
def test_every_size(size, order, dtype):
    X, H, coding = problem(*SIZES[size], Nonnegative(), dtype, order)
    check_update(on_device(X, 128), X, H, coding, FastProjectedGradient())


@pytest.mark.parametrize("rank", [4, 20])
@pytest.mark.parametrize("solver", [ProjectedGradient(), FastProjectedGradient(scaled=False)])
@pytest.mark.parametrize(
    ("max_iter", "tol"), [(0, 0.0), (1, 0.0), (100, 0.0), (300, 1e-6), (50, 0.5)]
)
def test_steps_and_stops(rank, solver, max_iter, tol):
    X, H, coding = problem(25, 200, rank, Nonnegative(), np.float64)
    check_update(on_device(X), X, H, coding, solver, max_iter, tol)


@dtypes
@pytest.mark.parametrize("number", range(len(SETS)), ids=[s.name for s in SETS])
@pytest.mark.parametrize("rank", [5, 21])
def test_updates_from_ahead_can_be_taken_back(rank, number, dtype):
    X, H, coding = problem(37, 450, rank, SETS[number], dtype)
    both = on_device(X), as_panels(X)
    seen = []
    for p in both:
        p.codes.set(H)
        codes = []
        for momentum in (0.0, 0.7, None, 0.9, "undo", "undo", 0.0, 0.4):
            if momentum == "undo":
                p.codes.undo()
            else:
                p.update(replace(coding, ahead=momentum), FastProjectedGradient(), 3, 0.0)
            codes.append(host(p.codes.H) if p is both[0] else p.codes.H.astype(float))
        seen.append(codes)
    for new, old in zip(*seen):
        np.testing.assert_allclose(new, old, atol=1e-10 if dtype == np.float64 else 1e-3)
    assert np.abs(seen[0][4] - seen[0][3]).max() > 1e-6


def test_other_fits_are_let_go_while_one_is_recorded():
    """A recorded pass that is garbage in a cycle, at every step of another recording."""
    X, H, coding = problem(20, 300, 4, Nonnegative(), np.float32)
    before = gc.get_threshold()
    try:
        gc.set_threshold(1, 1, 1)
        for _ in range(3):
            p = on_device(X)
            p.codes.set(H)
            for _ in range(3):
                p.update(coding, FastProjectedGradient(), 10, 0.01)
            p.itself = p
    finally:
        gc.set_threshold(*before)


def test_a_tensor_that_begins_anywhere():
    """Rows that are not aligned, and steps in both directions."""
    X, H, coding = problem(21, 300, 5, Nonnegative(), np.float32)
    large = torch.zeros((23, 403), device="cuda")
    for part in (large[1:22, 3:303], torch.zeros((403, 24), device="cuda")[3:303, 2:23].T,
                 torch.zeros((42, 600), device="cuda")[::2, ::2]):  # fmt: skip
        part.copy_(torch.from_numpy(X))
        check_update(as_panels(part), X, H, coding, FastProjectedGradient())


@pytest.mark.parametrize("rank", [6, 40])
def test_the_same_every_time(rank):
    X, H, coding = problem(162, 5000, rank, Nonnegative(), np.float32)
    p, seen = on_device(X), []
    for _ in range(4):  # the second call is recorded, the third repeats it
        p.codes.set(H)
        products = [p.update(coding, FastProjectedGradient(), 10, 0.01) for _ in range(3)][-1]
        seen.append((host(p.codes.H), products.terms[0].C, products.terms[0].terms[0][1]))
    for other in seen[1:]:
        for a, b in zip(seen[0], other):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("shape", [(1, 50), (50, 1), (1, 1), (3, 70_000)])
def test_every_shape_arrives(shape, tmp_path):
    X = np.random.default_rng(0).random(shape) + 0.1
    np.save(tmp_path / "X.npy", X)
    stored = OnDisk(np.load(tmp_path / "X.npy", mmap_mode="r"))
    for given in (X, np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2], stored,
                  np.broadcast_to(X[:1], (1, shape[1])), X.astype(np.float32)):  # fmt: skip
        sent = as_matrix(given, device="cuda").array
        expected = np.asarray(given)
        np.testing.assert_array_equal(sent.cpu().numpy(), expected)
    if min(shape) > 1:
        f = factorize(X, [2], device="cuda", **SHORT)
        assert f.H[0].shape == (2, shape[1])


# --- data that are sent in blocks ----------------------------------------------------------------


@pytest.fixture
def streamed(monkeypatch):
    from deepmf.data.gpu import streaming

    monkeypatch.setattr(tensor, "_SHARE", 0.0)
    monkeypatch.setattr(streaming, "_BYTES", 1 << 14)


@dtypes
@pytest.mark.parametrize("order", ["C", "F", "every second", "on disk"])
@pytest.mark.parametrize("rank", [6, 20])
def test_blocks_are_as_good_as_the_whole(rank, order, dtype, streamed, tmp_path):
    X, H, coding = problem(37, 1234, rank, Nonnegative(), dtype, "F" if order == "F" else "C")
    given = X
    if order == "every second":
        given = np.repeat(X, 2, axis=1)[:, ::2]
    if order == "on disk":
        np.save(tmp_path / "X.npy", X)
        given = OnDisk(np.load(tmp_path / "X.npy", mmap_mode="r"))
    with on_device(given, 100) as p:
        assert p.blocks.most < 1234
        check_update(p, X, H, coding, FastProjectedGradient())
        np.testing.assert_allclose(p.norm2, np.sum(X.astype(float) ** 2))
        np.testing.assert_array_equal(p.columns([3, 1200, 3]), X[:, [3, 1200, 3]])
        residual = 2 * loss(X, coding.G, host(p.codes.H))
        np.testing.assert_allclose(p.residuals2([coding.G]), residual, rtol=1e-4)


def test_a_fit_of_blocks(streamed):
    X, _, _ = problem(37, 1234, 6, Nonnegative(), np.float64)
    expected = factorize(X, [4, 2], **SHORT)
    for given, kind in ((X, np.ndarray), (torch.from_numpy(X), torch.Tensor)):
        f = factorize(given, [4, 2], device="cuda", **SHORT)
        np.testing.assert_allclose(f.history.objective, expected.history.objective, rtol=1e-9)
        assert type(f.H[0]) is type(f.W[1]) is kind


# --- fits ----------------------------------------------------------------------------------------

SETTINGS = {
    "plain": {},
    "data-centric": {"model": "data-centric"},
    "simplex codes": {"constraint_H": "simplex", "init": "hierarchical"},
    "snpa": {"init": "snpa", "regularizer_W": "min-volume"},
    "several starts": {"init": ["random", "nndsvd"]},
    "penalty": {"regularizer_H": L1(0.1)},
    "hals": {"solver": "hals"},
    "mu": {"solver": "mu"},
}


class UnitBall(Constraint):
    """A user's own set."""

    separable = "columns"

    def project(self, M):
        return M / np.maximum(np.linalg.norm(M, axis=0), 1)


@pytest.mark.parametrize("name", SETTINGS)
def test_fits_are_those_of_the_cpu(name):
    X, _, _ = problem(37, 700, 5, Nonnegative(), np.float64)
    expected = factorize(X, [4, 2], **SHORT, **SETTINGS[name])
    f = factorize(torch.from_numpy(X).cuda(), [4, 2], **SHORT, **SETTINGS[name])
    np.testing.assert_allclose(f.history.objective, expected.history.objective, rtol=1e-8)
    for a, b in zip(f.numpy().W + f.numpy().H, expected.W + expected.H):
        np.testing.assert_allclose(a, b, atol=1e-6 * np.abs(b).max())


def test_a_set_of_the_users():
    X, _, _ = problem(37, 700, 5, Nonnegative(), np.float64)
    settings = {**SHORT, "constraint_H": [UnitBall(), None], "constraint_W": "none"}
    f = factorize(X, [4, 2], device="cuda", **settings)
    np.testing.assert_allclose(
        f.history.objective, factorize(X, [4, 2], **settings).history.objective, rtol=1e-8
    )


@pytest.mark.parametrize("ranks", [[6, 4, 2], [24, 6]], ids=str)
def test_single_precision_decreases_and_agrees(ranks):
    X, _, _ = problem(162, 20_000, ranks[0], Nonnegative(), np.float32)
    for ahead in (True, False):
        settings = {**SHORT, "max_iter": 60, "extrapolate": ahead}
        f = factorize(X, ranks, device="cuda", **settings)
        steps = np.diff(f.history.objective)
        assert (steps <= 1e-9 * f.history.objective[:-1]).all()
    cpu = factorize(X, ranks, **settings)
    np.testing.assert_allclose(f.history.objective, cpu.history.objective, rtol=1e-4)


@dtypes
def test_results_are_where_the_data_are(dtype, tmp_path):
    X, _, _ = problem(12, 90, 4, Nonnegative(), dtype)
    T = torch.from_numpy(X)
    for given, device, place in (
        (T.cuda(), None, "cuda"),
        (T.cuda(), "cuda", "cuda"),
        (T, "cuda", "cpu"),
        (T.cuda(), "cpu", "cuda"),
        (X, "cuda", None),
    ):
        f = factorize(given, [4, 2], device=device, **SHORT)
        for M in [*f.W, *f.H, f.codes(2), f.reconstruct(2), f.encode(given, 2, device=device)]:
            assert (M.device.type if place else type(M)) == (place or np.ndarray)
            assert str(M.dtype).endswith(np.dtype(dtype).name)
        g = Factorization.load(f.save(tmp_path / "f"))
        np.testing.assert_array_equal(g.H[0], f.numpy().H[0])
        for other in (X, T, T.cuda()):  # new data of any kind and place
            assert type(f.encode(other)) is type(other)
        assert f.squared_error(T.cuda()) == pytest.approx(f.squared_error(X), rel=1e-3)


def test_the_estimator():
    X, _, _ = problem(12, 90, 4, Nonnegative(), np.float64)
    T = torch.from_numpy(X).cuda().T
    model = DeepMF([4, 2], **SHORT).fit(T)
    assert model.transform(T).device == T.device
    assert model.inverse_transform(model.transform(T)).shape == T.shape
    plain = DeepMF([4, 2], device="cuda", **SHORT).fit(X.T)
    np.testing.assert_allclose(model.transform(T).cpu(), plain.transform(X.T), atol=1e-6)
    assert plain.score(X.T) == pytest.approx(model.score(T))


# --- what can go wrong ---------------------------------------------------------------------------


def test_too_little_memory():
    X = torch.rand(100, 400_000, device="cuda")
    torch.cuda.empty_cache()
    total = torch.cuda.mem_get_info()[1]
    try:
        torch.cuda.set_per_process_memory_fraction(X.nbytes * 1.5 / total)
        with pytest.raises(MemoryError, match=r"has no room: .* was needed and .* GiB are free"):
            factorize(X, [64], **SHORT)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def test_a_bad_entry_is_named():
    X = torch.rand(5, 100_000, device="cuda")
    X[3, 99_000] = torch.nan
    with pytest.raises(ValueError, match="row 3, column 99000"):
        factorize(X, [2])


def test_ranks_beyond_the_kernels_go_through_the_cpu():
    X, _, _ = problem(260, 300, 6, Nonnegative(), np.float64)
    with pytest.warns(UserWarning, match="Codes are updated on the CPU: .*rank 200"):
        f = factorize(X, [200], device="cuda", init="random", max_iter=2, tol=0, random_state=0)
    expected = factorize(X, [200], init="random", max_iter=2, tol=0, random_state=0)
    np.testing.assert_allclose(f.history.objective, expected.history.objective, rtol=1e-8)


@pytest.mark.parametrize("new", [False, True], ids=["old name", "new name"])
def test_full_precision_whatever_pytorch_is_set_to(new):
    settings = torch.backends.cuda.matmul
    if new and not hasattr(settings, "fp32_precision"):
        pytest.skip("this PyTorch has the old name alone")
    name, fast = ("fp32_precision", "tf32") if new else ("allow_tf32", True)
    X, H, coding = problem(162, 3000, 40, Nonnegative(), np.float32)
    before = getattr(settings, name)
    try:
        setattr(settings, name, fast)
        p = on_device(X)
        check_update(p, X, H, coding, FastProjectedGradient())
        exact = coding.G.T @ X.astype(float)
        np.testing.assert_allclose(p.dot(coding.G), exact, rtol=1e-5)  # TF32 has three digits
        assert getattr(settings, name) == fast
    finally:
        setattr(settings, name, before)
