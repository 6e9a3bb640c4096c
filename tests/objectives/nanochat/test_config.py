import re
from itertools import product
from typing import Any

import pytest

from objectives.api import ObjectiveSpec
from objectives.nanochat.config import NanochatConfig, search_space
from objectives.registry import load

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"target_flop": 1e10}, "Did you mean 'target_flops'?"),
    ({"n_embd": 33, "n_head": 2}, "n_head 2 must divide n_embd 33"),
    ({"n_embd": 36, "n_head": 3, "n_kv_head": 2}, "n_kv_head 2 must divide n_head 3"),
    ({"n_embd": 30, "n_head": 2}, "must be even, for rotary positions: 15"),
    ({"sequence_len": 100}, "sequence_len: Input should be a multiple of 16, got 100"),
    ({"data": "builtin:wiki"}, "builtin:wiki"),
    ({"data": "a\0b"}, "expected a path"),
    ({"n_layer": 0}, "n_layer"),
    ({"target_flops": float("inf")}, "target_flops"),
    ({"model": "mamba"}, "model: Input should be 'synaptic' or 'gpt'"),
    ({"num_epochs": 1e308}, "num_epochs: Input should be less than or equal to 1000000"),
    ({"space": "synaptik"}, "Did you mean 'synaptic'?"),
    ({"space": "synaptic+synaptic"}, "knob names must differ"),
    ({"space": "synaptic", "model": "gpt"}, "nothing to move"),
    ({"post_fast_lr": 0}, "space synaptic: knob post_fast_lr"),
    ({"tau_c": 0.5}, "knob tau_c: baseline 0.5 lies outside its bounds"),
]


@pytest.mark.parametrize(("settings", "expected"), WRONG)
def test_a_wrong_setting_is_refused_in_one_line_that_says_what_was_expected(
    settings: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(expected)) as error:
        load(ObjectiveSpec(name="nanochat", settings=settings))
    assert "\n" not in str(error.value)


def names(**settings: Any) -> list[str]:
    return [knob.name for knob in search_space(NanochatConfig(**settings)).knobs]


def test_groups_are_joined_in_the_order_given_and_each_model_has_its_own() -> None:
    assert len(names()) == 10
    assert names(model="gpt") == names(space="optimizer")
    joined = names(space="optimizer + synaptic")
    assert joined == names(space="optimizer") + names()
    assert names(model="gpt", space="synaptic", control=True) == names()


@pytest.mark.parametrize("group", ["synaptic", "optimizer"])
def test_a_search_starts_at_the_configuration_and_every_corner_is_one(group: str) -> None:
    config = NanochatConfig(space=group)
    space = search_space(config)
    for name, value in space.decode(space.baseline).items():
        assert value == pytest.approx(getattr(config, name))
    for corner in product((0.0, 1.0), repeat=space.dimension):
        config.with_knobs(space.decode(corner))
