from __future__ import annotations

import pytest

from deepmf import Factorization
from deepmf.datasets import simulated_scene

pytest.importorskip("matplotlib")
typer_testing = pytest.importorskip("typer.testing")


def demo(*arguments):
    from deepmf.cli.app import app

    return typer_testing.CliRunner().invoke(app, ["demo", *map(str, arguments)])


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo")
    said = demo("--out", out)
    assert said.exit_code == 0, said.output
    return out, said.stdout


@pytest.fixture(scope="module")
def folder(done):
    return done[0]


def test_demo_says_what_it_found(done):
    folder, said = done
    lines = said.splitlines()
    fits = [line for line in lines if " sweeps in " in line]
    assert [line.split(":")[0].strip() for line in fits] == ["MMF", "LC-DMF", "DC-DMF", "Tri-DMF"]
    assert (folder / "summary.md").read_text() in said
    assert sum(line.startswith("- L2-") for line in lines) == 4
    assert sum(line.startswith("- L3-") for line in lines) == 2
    assert str(folder / "report.html") in lines[-1]


def test_demo_recovers_the_scene(folder):
    scene = simulated_scene()
    lines = (folder / "summary.md").read_text().splitlines()
    rows = {line.split()[1]: line.split("|")[2:5] for line in lines if "MF |" in line}
    mrsa = {label: [float(x) for x in row] for label, row in rows.items()}
    assert mrsa["LC-DMF"][0] < 1
    assert mrsa["LC-DMF"][1] < 2
    assert mrsa["LC-DMF"][2] < 4
    assert mrsa["Tri-DMF"][0] > 3 * mrsa["LC-DMF"][0]
    assert mrsa["LC-DMF"][1] < mrsa["DC-DMF"][1]
    assert mrsa["LC-DMF"][1] < min(row[1] for label, row in mrsa.items() if label != "LC-DMF") / 2
    f = Factorization.load(folder / "LC-DMF" / "factors.npz")
    assert f.reconstruct(1).shape == scene.X.shape


def test_demo_shows_a_taxonomy(folder):
    found = {}
    for line in (folder / "summary.md").read_text().splitlines():
        if line.startswith("- L"):
            parent, children = line[2:].split(" = ")
            found[parent.split()[1]] = {child.split()[1] for child in children.split(", ")}
    assert found == {
        "forest": {"conifer", "broadleaf"},
        "grass": {"grass"},
        "soil": {"soil"},
        "built": {"asphalt", "roof"},
        "vegetation": {"forest", "grass"},
        "mineral": {"soil", "built"},
    }


def test_demo_leaves_a_page_that_stands_alone(folder):
    page = (folder / "report.html").read_text()
    assert "A simulated village in three layers" in page
    assert "src=" not in page.split('type="application/json"')[0]
    for name in ("hierarchy", "spectra-layer-1", "errors"):
        assert (folder / "figures" / f"{name}.pdf").stat().st_size > 1000


def test_demo_replaces_its_own_folder_only(folder, tmp_path):
    (tmp_path / "mine").write_text("keep")
    said = demo("--out", folder)
    assert (said.exit_code, "pass --overwrite" in said.stderr) == (2, True)
    said = demo("--out", tmp_path, "--overwrite")
    assert (said.exit_code, "not made by deepmf" in said.stderr) == (2, True)
    assert (tmp_path / "mine").read_text() == "keep"


def test_a_folder_that_cannot_be_made_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    said = demo("--out", tmp_path / "file")
    assert (said.exit_code, "file" in said.stderr) == (2, True)
