"""Every picture takes a fitted estimator as well as its factorization."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from deepmf import DeepMF, plots

SHORT = {"max_iter": 3, "tol": 0}
WORDS = [f"word{i}" for i in range(12)]


@pytest.fixture(scope="module")
def fitted(bare):
    return bare[0], DeepMF([4, 2], **SHORT).fit(bare[0].T)


def texts(fig):
    """All that is written."""
    return [text.get_text() for ax in fig.axes for text in ax.texts]


DRAW = {
    "errors": plots.plot_errors,
    "errors of several": lambda f: plots.plot_errors({"a": f, "b": f}),
    "hierarchy": plots.plot_hierarchy,
    "maps": lambda f: plots.plot_maps(f, 1, image=(5, 8)),
    "pictures": lambda f: plots.plot_pictures(f, 1, image=(3, 4)),
    "spectra": lambda f: plots.plot_spectra(f, 1),
    "words": lambda f: plots.plot_words(f, 2, features=WORDS),
}


@pytest.mark.parametrize("draw", DRAW.values(), ids=DRAW)
def test_the_same_picture(fitted, draw, tmp_path):
    model = fitted[1]
    for name, f in (("a.png", model), ("b.png", model.factorization_)):
        draw(f).savefig(tmp_path / name, dpi=40)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_the_residual_of_an_estimator_takes_samples_as_rows(fitted, kind):
    X, model = fitted
    expected = plots.relative_residual(model.factorization_, X)
    np.testing.assert_allclose(plots.relative_residual(model, kind(X.T)), expected, atol=1e-7)
    assert "samples" in plots.plot_residual(model, kind(X.T)).axes[0].get_ylabel()
    with pytest.raises(ValueError, match="shape"):
        plots.relative_residual(model, X)


def test_names_of_features_for_bare_matrices(fitted):
    shown = texts(plots.plot_hierarchy(fitted[1], features=WORDS))
    for layer in (1, 2):
        for top in plots.top_features(fitted[1], layer, 4, WORDS):
            assert {word for word, _ in top} <= set(shown)
    with pytest.raises(ValueError, match="2 names were given for 12 features"):
        plots.plot_hierarchy(fitted[1], features=["a", "b"])


def test_what_is_no_fit():
    with pytest.raises(TypeError, match="DeepMF is not fitted yet; call its fit"):
        plots.plot_hierarchy(DeepMF())
    with pytest.raises(TypeError, match="Expected a Factorization or a fitted DeepMF, got ndarray"):
        plots.plot_words(np.ones((3, 3)), 1)
