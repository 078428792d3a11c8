from __future__ import annotations

import errno
import os
import shutil

import pytest

from deepmf.runs.folder import MARK, check_free, new_folder


def test_a_folder_appears_whole(tmp_path):
    with new_folder(tmp_path / "a" / "run") as folder:
        (folder / "x").write_text("1")
        assert not (tmp_path / "a" / "run").exists()
    assert (tmp_path / "a" / "run" / "x").read_text() == "1"
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["run"]


def test_or_not_at_all(tmp_path):
    with pytest.raises(OSError, match="disk"), new_folder(tmp_path / "run") as folder:  # noqa: PT012
        (folder / "x").write_text("1")
        raise OSError("disk")
    assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_the_old_run_alone(tmp_path):
    with new_folder(tmp_path / "run") as folder:
        (folder / "x").write_text("old")
    with pytest.raises(OSError, match="disk"), new_folder(tmp_path / "run", True) as folder:  # noqa: PT012
        (folder / "x").write_text("new")
        raise OSError("disk")
    assert (tmp_path / "run" / "x").read_text() == "old"


def test_two_runs_never_mix(tmp_path):
    with new_folder(tmp_path / "run") as folder:
        (folder / "old").write_text("")
    with pytest.raises(FileExistsError, match="overwrite=True"), new_folder(tmp_path / "run"):
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


def test_neither_is_what_lies_below_one(tmp_path):
    (tmp_path / "f").write_text("")
    with pytest.raises(NotADirectoryError, match="f' is a file"):
        check_free(tmp_path / "f" / "run", overwrite=False)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_place_where_nothing_can_be_written_is_said_before_the_work(tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(PermissionError, match="choose another"):
        check_free(tmp_path / "closed" / "run", overwrite=False)


@pytest.mark.parametrize("target", ["there", "not-yet"])
def test_a_link_stays_and_what_it_points_to_is_made(tmp_path, target):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(target)
    for overwrite in (False, True):
        with new_folder(tmp_path / "link", overwrite) as folder:
            (folder / str(overwrite)).write_text("")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / target / "True").exists()
    assert {p.name for p in tmp_path.iterdir()} == {"there", "link", target}


def test_the_folder_one_is_in_is_not_taken_away(tmp_path, monkeypatch):
    (tmp_path / "here" / "below").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here" / "below")
    for name in (".", ".."):
        with pytest.raises(FileExistsError, match="the one you are in"):
            check_free(tmp_path.joinpath("here", "below", name), overwrite=True)


def test_what_is_read_is_not_replaced(tmp_path):
    with new_folder(tmp_path / "run") as folder:
        (folder / "x.npy").write_text("precious")
    inputs = [tmp_path / "other.npy", tmp_path / "run" / "x.npy"]
    with pytest.raises(FileExistsError, match=r"holds .*x\.npy"):
        check_free(tmp_path / "run", overwrite=True, inputs=inputs)


@pytest.mark.parametrize("overwrite", [False, True])
def test_the_slower_of_two_runs_does_not_take_the_place_of_someone_elses(tmp_path, overwrite):
    with pytest.raises(FileExistsError), new_folder(tmp_path / "run", overwrite):  # noqa: PT012
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "x").write_text("first")
    assert (tmp_path / "run" / "x").read_text() == "first"
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_the_old_folder_comes_back_when_the_new_one_cannot_be_put_there(tmp_path, monkeypatch):
    with new_folder(tmp_path / "run") as folder:
        (folder / "x").write_text("old")
    replace = os.replace

    def interrupted(a, b):
        if str(a).endswith(".part"):
            raise KeyboardInterrupt
        replace(a, b)

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt), new_folder(tmp_path / "run", overwrite=True):
        pass
    assert (tmp_path / "run" / "x").read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_a_full_disk_is_said_by_its_name_whatever_a_library_says(tmp_path, monkeypatch):
    room = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: room._replace(free=100))
    with pytest.raises(OSError, match="No space left") as caught, new_folder(tmp_path / "run"):
        raise RuntimeError("8960 requested and 4064 written")
    assert caught.value.errno == errno.ENOSPC
    assert list(tmp_path.iterdir()) == []
