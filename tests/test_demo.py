from __future__ import annotations

import numpy as np
import pytest

from deepmf import Factorization, demo, factorize
from deepmf.datasets import simulated_scene
from deepmf.plots import plot_errors, plot_hierarchy, plot_spectra

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo")
    assert demo.main(["--out", str(out)]) == 0
    return out


def test_demo_recovers_the_scene(folder):
    scene = simulated_scene()
    rows = [line for line in (folder / "summary.md").read_text().splitlines() if "DMF (" in line]
    lc, dc, tri = ([float(x) for x in row.split("|")[2:8]] for row in rows)
    assert lc[0] < 3
    assert lc[1] < 5
    assert tri[0] > 3 * lc[0]
    assert lc[1] < dc[1]
    f = Factorization.load(folder / "layer-centric.npz")
    assert f.reconstruct(1).shape == scene.X.shape


def test_demo_leaves_a_page_that_stands_alone(folder):
    page = (folder / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 5
    assert "http://" not in page
    assert "https://" not in page
    for name in ("hierarchy", "spectra-layer-1", "errors"):
        assert (folder / f"{name}.pdf").stat().st_size > 1000


def test_a_folder_that_cannot_be_made_is_said(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert demo.main(["--out", str(tmp_path / "file")]) == 2
    assert "file" in capsys.readouterr().err


def test_figures_draw_what_they_are_given():
    scene = simulated_scene(rows=32, cols=32, bands=20)
    f = factorize(scene.X, [6, 4, 2], init="snpa", max_iter=5, tol=0)
    hierarchy = plot_hierarchy(f, scene.image, scene.names)
    drawn = [ax.images[0].get_array() for ax in hierarchy.axes if ax.images]
    assert len(drawn) == 12
    shown = {ax.get_title(): ax.images[0].get_array() for ax in hierarchy.axes[:6]}
    np.testing.assert_allclose(shown["soil"], scene.image(f.codes(1)[3]))
    lines = hierarchy.axes[-1].lines
    expected = sum(int((f.links(layer) >= 0.1).sum()) for layer in (2, 3))
    assert len(lines) == expected

    spectra = plot_spectra(f, 2, scene.wavelengths, scene.W[1], scene.names[1])
    visible = [ax for ax in spectra.axes if ax.get_visible()]
    assert [ax.get_title() for ax in visible] == scene.names[1]
    x, y = visible[0].lines[0].get_data()
    np.testing.assert_allclose(x, scene.wavelengths)
    np.testing.assert_allclose(y, f.W[1][:, 0] / f.W[1][:, 0].mean())

    errors = plot_errors({"LC": f})
    np.testing.assert_allclose(errors.axes[1].lines[0].get_ydata(), f.history.layer_errors[:, 1])


def test_wrong_number_of_names_is_said():
    scene = simulated_scene(rows=32, cols=32, bands=20)
    f = factorize(scene.X, 3, max_iter=1, tol=0)
    with pytest.raises(ValueError, match="2 names were given for 3 components"):
        plot_spectra(f, 1, names=["a", "b"])
