"""Every picture as PDF and SVG: no warnings, text that is text."""

from __future__ import annotations

import dataclasses
import io
import pickle
import re
import subprocess
import sys
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest

from deepmf.data.layout import Layout
from deepmf.plots import (
    plot_errors,
    plot_hierarchy,
    plot_maps,
    plot_pictures,
    plot_residual,
    plot_spectra,
    plot_words,
)

DRAW = {
    "spectra": lambda get: plot_spectra(get("holed")[1], 1, names=["a", "b & c", "$x$"]),
    "maps": lambda get: plot_maps(get("holed")[1], 1),
    "maps, shared scale": lambda get: plot_maps(get("of_scene"), 1, scale="shared", width=3.5),
    "hierarchy of a scene": lambda get: plot_hierarchy(get("of_scene")),
    "hierarchy of pictures": lambda get: plot_hierarchy(get("many")),
    "hierarchy of words": lambda get: plot_hierarchy(get("topics")[1]),
    "hierarchy of curves": lambda get: plot_hierarchy(get("bare")[1]),
    "pictures": lambda get: plot_pictures(get("signed_faces")[1], 1),
    "words": lambda get: plot_words(get("topics")[1], 1),
    "errors": lambda get: plot_errors({"a": get("of_scene"), "b": get("bare")[1]}),
    "residual, map": lambda get: plot_residual(get("holed")[1], get("holed")[0]),
    "residual, histogram": lambda get: plot_residual(get("topics")[1], get("topics")[0]),
}


@pytest.fixture(params=DRAW)
def fig(request):
    return DRAW[request.param](request.getfixturevalue)


def saved(fig, form):
    file = io.BytesIO()
    fig.savefig(file, format=form)
    return file.getvalue()


def test_pdf_fonts_can_be_edited(fig):
    pdf = saved(fig, "pdf")
    assert b"/CIDFontType2" in pdf
    assert b"/Type3" not in pdf


def test_svg_text_is_text(fig):
    svg = saved(fig, "svg").decode()
    assert "<text" in svg
    assert "layer" in " ".join(re.findall(r"<text[^>]*>([^<]*)", svg)).lower()
    assert svg == saved(fig, "svg").decode() or "dc:date" in svg


def test_a_dollar_is_a_dollar(topics):
    """Names are no formulas: this one would be a wrong one."""
    X, f = topics
    odd = r"$\bad{$"
    layout = Layout(features=np.array([odd] * 30), samples=np.array([odd] * 50))
    f = dataclasses.replace(f, layout=layout)
    names = [odd] * 5
    for fig in (
        plot_words(f, 1, names=names),
        plot_spectra(f, 1, names=names),
        plot_hierarchy(f, names=[names, None]),
        plot_maps(f, 1, image=(10, 5), names=names),
        plot_pictures(f, 1, image=(6, 5), names=names),
        plot_residual(f, X),
    ):
        assert saved(fig, "svg").decode().count(odd) >= 1


def test_names_of_any_script_are_drawn_without_a_word(holed):
    for kind in ("pdf", "png", "svg"):
        assert saved(plot_maps(holed[1], 1, names=["森", "\x1b[31m", "a\nb"]), kind)


def test_lines_stay_lines(bare):
    """Nothing but images becomes pixels."""
    assert "<image" not in saved(plot_errors(bare[1]), "svg").decode()


def test_images_have_300_dpi(of_scene):
    pdf = saved(plot_maps(of_scene, 1), "pdf")
    widths = [int(w) for w in re.findall(rb"/Width (\d+)", pdf)]
    assert max(widths) > 300


def test_the_global_style_stays_as_it_is(of_scene):
    before = dict(mpl.rcParams)
    saved(plot_errors(of_scene), "pdf")
    assert dict(mpl.rcParams) == before


def test_figures_can_be_pickled(of_scene):
    again = pickle.loads(pickle.dumps(plot_spectra(of_scene, 1)))
    assert len(again.axes) == 6


def test_panels_fit_the_column(fig):
    assert fig.get_size_inches()[0] <= 7.2 + 1e-9
    fig.draw_without_rendering()
    titles = [ax.title.get_window_extent() for ax in fig.axes if ax.get_title()]
    for a, b in pairwise(titles):
        assert a.x1 <= b.x0 or a.y0 != b.y0


def test_matplotlib_is_loaded_by_the_first_picture_only():
    code = "import sys, deepmf.plots; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=120, check=False).returncode == 0


def test_a_notebook_shows_figures(fig):
    png = fig._repr_png_()
    assert png.startswith(b"\x89PNG")
