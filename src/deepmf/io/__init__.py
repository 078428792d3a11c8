"""Files in and out: matrices, cubes, tables and what a fit makes of them."""

from deepmf.io.base import Format, Reading, UnreadableError, Variable
from deepmf.io.formats import FORMATS, format_of, read, variables

__all__ = [
    "FORMATS",
    "Format",
    "Reading",
    "UnreadableError",
    "Variable",
    "format_of",
    "read",
    "variables",
]
