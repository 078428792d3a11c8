"""The file: whole, inert, small."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from deepmf.data.layout import Layout
from deepmf.report import Ranking, page, write_report

EVIL = '</script><img src=x onerror="document.title=1"><!-- {{data}} {{script}} \u2028 & \ud800'


def data_in(text):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    return json.loads(found[1])


def test_writes_one_file_without_addresses(scene, tmp_path):
    target = write_report(tmp_path / "report.html", [scene()])
    text = target.read_text(encoding="utf-8")
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    assert "default-src 'none'" in text
    assert "<title>village</title>" in text
    # the one address is the name of SVG's elements, which nothing fetches
    assert set(re.findall(r"https?://[^\"' ]+", text)) == {"http://www.w3.org/2000/svg"}
    assert "innerHTML" not in text
    assert data_in(text)["runs"][0]["label"] == "layer-centric"


def test_no_text_becomes_markup(table, tmp_path):
    run = table(features=np.array([EVIL] * 30), samples=np.array([EVIL] * 60))
    run = replace(run, name=EVIL, config=EVIL, facts={EVIL: EVIL}, notes=[EVIL])
    ranking = Ranking([EVIL], [[EVIL], [EVIL]])
    target = write_report(
        tmp_path / "r.html", [run, run], title=EVIL, ranking=ranking, labels=[EVIL, EVIL]
    )
    text = target.read_bytes().decode("utf-8")
    assert text.count("</script>") == 2
    assert "<img" not in text.split("<script>")[0]
    assert "\u2028" not in text.split("<body>")[1].split('id="data">')[1].split("<")[0]
    content = data_in(text)
    assert content["runs"][0]["notes"] == [EVIL]
    assert content["runs"][0]["layers"][0]["top"][0][0][0] == EVIL


def big_scene(scene, side):
    """A run whose maps are side x side noise, which nothing compresses."""
    run = scene()
    codes = np.random.default_rng(0).random((6, side * side))
    f = replace(run.f, H=[codes, *run.f.H[1:]], layout=Layout(image_shape=(side, side), order="F"))
    return replace(run, f=f, residual=codes[0], truth={})


def test_a_full_scene_stays_below_three_megabytes(scene, tmp_path):
    target = write_report(tmp_path / "big.html", [big_scene(scene, 307)])
    assert target.stat().st_size < 3e6
    assert data_in(target.read_text(encoding="utf-8"))["picture"]["block"] == 1


def test_maps_are_halved_until_the_page_fits(scene, tmp_path):
    target = write_report(tmp_path / "many.html", [big_scene(scene, 307)] * 8)
    assert target.stat().st_size < 10e6
    assert data_in(target.read_text(encoding="utf-8"))["picture"]["block"] == 2


def test_twenty_thousand_rows_without_names(table, tmp_path):
    target = write_report(tmp_path / "long.html", [table(m=20_000, ranks=(30, 10), sweeps=1)])
    assert target.stat().st_size < 1e6


def test_labels_of_equal_models_are_told_apart(scene, tmp_path):
    text = write_report(tmp_path / "r.html", [scene(), scene()]).read_text(encoding="utf-8")
    assert [r["label"] for r in data_in(text)["runs"]] == ["layer-centric 1", "layer-centric 2"]


def test_bad_input_gets_a_sentence(scene, table, tmp_path):
    path = tmp_path / "r.html"
    with pytest.raises(ValueError, match="at least one run"):
        write_report(path, [])
    with pytest.raises(ValueError, match="2 labels were given for 1 runs"):
        write_report(path, [scene()], labels=["a", "b"])
    with pytest.raises(ValueError, match="different data"):
        write_report(path, [scene(), table()])
    with pytest.raises(ValueError, match="residual has shape"):
        write_report(path, [replace(scene(), residual=np.ones(3))])
    with pytest.raises(ValueError, match="one per column"):
        write_report(path, [scene()], ranking=Ranking(["run", "x"], [["a"]]))
    with pytest.raises(FileNotFoundError, match="does not exist"):
        write_report(tmp_path / "none" / "r.html", [scene()])
    assert not path.exists()


def test_scripts_cannot_end_themselves():
    for name in page._SCRIPTS:
        assert "</script" not in page._package_file(name)
