"""What a run derives from its fit, it derives once."""

from __future__ import annotations

from collections import Counter

import pytest

from deepmf import unmixing
from deepmf.report import write_report
from deepmf.runs import Config, execute, run, save_run
from deepmf.runs.figures import draw_figures

pytest.importorskip("matplotlib")
pytest.importorskip("tomli_w")


def test_files_page_and_figures_unmix_and_match_each_layer_once(tmp_path, monkeypatch):
    settings = {"ranks": [6, 4, 2], "max_iter": 2, "tol": 0.0, "init": "random"}
    done = execute(Config("dataset:simulated", fit=settings))
    calls = Counter()

    def counted(module, name):
        function = getattr(module, name)

        def wrapper(*arguments):
            calls[name] += 1
            return function(*arguments)

        monkeypatch.setattr(module, name, wrapper)

    counted(unmixing, "mixture")
    counted(run, "match")
    (tmp_path / "run").mkdir()
    save_run(tmp_path / "run", done)
    write_report(tmp_path / "report.html", [done])
    draw_figures(tmp_path, done)
    assert calls == {"mixture": 3, "match": 3}
