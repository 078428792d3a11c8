"""Runs: fits of files whose results are folders."""

from deepmf.runs.apply import apply, save_applied
from deepmf.runs.compare import compare
from deepmf.runs.config import Config
from deepmf.runs.execute import execute, open_data
from deepmf.runs.folder import new_folder
from deepmf.runs.run import Run
from deepmf.runs.store import load_run, save_run

__all__ = [
    "Config",
    "Run",
    "apply",
    "compare",
    "execute",
    "load_run",
    "new_folder",
    "open_data",
    "save_applied",
    "save_run",
]
