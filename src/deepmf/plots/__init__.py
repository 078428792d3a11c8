"""Pictures: functions that take a factorization or a fitted estimator and return a figure.

They read wavelengths, gaps, picture shapes and names from ``f.layout``; arguments override it.
"""

from deepmf.plots.errors import plot_errors
from deepmf.plots.hierarchy import plot_hierarchy
from deepmf.plots.maps import plot_maps
from deepmf.plots.pictures import plot_pictures
from deepmf.plots.residual import plot_residual, relative_residual
from deepmf.plots.scan import plot_scan
from deepmf.plots.spectra import plot_spectra
from deepmf.plots.top_features import plot_words, top_features

__all__ = [
    "plot_errors",
    "plot_hierarchy",
    "plot_maps",
    "plot_pictures",
    "plot_residual",
    "plot_scan",
    "plot_spectra",
    "plot_words",
    "relative_residual",
    "top_features",
]
