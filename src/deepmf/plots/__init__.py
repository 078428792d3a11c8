"""Pictures: functions that take a factorization and return a Matplotlib figure."""

from deepmf.plots.errors import plot_errors
from deepmf.plots.hierarchy import plot_hierarchy
from deepmf.plots.spectra import plot_spectra

__all__ = ["plot_errors", "plot_hierarchy", "plot_spectra"]
