"""Names from files are content: never a path, never markup."""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.importorskip("rasterio")
pytest.importorskip("anndata")
from seeds import evil_run

from deepmf.data.provenance import Dimensions, Source
from deepmf.io import FORMATS
from deepmf.report import write_report
from deepmf.runs.store import load_run, save_run

NAMES = [
    "../../x",
    "/etc/x",
    "..\\x",
    "a/b",
    "CON",
    "x" * 5000,
    "a\nb,\"c'",
    "=1+1",
    "日本 \u202e\u2028",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "javascript:alert(1)",
    "https://example.com/x.js",
    "\" onload='alert(1)",
    "{{script}}",
    "&lt;script&gt;",
]


@pytest.mark.parametrize("kind", FORMATS, ids=lambda kind: kind.name)
def test_results_stay_in_their_folder(tmp_path, kind):
    for k, name in enumerate(NAMES[:8]):
        run = evil_run(name)
        layout = replace(
            run.f.layout,
            source=Source(kind.name, name),
            dimensions=Dimensions(("y", "component"), (name,)),
        )
        run = replace(run, f=replace(run.f, layout=layout))
        folder = tmp_path / f"in/the/run{k}"
        folder.mkdir(parents=True)
        try:
            save_run(folder, run)
        except (ValueError, OSError):
            pass  # a name that the format cannot hold
        else:
            assert load_run(folder).name == name
        assert [p.name for p in tmp_path.iterdir()] == ["in"]
        assert [p.name for p in (tmp_path / "in").iterdir()] == ["the"]
        assert {p.name for p in folder.parent.iterdir()} == {f"run{i}" for i in range(k + 1)}
    assert not Path("/etc/x").exists()


class Tags(HTMLParser):
    """Elements and attributes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[str, ...]]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, tuple(name for name, _ in attrs)))


def test_no_name_adds_an_element_to_the_report(tmp_path):
    plain = write_report(tmp_path / "plain.html", [evil_run("plain")]).read_text("utf-8")
    for name in NAMES:
        text = write_report(tmp_path / "r.html", [evil_run(name)], title=name).read_text("utf-8")
        assert Tags(text).found == Tags(plain).found
        data = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1]
        assert not re.search(r"[<>&\u2028]", data)


def test_the_policy_allows_the_page_its_own_script_alone(tmp_path):
    text = write_report(tmp_path / "r.html", [evil_run("x")]).read_text("utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    script = re.search(r"<script>(.*?)</script>", text, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    parts = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert parts["default-src"] == "'none'"
    assert parts["script-src"] == f"'sha256-{digest}'"
    assert not re.search(r" on\w+=", re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL))
