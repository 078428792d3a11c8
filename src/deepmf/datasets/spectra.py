"""Reflectance spectra of six materials, 400 to 2500 nm, from their known absorption features.

Each spectrum is a smooth continuum multiplied by absorptions,
``R(w) = continuum(w) * prod_k exp(-depth_k exp(-((w - centre_k) / width_k)^2 / 2))``.
They are drawn by hand after published laboratory spectra, not measured.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["MATERIALS", "material_spectra"]

Array = NDArray[np.float64]
Feature = tuple[float, float, float]  # center (nm), width (nm), depth

MATERIALS = ("conifer", "broadleaf", "grass", "soil", "asphalt", "roof")


def material_spectra(wavelengths: Array) -> Array:
    """Spectra of MATERIALS as the columns of a matrix, one row per wavelength (nm)."""
    w = np.asarray(wavelengths, dtype=np.float64)
    columns = [
        _vegetation(w, visible=0.034, green=0.022, nir=0.32, water=1.35, edge=718, dry=0.0),
        _vegetation(w, visible=0.040, green=0.062, nir=0.52, water=0.92, edge=712, dry=0.02),
        _vegetation(w, visible=0.060, green=0.060, nir=0.43, water=0.40, edge=708, dry=0.18),
        _soil(w),
        _asphalt(w),
        _roof(w),
    ]
    return np.column_stack(columns)


def _vegetation(
    w: Array, visible: float, green: float, nir: float, water: float, edge: float, dry: float
) -> Array:
    """Leaves: chlorophyll's dip, green peak, red edge, plateau, and the water of their cells.

    ``dry`` is the share of dead matter, which fills the red dip and absorbs by cellulose instead.
    """
    peak = green * np.exp(-(((w - 553) / 34) ** 2) / 2)
    plateau = nir * _step(w, edge, 11) * (1 + 0.06 * _step(w, 830, 60))
    liquid = [
        (970, 32, 0.10),
        (1190, 48, 0.22),
        (1450, 62, 1.15),
        (1780, 60, 0.20),
        (1945, 75, 1.85),
        (2550, 260, 1.75),
        (1750, 480, 0.42),
    ]
    live = visible * (1 - 0.5 * _step(w, 640, 20)) + peak + plateau
    live = live * _absorb(w, [(c, s, water * d) for c, s, d in liquid])
    straw = 0.08 + 0.36 * _step(w, 720, 110)
    straw = straw * _absorb(
        w, [(1450, 60, 0.25), (1930, 65, 0.45), (2100, 60, 0.28), (2330, 60, 0.3)]
    )
    return (1 - dry) * live + dry * straw


def _soil(w: Array) -> Array:
    """Moist loam: rises to 2100 nm; ferric iron at 480 and 880, water, clay's hydroxyl at 2205."""
    continuum = 0.05 + 0.45 * (1 - np.exp(-(w - 380) / 800)) - 0.09 * _step(w, 2290, 80)
    features = [
        (480, 50, 0.32),
        (890, 80, 0.13),
        (1415, 45, 0.26),
        (1925, 58, 0.48),
        (2205, 26, 0.20),
    ]
    return continuum * _absorb(w, features)


def _asphalt(w: Array) -> Array:
    """Worn bitumen and gravel: dark, almost flat, hydrocarbons at 1720 and 2310."""
    continuum = 0.072 + 0.062 * (1 - np.exp(-(w - 380) / 190)) + 0.004 * (w - 400) / 2100
    return continuum * _absorb(w, [(1725, 30, 0.04), (1930, 40, 0.04), (2310, 38, 0.12)])


def _roof(w: Array) -> Array:
    """Weathered red concrete tile: iron's edge near 570, flat beyond 800, carbonate at 2340."""
    continuum = 0.105 + 0.125 * _step(w, 578, 22) + 0.085 * _step(w, 760, 55)
    features = [(870, 60, 0.06), (1420, 32, 0.04), (1930, 48, 0.10), (2340, 42, 0.20)]
    return continuum * _absorb(w, features)


def _step(w: Array, center: float, width: float) -> Array:
    """A smooth step from 0 to 1."""
    return 0.5 * (1 + np.tanh((w - center) / (2 * width)))


def _absorb(w: Array, features: Sequence[Feature]) -> Array:
    """Transmission through absorptions of Gaussian profile."""
    depth = np.zeros_like(w)
    for center, width, strength in features:
        depth += strength * np.exp(-(((w - center) / width) ** 2) / 2)
    return np.exp(-depth)
