"""Files in and out: matrices, cubes, tables and what a fit makes of them."""

from deepmf._utils.safe_archives import UnreadableError
from deepmf.data.reading import Reading
from deepmf.io.format import Format, Variable
from deepmf.io.registry import FORMATS, format_of, read, variables

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
