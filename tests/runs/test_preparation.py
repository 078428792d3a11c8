"""Scaling and choice of features of a run: written, shown, and done again."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from typer.testing import CliRunner

from deepmf.cli.app import app
from deepmf.data.scaling import scaled
from deepmf.fitting.recipes import RECIPES
from deepmf.runs import Config, apply, execute, load_run, save_run
from deepmf.runs.config import ConfigError

pytest.importorskip("tomli_w")

RNG = np.random.default_rng(0)
RATES = RNG.gamma(0.5, 2, (40, 3)) @ RNG.gamma(0.5, 1, (3, 60))
COUNTS = RNG.poisson(3 * RATES).astype(float)
KEPT = 12
FIT = {"ranks": [3, 2], "max_iter": 5, "tol": 0.0, "init": "random"}

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def counts(tmp_path):
    path = tmp_path / "counts.npy"
    np.save(path, COUNTS)
    return path


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "counts.csv"
    _write(path, range(40))
    return path


def _write(path, genes):
    """Cells as rows, and some genes in some order as columns."""
    with path.open("w") as file:
        file.write("cell," + ",".join(f"gene{g}" for g in genes) + "\n")
        for k, row in enumerate(COUNTS[list(genes)].T):
            file.write(f"c{k}," + ",".join(f"{v:g}" for v in row) + "\n")


def saved(folder, config):
    run = execute(config)
    folder.mkdir()
    save_run(folder, run)
    return run


def of_largest_variance(X):
    return np.sort(np.argsort(-np.var(X, axis=1), kind="stable")[:KEPT])


def cli(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result


@pytest.mark.parametrize(
    "asked",
    [{"scale": "log", "max_features": KEPT}, {"max_features": KEPT}, {"fit": {"recipe": "cells"}}],
)
def test_a_run_is_repeated_and_applied_with_its_preparation(counts, tmp_path, asked, monkeypatch):
    monkeypatch.setitem(RECIPES, "cells", replace(RECIPES["cells"], max_features=KEPT))
    fit = {**FIT, **asked.get("fit", {})}
    run = saved(tmp_path / "run", Config(str(counts), **{**asked, "fit": fit}))
    X = scaled(COUNTS, None if asked.keys() == {"max_features"} else "log")
    kept = of_largest_variance(X)
    assert np.flatnonzero(run.f.layout.kept).tolist() == kept.tolist()
    assert run.facts["features"] == "12 most variable of 40"
    again = execute(Config.from_toml(tmp_path / "run" / "config.toml"))
    np.testing.assert_array_equal(again.f.W[0], run.f.W[0])
    done = apply(tmp_path / "run", str(counts))
    np.testing.assert_allclose(done.run.f.H[0], run.f.encode(COUNTS), rtol=1e-6)
    errors = [np.sum((X[kept] - run.f.basis(k) @ done.run.f.codes(k)) ** 2) for k in (1, 2)]
    np.testing.assert_allclose(done.errors, np.array(errors) / np.sum(X[kept] ** 2), rtol=1e-6)
    with (tmp_path / "run" / "components-layer-1.csv").open() as file:
        assert [int(row["feature"]) - 1 for row in csv.DictReader(file)] == kept.tolist()


def test_settings_of_counts_that_a_recipe_scales(counts, tmp_path):
    """They used to be lost: a run repeated from its own settings was of raw counts."""
    run = saved(tmp_path / "run", Config(str(counts), fit={**FIT, "recipe": "cells"}))
    config = Config.from_toml(tmp_path / "run" / "config.toml")
    assert (config.scale, config.max_features) == ("log", None)
    assert run.facts["scale"] == "log"
    np.testing.assert_array_equal(execute(config).f.W[0], run.f.W[0])


def test_genes_in_another_order_and_other_genes(table, tmp_path):
    config = Config(str(table), scale="log", max_features=KEPT, fit=FIT)
    run = saved(tmp_path / "run", config)
    kept = of_largest_variance(scaled(COUNTS, "log"))
    assert run.f.layout.features.tolist() == [f"gene{g}" for g in kept]
    expected = run.f.encode(COUNTS)
    _write(tmp_path / "turned.csv", range(39, -1, -1))
    done = apply(tmp_path / "run", str(tmp_path / "turned.csv"))
    np.testing.assert_allclose(done.run.f.H[0], expected, rtol=1e-6)
    assert done.run.f.layout.features.tolist() == run.f.layout.features.tolist()
    _write(tmp_path / "kept.csv", kept)
    with pytest.raises(ValueError, match="had 40: it lacks 'gene"):
        apply(tmp_path / "run", str(tmp_path / "kept.csv"))


def test_genes_kept_alone_will_do_where_nothing_is_scaled(table, tmp_path):
    run = saved(tmp_path / "run", Config(str(table), max_features=KEPT, fit=FIT))
    _write(tmp_path / "kept.csv", of_largest_variance(COUNTS)[::-1])
    done = apply(tmp_path / "run", str(tmp_path / "kept.csv"))
    np.testing.assert_allclose(done.run.f.H[0], run.f.encode(COUNTS), rtol=1e-6)


@pytest.mark.parametrize("how", [None, "unit"])
def test_bands_of_a_scene(tmp_path, how):
    cube = COUNTS.T.reshape(6, 10, 40) + 1
    cube[:, :, 7] = np.nan  # a band without data
    np.save(tmp_path / "cube.npy", cube)
    config = Config(str(tmp_path / "cube.npy"), scale=how, max_features=KEPT, fit=FIT)
    run = saved(tmp_path / "run", config)
    X = np.delete(COUNTS + 1, 7, axis=0)
    kept = of_largest_variance(scaled(X, how))
    assert run.f.layout.bands.tolist() == (kept + (kept >= 7) + 1).tolist()
    cube[:, :, 7] = 5.0
    np.save(tmp_path / "new.npy", cube)
    done = apply(tmp_path / "run", str(tmp_path / "new.npy"))
    np.testing.assert_allclose(done.run.f.H[0], run.f.encode(X), rtol=1e-6)


def test_true_components_have_the_features_kept(tmp_path):
    X, W = RNG.random((20, 3)) @ RNG.random((3, 50)), RNG.random((20, 3))
    np.save(tmp_path / "x.npy", X)
    np.savez(tmp_path / "w.npz", W=W)
    config = Config(str(tmp_path / "x.npy"), (str(tmp_path / "w.npz"),), max_features=KEPT, fit=FIT)
    np.testing.assert_array_equal(execute(config).truth[1].W, W[of_largest_variance(X)])
    held = replace(config, truth=(), fixed=str(tmp_path / "w.npz"))
    with pytest.raises(ConfigError, match=r"held only where all features are kept.*='all'"):
        execute(held)


def test_single_cells(tmp_path):
    """All genes are in the file of results, with zeros for those that were left out."""
    anndata, pandas = pytest.importorskip("anndata"), pytest.importorskip("pandas")
    names = [f"gene{g}" for g in range(40)]
    adata = anndata.AnnData(sparse.csr_matrix(COUNTS.T), var=pandas.DataFrame(index=names))
    adata.write_h5ad(tmp_path / "cells.h5ad")
    out = tmp_path / "out"
    options = ("--max-features", KEPT, "--ranks", "3,2", "--max-iter", 3, "-o", out)
    said = " ".join(cli("fit", tmp_path / "cells.h5ad", *options).output.split())
    assert "Recipe cells" in said
    assert "Data: scaled by log, 12 most variable of 40 features." in said
    run = load_run(out)
    kept = run.f.layout.kept
    np.testing.assert_array_equal(anndata.read_h5ad(out / "cells.h5ad").X.toarray(), COUNTS.T)
    for path in (out / "cells.h5ad", _without_the_source(tmp_path, run)):
        back = anndata.read_h5ad(path)
        assert back.var_names.tolist() == names
        np.testing.assert_array_equal(back.varm["deepmf_1"][kept], run.f.W[0])
        assert not back.varm["deepmf_1"][~kept].any()
        assert back.uns["deepmf"]["kept"].tolist() == kept.tolist()
    assert "scaled by log, 12 most variable of 40 features" in (out / "report.html").read_text()
    assert "12 most variable of 40 features" in cli("info", out).output
    cli("apply", out, tmp_path / "cells.h5ad", "-o", tmp_path / "applied")
    codes = anndata.read_h5ad(tmp_path / "applied" / "cells.h5ad").obsm["X_deepmf_1"]
    np.testing.assert_allclose(codes.T, run.f.encode(COUNTS), rtol=1e-4, atol=1e-6)


def _without_the_source(folder, run):
    (folder / "cells.h5ad").rename(folder / "moved.h5ad")
    (folder / "again").mkdir()
    save_run(folder / "again", run)
    (folder / "moved.h5ad").rename(folder / "cells.h5ad")
    return folder / "again" / "cells.h5ad"


def test_command_line_and_settings_in_files(counts, tmp_path):
    few = ("--ranks", "3", "--max-iter", 2, "--quiet", "--recipe", "cells")
    cli("fit", counts, *few, "--max-features", 7, "-o", tmp_path / "a")
    assert load_run(tmp_path / "a").f.W[0].shape == (7, 3)
    text = f'[input]\npath = "{counts}"\nmax_features = 9\n[fit]\nranks = [3]\nmax_iter = 2\n'
    (tmp_path / "s.toml").write_text(text)
    cli("fit", "--config", tmp_path / "s.toml", "-o", tmp_path / "b", "--quiet")
    assert load_run(tmp_path / "b").f.W[0].shape == (9, 3)
    options = ("--max-features", "all", "--quiet", "-o", tmp_path / "c")
    cli("fit", "--config", tmp_path / "s.toml", *options)
    assert load_run(tmp_path / "c").f.W[0].shape == (40, 3)
    both = ("--model", "layer-centric", "--model", "data-centric", "--jobs", 1)
    cli("compare", counts, *few, *both, "--max-features", 7, "-o", tmp_path / "d")
    assert load_run(tmp_path / "d" / "data-centric").f.W[0].shape == (7, 3)
    scan = ("--ranks", "2-3", "--splits", 2, "--jobs", 1, "--max-iter", 2)
    said = cli("scan", counts, *scan, "--max-features", 7, "-o", tmp_path / "e").output
    assert "7 features x 60 samples" in said
    assert "7 most variable of 40 features" in said


def test_scan_of_counts_that_are_not_to_be_scaled(counts, tmp_path, monkeypatch):
    """The recipe's own scaling is not done behind the user's back."""
    seen = []
    monkeypatch.setattr("deepmf.selection.scan.halves", lambda X, seed: seen.append(X) or 1 / 0)
    options = ("--scale", "none", "--recipe", "cells", "--ranks", "2-3", "-o", tmp_path / "s")
    CliRunner().invoke(app, ["scan", str(counts), *map(str, options)])
    np.testing.assert_array_equal(seen[0], COUNTS)


@pytest.mark.parametrize("given", ["0", "-1", "2.5", "many", "none"])
def test_a_number_that_makes_no_sense_is_refused_before_the_file_is_read(tmp_path, given):
    (tmp_path / "x.npy").write_text("no array")
    for command in ("fit", "scan", "compare"):
        options = (f"--max-features={given}", "--ranks", "3", "-o", tmp_path / "o")
        ranks = options if command != "scan" else (options[0], *options[3:])
        said = cli(command, tmp_path / "x.npy", *ranks, code=2).stderr
        assert said.startswith("deepmf: --max-features must be an integer of at least 1 or 'all'")
        assert "got 0." in said if given == "0" else f"got {given!r}." in said
    (tmp_path / "s.toml").write_text(f'[input]\npath = "x.npy"\nmax_features = "{given}"\n')
    said = cli("fit", "--config", tmp_path / "s.toml", "-o", tmp_path / "o", code=2).stderr
    assert f"--max-features must be an integer of at least 1 or 'all', got {given!r}" in said


def test_fits_with_other_features_are_not_compared(counts, tmp_path):
    for count in (7, 9):
        text = f'[input]\npath = "{counts}"\nmax_features = {count}\n[fit]\nranks = [3]\n'
        (tmp_path / f"n{count}.toml").write_text(text)
    both = ("--config", tmp_path / "n7.toml", "--config", tmp_path / "n9.toml")
    said = cli("compare", *both, "-o", tmp_path / "out", code=2).stderr
    assert "7 features x 60 samples, 'n9' 9 x 60; give all of them the same --max-features." in said
