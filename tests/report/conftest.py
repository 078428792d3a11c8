"""Small runs of every kind, and a browser."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest

from deepmf import factorize
from deepmf.data.dataset import Truth
from deepmf.data.layout import Layout
from deepmf.datasets import simulated_scene
from deepmf.runs.run import Run

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1400,1000",
)


def fitted(X, ranks, layout, *, name="data", truth=(), residual=True, sweeps=5, **settings):
    """A run of a few sweeps on X."""
    f = factorize(X, ranks, max_iter=sweeps, tol=0, random_state=0, **settings)
    left = np.linalg.norm(X - f.W[0] @ f.H[0], axis=0) / np.linalg.norm(X, axis=0)
    return Run(
        name,
        replace(f, layout=layout),
        config='[fit]\nranks = "6 4 2"\n',
        facts={"file": "data.npz"},
        truth={k: Truth(W, names) for k, (W, names) in enumerate(truth, start=1)},
        residual=left if residual else None,
    )


@pytest.fixture(scope="session")
def scene():
    """Builds runs on a simulated scene of 32 x 40 pixels with its truth."""
    data = simulated_scene(rows=32, cols=40, bands=30)

    def make(ranks=(6, 4, 2), *, layout=None, truth=True, **settings):
        known = list(zip(data.W, data.names)) if truth else ()
        return fitted(
            data.X,
            list(ranks),
            layout or data.layout,
            name="village",
            truth=known[: len(ranks)],
            **settings,
        )

    make.data = data
    return make


@pytest.fixture(scope="session")
def table():
    """Builds runs on a random matrix of m rows and 60 columns."""

    def make(m=30, ranks=(5, 2), *, features=None, samples=None, **settings):
        X = np.random.default_rng(1).random((m, 60)) ** 3
        return fitted(X, list(ranks), Layout(features=features, samples=samples), **settings)

    return make


@pytest.fixture(scope="session")
def pictures():
    """A run whose components are pictures of 8 x 6 pixels."""
    X = np.random.default_rng(2).random((48, 50)) ** 2
    return fitted(X, [7, 3], Layout(image_shape=(8, 6), order="F", pixels="rows"), name="faces")


@pytest.fixture(scope="session")
def chrome(tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("chromium and chromedriver are not installed")
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chrome')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()
