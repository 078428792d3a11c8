"""Warnings point at the line of the user's code that they are about."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from deepmf import DeepMF, factorize

X = np.random.default_rng(0).random((12, 9))
CUT = {"max_iter": 2, "tol": 1e-9}

CALLS = {
    "factorize": lambda ranks: factorize(X, ranks, **CUT),
    "fit": lambda ranks: DeepMF(ranks, **CUT).fit(X),
    "fit_transform": lambda ranks: DeepMF(ranks, **CUT).fit_transform(X),
    "named": lambda ranks: DeepMF(ranks, **CUT).set_output(transform="pandas").fit_transform(X),
    "pipeline": lambda ranks: make_pipeline(MinMaxScaler(), DeepMF(ranks, **CUT)).fit(X),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_warnings_point_at_the_users_line(call):
    with pytest.warns(UserWarning, match="increase|max_iter") as caught:
        call([2, 3])
    assert [w.category for w in caught] == [UserWarning, ConvergenceWarning]
    for warning in caught:
        assert warning.filename == __file__
        assert warning.lineno == call.__code__.co_firstlineno


def test_warnings_of_a_search_point_at_the_users_line():
    search = GridSearchCV(DeepMF(2, **CUT), {"layer": [1]}, cv=2)
    with pytest.warns(ConvergenceWarning, match="max_iter") as caught:
        search.fit(X)
    assert len(caught) == 3
    assert {w.filename for w in caught} == {__file__}
