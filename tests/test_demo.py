from __future__ import annotations

import pytest

from deepmf import Factorization
from deepmf.cli import demo
from deepmf.datasets import simulated_scene

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo")
    assert demo.main(["--out", str(out)]) == 0
    return out


def test_demo_recovers_the_scene(folder):
    scene = simulated_scene()
    lines = (folder / "summary.md").read_text().splitlines()
    rows = {line.split()[1]: line.split("|")[2:5] for line in lines if "MF |" in line}
    mrsa = {label: [float(x) for x in row] for label, row in rows.items()}
    assert mrsa["LC-DMF"][0] < 3
    assert mrsa["LC-DMF"][1] < 5
    assert mrsa["Tri-DMF"][0] > 3 * mrsa["LC-DMF"][0]
    assert mrsa["LC-DMF"][1] < mrsa["DC-DMF"][1]
    f = Factorization.load(folder / "LC-DMF" / "factors.npz")
    assert f.reconstruct(1).shape == scene.X.shape


def test_demo_leaves_a_page_that_stands_alone(folder):
    page = (folder / "report.html").read_text()
    assert "A simulated village in three layers" in page
    assert "src=" not in page.split('type="application/json"')[0]
    for name in ("hierarchy", "spectra-layer-1", "errors"):
        assert (folder / "figures" / f"{name}.pdf").stat().st_size > 1000


def test_demo_replaces_its_own_folder_only(folder, tmp_path, capsys):
    (tmp_path / "mine").write_text("keep")
    assert demo.main(["--out", str(folder)]) == 2
    assert "pass --overwrite" in capsys.readouterr().err
    assert demo.main(["--out", str(tmp_path), "--overwrite"]) == 2
    assert "not made by deepmf" in capsys.readouterr().err
    assert (tmp_path / "mine").read_text() == "keep"


def test_a_folder_that_cannot_be_made_is_said(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert demo.main(["--out", str(tmp_path / "file")]) == 2
    assert "file" in capsys.readouterr().err
