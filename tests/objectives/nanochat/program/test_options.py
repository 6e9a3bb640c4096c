import re
from pathlib import Path

import pytest

from objectives.nanochat.config import TARGET_FLOPS, NanochatConfig
from objectives.nanochat.program.options import Asked, resolve
from objectives.nanochat.program.settings import ProgramConfig


def file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "run.toml"
    path.write_text(text)
    return path


def test_each_setting_has_one_owner() -> None:
    assert not NanochatConfig.model_fields.keys() & ProgramConfig.model_fields.keys()


def test_later_sources_win_and_each_value_says_where_it_comes_from(tmp_path: Path) -> None:
    path = file(
        tmp_path,
        'preset = "quick"\nprofile = "fast"\n'
        "[training]\nsequence_len = 512\nn_embd = 48\nsave_interval_steps = 7\n",
    )
    found = resolve(Asked(file=path, assignments=["n_embd=64", "training.seed=7"]))
    expected = {
        "n_layer": (2, "default"),
        "num_batches": (10, "preset quick"),
        "micro_batch_size": (8, "profile fast"),
        "sequence_len": (512, f"file {path}"),
        "save_interval_steps": (7, f"file {path}"),
        "n_embd": (64, "--set"),
        "seed": (7, "--set"),
    }
    values = found.values()
    assert {name: (values[name], found.sources[name]) for name in expected} == expected


def test_a_preset_or_profile_on_the_command_line_replaces_that_of_the_file(tmp_path: Path) -> None:
    path = file(tmp_path, 'preset = "quick"\nprofile = "fast"\n')
    found = resolve(Asked(file=path, preset="high", profile="quality"))
    assert (found.preset, found.profile) == ("high", "quality")
    assert found.training.num_batches == 10_000


def test_the_first_length_that_is_set_decides_and_null_takes_one_away() -> None:
    both = resolve(Asked(preset="quick", assignments=["target_flops=1e10"]))
    assert both.ignored_lengths() == ["num_batches"]
    without = resolve(Asked(preset="quick", assignments=["target_flops=null"]))
    assert without.ignored_lengths() == []
    assert resolve(Asked()).training.target_flops == TARGET_FLOPS


def test_text_stays_text_and_the_home_directory_is_found() -> None:
    found = resolve(Asked(assignments=["tokenizer=bpe:300", "checkpoint_dir=~/runs"]))
    assert found.training.tokenizer == "bpe:300"
    assert found.program.checkpoint_dir == Path.home() / "runs"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (Asked(preset="quik"), r"unknown preset 'quik'\. Did you mean 'quick'"),
        (Asked(profile="fst"), r"unknown profile 'fst'\. Did you mean 'fast'"),
        (Asked(assignments=["n_emb=3"]), r"(--set).* 'n_emb'\. Did you mean 'n_embd'"),
        (Asked(assignments=["n_embd"]), "expected KEY=VALUE, got 'n_embd'"),
        (Asked(assignments=["=3"]), "expected KEY=VALUE, got '=3'"),
        (Asked(assignments=["n_embd=wide"]), "n_embd: .*valid integer.*, got 'wide'"),
        (Asked(assignments=["n_embd=null"]), "n_embd: .*valid integer.*, got None"),
        (Asked(assignments=["matrix_lr=NaN"]), "matrix_lr: .*finite.*, got nan"),
        (Asked(assignments=["threads=0"]), "threads: .*greater than or equal to 1, got 0"),
        (Asked(assignments=["device=gpu"]), "device: .*'cuda', got 'gpu'"),
        (Asked(assignments=["n_head=3"]), "n_head 3 must divide n_embd 32"),
        (Asked(file=Path("nowhere.toml")), "nowhere.toml cannot be read: No such file"),
    ],
)
def test_a_wrong_setting_is_named_in_one_line(asked: Asked, message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        resolve(asked)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n_embd = 64", "n_embd belongs below a line [training]"),
        ("[trainig]\nn_embd = 64", "Did you mean 'training'"),
        ("training = 3", "training: expected a table, got 3"),
        ("preset = 3", "preset: expected a name in quotes, got 3"),
        ("[training]\nn_embd = [1]", "n_embd: Input should be a valid integer, got [1]"),
        ("[training]\nn_emb = 1", "Did you mean 'n_embd'"),
        ("[training", "is no TOML file"),
    ],
)
def test_a_wrong_file_is_named_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        resolve(Asked(file=file(tmp_path, text)))
    assert "\n" not in str(error.value)
