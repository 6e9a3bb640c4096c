from pathlib import Path
from typing import Any

import pytest

from objectives.api import ObjectiveSpec
from objectives.nanochat.config import NanochatConfig
from objectives.registry import load


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"target_flop": 1e10}, "Did you mean 'target_flops'?"),
        ({"n_embd": 33, "n_head": 2}, "n_head 2 must divide n_embd 33"),
        ({"n_embd": 36, "n_head": 3, "n_kv_head": 2}, "n_kv_head 2 must divide n_head 3"),
        ({"n_embd": 30, "n_head": 2}, "must be even for rotary positions, got 30 / 2 = 15"),
        ({"sequence_len": 100}, "sequence_len must be a multiple of 16, got 100"),
        ({"data": "builtin:wiki"}, "builtin:wiki"),
        ({"tokenizer": "words"}, "expected bytes or bpe:N"),
        ({"n_layer": 0}, "n_layer"),
        ({"target_flops": float("inf")}, "target_flops"),
        ({"model": "mamba"}, "model: Input should be 'synaptic' or 'gpt'"),
        ({"attention": "fused"}, "use explicit, or model = gpt"),
        ({"prime_rate": 0}, "prime_rate"),
        ({"num_epochs": 1e308}, "num_epochs: Input should be less than or equal to 1000000"),
        ({"num_batches": 10**18}, "num_batches"),
        ({"val_windows": 10**12}, "val_windows"),
        ({"data": "a\0b"}, "none holds a zero byte"),
    ],
)
def test_a_wrong_setting_is_refused_in_one_line_that_says_what_was_expected(
    settings: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ValueError, match="nanochat setting") as error:
        load(ObjectiveSpec(name="nanochat", settings=settings))
    assert expected in str(error.value)
    assert "\n" not in str(error.value)


def test_the_spec_holds_every_setting_and_gives_an_equal_objective() -> None:
    objective = load(ObjectiveSpec(name="nanochat", settings={"n_layer": 3}))
    unset = {"num_batches", "num_epochs", "control"}
    assert set(objective.spec.settings) == set(NanochatConfig.model_fields) - unset
    assert load(ObjectiveSpec.model_validate_json(objective.spec.model_dump_json())) == objective


def test_a_path_is_made_absolute_because_evaluations_run_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert NanochatConfig(data="text.txt").data == str(tmp_path / "text.txt")


def test_flops_are_the_budget_unless_batches_or_epochs_are_asked_for() -> None:
    assert NanochatConfig().target_flops == 3e10
    assert NanochatConfig(num_batches=10).target_flops is None
    assert NanochatConfig(num_epochs=1, target_flops=1e9).target_flops == 1e9


def test_moved_knobs_are_checked_like_settings() -> None:
    assert NanochatConfig().with_knobs({"n_layer": 3.0, "tau_c": 0.9}).n_layer == 3
    with pytest.raises(ValueError, match="tau_c"):
        NanochatConfig().with_knobs({"tau_c": 1.5})
