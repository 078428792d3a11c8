"""Classes of samples from files and columns of obs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from deepmf.data.dataset import Dataset
from deepmf.io import UnreadableError, read
from deepmf.io.labels import labels_file, read_labels

CLASSES = ["b", "a", "b", "c"]
DATA = Dataset("data", np.ones((3, 4)))


@pytest.mark.parametrize("head", ["", "class\n"])
def test_one_class_per_line_below_a_heading_or_not(tmp_path, head):
    (tmp_path / "t.csv").write_text(head + "\n".join(CLASSES) + "\n")
    assert read_labels(str(tmp_path / "t.csv"), DATA).tolist() == CLASSES


def test_arrays(tmp_path):
    np.save(tmp_path / "t.npy", np.array([3, 1, 3, 2]))
    assert read_labels(str(tmp_path / "t.npy"), DATA).tolist() == ["3", "1", "3", "2"]
    np.savez(tmp_path / "t.npz", other=1, kind=CLASSES)
    assert read_labels(f"{tmp_path}/t.npz:kind", DATA).tolist() == CLASSES
    assert labels_file(f"{tmp_path}/t.npz:kind") == f"{tmp_path}/t.npz"
    assert labels_file(f"{tmp_path}/none.npz:kind") is labels_file("celltype") is None


def test_columns_of_obs(tmp_path):
    ad = pytest.importorskip("anndata")
    pandas = pytest.importorskip("pandas")
    names = [f"cell{k}" for k in range(4)]
    obs = pandas.DataFrame({"kind": pandas.Categorical(CLASSES), "day": [1, 2, 2, 1]}, index=names)
    ad.AnnData(np.ones((4, 3), dtype=np.float32), obs).write_h5ad(tmp_path / "c.h5ad")
    data = read(tmp_path / "c.h5ad")
    assert read_labels("kind", data).tolist() == CLASSES
    assert read_labels("day", data).tolist() == ["1", "2", "2", "1"]
    with pytest.raises(UnreadableError, match=r"no column 'type' in obs.*it has kind, day\."):
        read_labels("type", data)


def test_what_is_no_list_of_classes_is_refused(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text("a\nb\n")
    with pytest.raises(UnreadableError, match="has the classes of 2 samples, but data has 4"):
        read_labels(str(path), DATA)
    path.write_text("a,1\nb,2\nc,1\nd,2\n")
    with pytest.raises(UnreadableError, match="another value for every sample, such as 'a,1'"):
        read_labels(str(path), DATA)
    with pytest.raises(FileNotFoundError, match=r"no file 'kind' with classes, and data is no .h5"):
        read_labels("kind", replace(DATA))
