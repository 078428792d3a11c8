from __future__ import annotations

import tomllib

import pytest

from deepmf.io import Reading, UnreadableError
from deepmf.runs.config import FIT_DEFAULTS, Config, ConfigError, spec


def test_a_file_says_what_was_set(tmp_path):
    config = Config(
        path=str(tmp_path / "scene.mat"),
        truth=(str(tmp_path / "end6.mat"),),
        labels="celltype",
        reading=Reading(variable="Y", image=(3, 4), nodata=-1.0, bad_bands="1-2"),
        fit={
            "ranks": [6, 4],
            "model": {"name": "layer-centric", "lam": [3.0]},
            "regularizer_W": ["none", {"name": "min-volume", "weight": 0.1}],
            "init": ["snpa", "random"],
            "tol": 0.0,
        },
    )
    file = tmp_path / "config.toml"
    file.write_text(config.to_toml(), encoding="utf-8")
    assert Config.from_toml(file) == config
    assert config.arguments()["regularizer_W"] == ["none", {"name": "min-volume", "weight": 0.1}]


def test_none_is_left_out_and_becomes_a_word_inside_lists():
    text = Config("x.npy", fit={"max_time": None, "regularizer_H": [None, "ridge"]}).to_toml()
    content = tomllib.loads(text)
    assert content["input"] == {"path": "x.npy"}
    assert content["fit"] == {"regularizer_H": ["none", "ridge"]}


def test_paths_are_relative_to_the_file(tmp_path):
    file = tmp_path / "c.toml"
    file.write_text('[input]\npath = "a.npy"\ntruth = "t.mat"\nwavelengths = "w.txt"\n')
    config = Config.from_toml(file)
    assert config.path == str(tmp_path / "a.npy")
    assert config.truth == (str(tmp_path / "t.mat"),)
    assert config.reading.wavelengths == str(tmp_path / "w.txt")
    assert config.files == [str(tmp_path / name) for name in ("a.npy", "t.mat", "w.txt")]
    file.write_text('[input]\npath = "dataset:simulated"\n')
    assert Config.from_toml(file).path == "dataset:simulated"
    assert Config.from_toml(file).files == []


def test_labels_are_a_file_where_there_is_one(tmp_path):
    file = tmp_path / "c.toml"
    file.write_text('[input]\npath = "a.npy"\nlabels = "kinds.txt"\n')
    assert Config.from_toml(file).labels == "kinds.txt"
    assert Config.from_toml(file).files == [str(tmp_path / "a.npy")]
    (tmp_path / "kinds.txt").write_text("a\nb\n")
    assert Config.from_toml(file).labels == str(tmp_path / "kinds.txt")
    assert Config.from_toml(file).files == [str(tmp_path / n) for n in ("a.npy", "kinds.txt")]


def test_a_home_that_nobody_has_is_a_folder_like_any_other(tmp_path):
    file = tmp_path / "c.toml"
    file.write_text('[input]\npath = "~nosuchuser/a.npy"\n')
    assert Config.from_toml(file).path == str(tmp_path / "~nosuchuser/a.npy")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[fit]\nrankz = [3]\n", "unknown entry 'rankz'; did you mean 'ranks'"),
        ("[fitt]\n", "unknown entry 'fitt'; did you mean 'fit'"),
        ("[input]\nxyz = 1\n", "unknown entry 'xyz'; it may have path"),
        ("fit = 3\n", r"fit must be a table, \[fit\]"),
        ("[input]\npath = 3\n", "paths must be text"),
        ("[input]\ntruth = 3\n", "paths must be text, got 3"),
        ("[input]\ntruth = {a = 1}\n", "paths must be text, got {'a': 1}"),
        ("[input]\nlabels = 3\n", "paths must be text, got 3"),
        ("[input]\nscale = [1]\n", r"scale must be text, got \[1\]"),
        ('[fit]\nallow_negative = "false"\n', "allow_negative must be true or false"),
        ("[input]\nimage = [3]\n", r"image must be \[rows, cols\]"),
        ("[input]\nimage = [3, true]\n", r"image must be \[rows, cols\]"),
        ("not toml", "not a TOML file"),
    ],
)
def test_a_bad_file_is_said(tmp_path, text, message):
    file = tmp_path / "c.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=message):
        Config.from_toml(file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[input]\nrows = "pixels"\n', "rows must be features or samples, got 'pixels'"),
        ('[input]\nnodata = "x"\n', "nodata must be a number"),
        ("[input]\nvariable = 3\n", "variable must be text"),
    ],
)
def test_bad_answers_are_said(tmp_path, text, message):
    file = tmp_path / "c.toml"
    file.write_text(text)
    with pytest.raises(UnreadableError, match=message):
        Config.from_toml(file)


def test_missing_and_binary_files(tmp_path):
    with pytest.raises(ConfigError, match="no configuration"):
        Config.from_toml(tmp_path / "none.toml")
    (tmp_path / "b.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not a TOML file"):
        Config.from_toml(tmp_path / "b.toml")


def test_no_ranks():
    with pytest.raises(ConfigError, match=r"ranks=\[6, 4, 2\]"):
        Config("x").arguments()


def test_names_that_no_file_of_settings_can_hold():
    with pytest.raises(ConfigError, match="not text in UTF-8"):
        Config("caf\udce9.npy", fit={"ranks": [2]}).arguments()


@pytest.mark.parametrize(
    ("setting", "text", "meaning"),
    [
        ("constraint_W", "simplex", "simplex"),
        ("constraint_W", "grouped-sparse:0.7", {"name": "grouped-sparse", "sparsity": 0.7}),
        ("constraint_H", "box:lower=0,upper=2", {"name": "box", "lower": 0, "upper": 2}),
        ("model", "layer-centric:lam=[10,5]", {"name": "layer-centric", "lam": [10, 5]}),
        ("model", "layer-centric:[10,5]", {"name": "layer-centric", "lam": [10, 5]}),
        (
            "regularizer_W",
            "min-volume:weight=1e-2,relative=false",
            {"name": "min-volume", "weight": 0.01, "relative": False},
        ),
    ],
)
def test_what_users_write(setting, text, meaning):
    assert spec(setting, text) == meaning


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sponge:3", "Unknown constraint 'sponge': expected one of none, nonnegative"),
        ("box:lower==3", "Cannot read 'box:lower==3'.*such as box:lower=1"),
        ("box:abc", "Cannot read"),
    ],
)
def test_what_they_should_not(text, message):
    with pytest.raises(ConfigError, match=message):
        spec("constraint_W", text)


def test_every_argument_of_factorize_can_be_said_in_a_file():
    assert {"ranks", "model", "init", "max_iter", "random_state"} <= set(FIT_DEFAULTS)
    assert not {"X", "callbacks", "panel_size"} & set(FIT_DEFAULTS)
