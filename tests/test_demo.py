from __future__ import annotations

import pytest

from deepmf import Factorization, demo
from deepmf.datasets import simulated_scene

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
