"""Pictures: functions that take a factorization and return a Matplotlib figure."""

from deepmf.plots.errors import plot_errors
from deepmf.plots.hierarchy import plot_hierarchy
from deepmf.plots.maps import plot_maps
from deepmf.plots.pictures import plot_pictures
from deepmf.plots.spectra import plot_spectra

__all__ = ["plot_errors", "plot_hierarchy", "plot_maps", "plot_pictures", "plot_spectra"]
