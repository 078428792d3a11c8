"""Measures of a factorization, by itself, against a truth and against classes of samples.

Every matrix is in the paper's orientation: a column is a spectrum, a component, a data point.
"""

from deepmf.metrics.abundances import AbundanceErrors, abundance_rmse
from deepmf.metrics.angles import mrsa, sad
from deepmf.metrics.clustering import ClusterScores, accuracy, ari, cluster_scores, nmi, purity
from deepmf.metrics.errors import data_errors, layer_errors
from deepmf.metrics.hierarchy import HierarchyAgreement, hierarchy_agreement, links
from deepmf.metrics.matching import Matching, match
from deepmf.metrics.residuals import relative_residuals, squared_residuals
from deepmf.metrics.sparsity import hoyer
from deepmf.metrics.topics import Coherence, npmi_coherence, topic_diversity

__all__ = [
    "AbundanceErrors",
    "ClusterScores",
    "Coherence",
    "HierarchyAgreement",
    "Matching",
    "abundance_rmse",
    "accuracy",
    "ari",
    "cluster_scores",
    "data_errors",
    "hierarchy_agreement",
    "hoyer",
    "layer_errors",
    "links",
    "match",
    "mrsa",
    "nmi",
    "npmi_coherence",
    "purity",
    "relative_residuals",
    "sad",
    "squared_residuals",
    "topic_diversity",
]
