from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from deepmf import DeepMF


@parametrize_with_checks([DeepMF((3, 2), max_iter=50, tol=1e-3), DeepMF(2, model="multilayer")])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn_conformance(estimator, check):
    check(estimator)
