"""Measures of a factorization: spectral angles, matching, sparsity, links, errors, residuals.

Every matrix is in the paper's orientation: a column is a spectrum, a component, a data point.
"""

from deepmf.metrics.angles import mrsa, sad
from deepmf.metrics.errors import data_errors, layer_errors
from deepmf.metrics.hierarchy import links
from deepmf.metrics.matching import Matching, match
from deepmf.metrics.residuals import relative_residuals, squared_residuals
from deepmf.metrics.sparsity import hoyer

__all__ = [
    "Matching",
    "data_errors",
    "hoyer",
    "layer_errors",
    "links",
    "match",
    "mrsa",
    "relative_residuals",
    "sad",
    "squared_residuals",
]
