"""Agreement of siblings on made hierarchies."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from deepmf.metrics import hierarchy_agreement

OWNER = np.repeat(np.arange(6), 5)
CODES = np.eye(6)[:, OWNER] + 0.1
COARSE = np.array(["plant", "plant", "plant", "mineral", "mineral", "water"])[OWNER]
PARENTS = np.array([0, 0, 0, 1, 1, 2])


def linked(parents, count=3):
    return np.eye(count)[:, parents] + 0.2


def test_families_of_one_class_agree():
    found = hierarchy_agreement(linked(PARENTS), CODES, COARSE)
    assert found.agreement == 1
    assert found.chance == pytest.approx((3 + 1) / 15)
    turned = hierarchy_agreement(linked([0, 1, 2, 0, 1, 2]), CODES, COARSE)
    assert turned.agreement == 0


def test_random_parents_agree_by_chance():
    """The mean over all exchanges of parents is the chance level exactly."""
    found = [
        hierarchy_agreement(linked(PARENTS[list(order)]), CODES, COARSE)
        for order in permutations(range(6))
    ]
    assert np.mean([one.agreement for one in found]) == pytest.approx(found[0].chance, rel=1e-12)
    assert len({one.agreement for one in found}) > 2


def test_a_component_has_the_class_of_most_of_its_samples():
    labels = COARSE.copy()
    labels[5:8] = "mineral"  # 3 of the 5 samples of component 1
    assert hierarchy_agreement(linked(PARENTS), CODES, labels).agreement == pytest.approx(2 / 4)


def test_components_without_samples_or_parents_are_left_out():
    codes = CODES.copy()
    codes[1] = 0  # its samples go to component 0, whose codes tie for the largest
    H = linked(PARENTS)
    H[:, 4] = 0
    found = hierarchy_agreement(H, codes, COARSE)  # left: 0, 2 of one parent; 3; 5
    assert found.agreement == 1
    assert found.chance == pytest.approx(1 / 6)
    alone = hierarchy_agreement(np.eye(6), CODES, COARSE)
    assert np.isnan(alone.agreement)


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"must have shape \(6, 30\)"):
        hierarchy_agreement(linked(PARENTS), CODES[:5], COARSE)
