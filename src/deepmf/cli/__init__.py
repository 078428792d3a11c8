"""The command line, ``deepmf``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or say what it needs."""
    try:
        from deepmf.cli.app import app
    except ImportError as error:
        sys.exit(f"deepmf's command line needs {error.name}: pip install 'deepmf[cli]'.")
    app()
