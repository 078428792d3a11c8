from __future__ import annotations

import pytest

from deepmf.runs.folder import MARK, new_folder


def test_a_folder_appears_whole(tmp_path):
    with new_folder(tmp_path / "a" / "run") as folder:
        (folder / "x").write_text("1")
        assert not (tmp_path / "a" / "run").exists()
    assert (tmp_path / "a" / "run" / "x").read_text() == "1"
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["run"]


def test_or_not_at_all(tmp_path):
    with pytest.raises(OSError, match="disk"), new_folder(tmp_path / "run") as folder:
        (folder / "x").write_text("1")
        raise OSError("disk")
    assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_the_old_run_alone(tmp_path):
    with new_folder(tmp_path / "run") as folder:
        (folder / "x").write_text("old")
    with pytest.raises(OSError, match="disk"), new_folder(tmp_path / "run", True) as folder:
        (folder / "x").write_text("new")
        raise OSError("disk")
    assert (tmp_path / "run" / "x").read_text() == "old"


def test_two_runs_never_mix(tmp_path):
    with new_folder(tmp_path / "run") as folder:
        (folder / "old").write_text("")
    with pytest.raises(FileExistsError, match="--overwrite"), new_folder(tmp_path / "run"):
        pass
    with new_folder(tmp_path / "run", overwrite=True) as folder:
        (folder / "new").write_text("")
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == [MARK, "new"]


def test_someone_elses_folder_is_never_replaced(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter").write_text("precious")
    with pytest.raises(FileExistsError, match="not made by deepmf"):  # noqa: SIM117
        with new_folder(tmp_path / "thesis", overwrite=True):
            pass
    assert (tmp_path / "thesis" / "chapter").read_text() == "precious"


def test_an_empty_folder_is_used(tmp_path):
    with new_folder(tmp_path) as folder:
        (folder / "x").write_text("")
    assert (tmp_path / "x").exists()


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "f").write_text("")
    with pytest.raises(NotADirectoryError, match="is a file"), new_folder(tmp_path / "f"):
        pass
