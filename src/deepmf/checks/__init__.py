"""Does a class of your own keep its promises? One function for each kind of thing one can add.

Each raises an `AssertionError` that says which promise is broken, and returns nothing
where all are kept. deepmf's own parts pass the same checks in its tests.
"""

from deepmf.checks.constraints import check_constraint
from deepmf.checks.datafits import check_datafit
from deepmf.checks.losses import check_loss
from deepmf.checks.panels import check_panels
from deepmf.checks.regularizers import check_regularizer
from deepmf.checks.solvers import check_solver
from deepmf.checks.starts import check_start

__all__ = [
    "check_constraint",
    "check_datafit",
    "check_loss",
    "check_panels",
    "check_regularizer",
    "check_solver",
    "check_start",
]
