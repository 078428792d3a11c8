"""The version of deepmf, for code below the package's front door."""

__version__ = "0.2.0.dev0"
