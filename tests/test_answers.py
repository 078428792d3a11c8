"""Answers of recipes on sets that need no files, beside flat NMF."""

from __future__ import annotations

import json

import pytest

answers = pytest.importorskip("benchmarks.answers.__main__")


def test_recipes_answer_better_than_flat_nmf(tmp_path):
    names = ["simulated (6,4,2)", "synthetic .025 (6,3)"]
    entries = [e for name in names for e in answers.compare(name, 1, ["deepmf, recipe", "NMF"])]
    assert [e.layer for e in entries] == [1, 2, 3, 1, 2]
    for entry in entries:
        ours, theirs = (entry.cells[m].scores[0] for m in ("deepmf, recipe", "NMF"))
        assert entry.measure == "MRSA"
        assert ours < [1, 3, 7][entry.layer - 1]
        assert ours < theirs / 2
    answers.report.write(tmp_path, {"machine": "any"}, entries, [], quick=True)
    assert len(json.loads((tmp_path / "answers.json").read_text())["entries"]) == 5
    assert names[1] in (tmp_path / "answers.md").read_text()
