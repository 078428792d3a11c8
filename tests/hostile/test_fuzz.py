"""A short part of what ``make fuzz`` does for long; see fuzz.py."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

for library in ("h5py", "rasterio", "xarray", "h5netcdf", "zarr", "pandas", "pyarrow", "anndata"):
    pytest.importorskip(library)
pytest.importorskip("resource", reason="memory is limited as on Linux")


def test_damaged_files_of_every_kind_are_read_or_refused_with_a_sentence(tmp_path):
    program = Path(__file__).with_name("fuzz.py")
    done = subprocess.run(
        [sys.executable, program, "--examples", "25", "--keep", tmp_path / "files"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr[-3000:]
    summary = json.loads(done.stdout)
    assert summary["failures"] == []
    assert summary["examples"] == 25 * summary["kinds"]
    assert 0.3 < summary["refused"] / summary["examples"] < 0.99
