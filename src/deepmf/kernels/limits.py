"""Limits of the grouped sparse projection, for its compiled form and the one in NumPy."""

MAX_STEPS = 100
"""Largest number of Newton steps in the search for the threshold."""

NOTHING = 1e-30
"""Squared norm, relative to the matrix's largest entry, at which nothing is left of a column."""
