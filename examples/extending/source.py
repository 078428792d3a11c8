"""Your own data source: any object that returns some of its columns."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from deepmf import factorize
from deepmf.checks import check_panels
from deepmf.data.panels import OnDisk
from deepmf.datasets import simulated_scene


class SideBySide:
    """Files with m x n_i numbers each, as one m x (n_1 + n_2 + ...) matrix: scenes of one sensor.

    `OnDisk` requests columns a, ..., b - 1 or an increasing list of columns.
    """

    def __init__(self, paths):
        self.parts = [np.load(path, mmap_mode="r") for path in paths]
        self.ends = np.cumsum([part.shape[1] for part in self.parts])
        self.shape = (len(self.parts[0]), int(self.ends[-1]))
        self.dtype = self.parts[0].dtype

    def __getitem__(self, key):
        _, columns = key
        if isinstance(columns, slice):
            columns = np.arange(self.shape[1])[columns]
        pieces = []
        for part, end in zip(self.parts, self.ends):
            begin = end - part.shape[1]
            pieces.append(part[:, columns[(begin <= columns) & (columns < end)] - begin])
        return np.hstack(pieces)


with TemporaryDirectory() as folder:
    scenes = [simulated_scene(rows=32, cols=32, random_state=seed).X for seed in range(3)]
    for i, X in enumerate(scenes):
        np.save(Path(folder) / f"{i}.npy", X)
    data = OnDisk(SideBySide(sorted(Path(folder).glob("*.npy"))))
    check_panels(data, np.hstack(scenes))
    f = factorize(data, ranks=[6, 3], init="snpa", tol=1e-3)
    print(f)
