from pathlib import Path
from typing import Any

import pytest

from objectives.api import ObjectiveSpec
from objectives.nanochat.config import NanochatConfig
from objectives.nanochat.knobs import SPACE, SynapticKnobs
from objectives.registry import load


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"target_flop": 1e10}, "Did you mean 'target_flops'?"),
        ({"n_embd": 33, "n_head": 2}, "n_head 2 must divide n_embd 33"),
        ({"n_embd": 36, "n_head": 3, "n_kv_head": 2}, "n_kv_head 2 must divide n_head 3"),
        ({"n_embd": 30, "n_head": 2}, "must be even for rotary positions, got 30 / 2 = 15"),
        ({"sequence_len": 100}, "sequence_len must be a multiple of 16, got 100"),
        ({"warmup_ratio": 0.7}, "at most 1, got 0.7 + 0.4"),
        ({"data": "builtin:wiki"}, "expected one of builtin:wiki-v1, builtin:kjv-v1, or the path"),
        ({"n_layer": 0}, "n_layer"),
        ({"target_flops": float("inf")}, "target_flops"),
        ({"model": "mamba"}, "model: Input should be 'synaptic' or 'gpt'"),
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
    assert set(objective.spec.settings) == set(NanochatConfig.model_fields)
    assert load(ObjectiveSpec.model_validate_json(objective.spec.model_dump_json())) == objective


def test_a_path_is_made_absolute_because_evaluations_run_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert NanochatConfig(data="text.txt").data == str(tmp_path / "text.txt")


def test_knobs_that_are_missing_or_unknown_are_named() -> None:
    knobs = SPACE.decode(SPACE.baseline)
    knobs["tau"] = knobs.pop("tau_c")
    with pytest.raises(ValueError, match=r"missing \['tau_c'\], unknown \['tau'\]"):
        SynapticKnobs.from_mapping(knobs)
