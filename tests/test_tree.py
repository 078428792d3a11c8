"""The hierarchy as text."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from deepmf import DeepMF, factorize
from deepmf.data.layout import Layout
from deepmf.hierarchy.tree import draw_tree, families

LINKS = [
    np.array([[0.9, 0.2, 0.0, 0.6], [0.1, 0.8, 1.0, 0.4], [0.0, 0.0, 0.0, 0.0]]),
    np.array([[0.3, 0.5, 1.0], [0.7, 0.5, 0.0]]),
]


def test_each_part_stands_with_the_component_of_its_largest_share():
    assert families(LINKS[0]) == [[(0, 0.9), (3, 0.6)], [(2, 1.0), (1, 0.8)], []]


def test_lines():
    names = [list("abcd"), list("ABC"), ["one", "two"]]
    words = [["", "sea", "", ""], [""] * 3, ["sun, sky", ""]]
    assert draw_tree(LINKS, names, words).splitlines() == [
        "one  sun, sky",
        "├── C (100%)",
        "└── B (50%)",
        "    ├── c (100%)",
        "    └── b (80%)  sea",
        "two",
        "└── A (70%)",
        "    ├── a (90%)",
        "    └── d (60%)",
    ]


X = np.random.default_rng(0).random((6, 20))
WORDS = [f"word{i}" for i in range(6)]


@pytest.fixture(scope="module")
def f():
    return factorize(X, [4, 2], max_iter=5, tol=0)


def test_every_component_has_its_line(f):
    lines = f.tree().splitlines()
    assert sorted(line.split()[-2 if "%" in line else 0] for line in lines) == [
        "L1-1",
        "L1-2",
        "L1-3",
        "L1-4",
        "L2-1",
        "L2-2",
    ]
    assert f.tree(labels=[None, ["sea", "land"]]).startswith("sea\n├── ")
    assert factorize(X, 2, max_iter=5, tol=0).tree() == "L1-1\nL1-2"


def test_features_are_named_where_they_have_names(f):
    first = [WORDS[i] for i in np.argsort(-f.W[1][:, 0])[:2]]
    named = replace(f, layout=Layout(features=np.array(WORDS)))
    assert named.tree(top=2).startswith(f"L2-1  {', '.join(first)}\n")
    assert f.tree(top=2, features=WORDS) == named.tree(top=2)
    waves = replace(f, layout=Layout(wavelengths=np.arange(6.0)))
    assert waves.tree() == f.tree()


def test_of_an_estimator():
    model = DeepMF([4, 2], max_iter=5, tol=0).fit(X.T)
    assert model.tree(features=WORDS) == model.factorization_.tree(features=WORDS)


def test_bad_names(f):
    with pytest.raises(ValueError, match="3 lists of names were given for 2 layers"):
        f.tree(labels=[None] * 3)
    for labels in ("ab", 5):
        with pytest.raises(ValueError, match=f"list of lists, one per layer, got {labels!r}"):
            f.tree(labels)
    for listed in ("abcd", 5):
        with pytest.raises(
            ValueError, match=f"names of 4 components must be a list, got {listed!r}"
        ):
            f.tree(labels=[listed])
    with pytest.raises(ValueError, match="1 names were given for 4 components"):
        f.tree(labels=[["a"]])
    with pytest.raises(ValueError, match="2 names were given for 6 features"):
        f.tree(features=["a", "b"])
    with pytest.raises(ValueError, match="top must be an integer of at least 1"):
        f.tree(top=0, features=WORDS)
