"""Sphinx configuration of the site (make docs)."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl

import deepmf

mpl.use("agg")
sys.path.insert(0, str(Path(__file__).parent))

from own_figures import own_figures

project = "deepmf"
author = copyright = "the deepmf developers"
version = release = deepmf.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "numpydoc",
    "mathml",
]
html_math_renderer = "mathml"
myst_update_mathjax = False
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_timeout = 300
nb_execution_raise_on_error = True
exclude_patterns = ["_build", "figures", "gallery/*.ipynb", "jupyter_execute"]
autosummary_generate = True
numpydoc_show_class_members = False
autodoc_typehints = "none"
suppress_warnings = ["config.cache", "myst.xref_missing"]

templates_path = ["_templates"]
html_theme = "pydata_sphinx_theme"
html_title = "deepmf"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "show_prev_next": False,
    "navbar_align": "left",
    "header_links_before_dropdown": 9,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {page: [] for page in ("index", "tutorial", "choosing", "files")}

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "image_scrapers": (own_figures,),
    "download_all_examples": False,
    "remove_config_comments": True,
    "min_reported_time": 5,
    "within_subsection_order": "FileNameSortKey",
    "only_warn_on_example_error": False,
    "abort_on_example_error": True,
}
