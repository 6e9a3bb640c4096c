import re
from itertools import product

import pytest

from objectives.nanochat.config import GROUPS, NanochatConfig, search_space
from objectives.nanochat.objective import NanochatObjective


def names(**settings: object) -> list[str]:
    return [knob.name for knob in search_space(NanochatConfig.model_validate(settings)).knobs]


def test_each_model_has_knobs_of_its_own() -> None:
    assert len(names()) == 10
    assert names(model="gpt") == names(space="optimizer")
    assert "matrix_lr" in names(model="gpt")


def test_groups_are_joined_in_the_order_given() -> None:
    joined = names(space="shape + synaptic+optimizer")
    assert joined == names(space="shape") + names() + names(space="optimizer")


def test_a_search_starts_where_the_configuration_is() -> None:
    at = search_space(NanochatConfig(tau_c=0.9))
    assert at.decode(at.baseline)["tau_c"] == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"space": "synaptik"}, "Did you mean 'synaptic'?"),
        ({"space": "synaptic+synaptic"}, "knob names must differ"),
        ({"space": "synaptic", "model": "gpt"}, "nothing to move"),
        ({"post_fast_lr": 0}, "space synaptic: knob post_fast_lr"),
        ({"tau_c": 0.5}, "knob tau_c: baseline 0.5 lies outside its bounds"),
    ],
)
def test_a_space_that_cannot_be_is_refused_with_the_settings(
    settings: dict[str, object], expected: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(expected)):
        NanochatObjective.from_settings(settings)


def test_a_control_stands_at_points_of_knobs_that_it_lacks() -> None:
    assert names(model="gpt", space="synaptic", control=True) == names()


@pytest.mark.parametrize(("width", "heads"), [(20, 1), (48, 4), (36, 3), (32, 16), (96, 4)])
def test_any_width_can_be_searched_around(width: int, heads: int) -> None:
    config = NanochatConfig(space="shape", n_embd=width, n_head=heads)
    knob = search_space(config).knobs[1]
    assert width / 2 <= knob.low <= width < knob.high == 2 * width
    for unit in (0.0, 0.3, 1.0):
        config.with_knobs({"n_embd": knob.decode(unit)})


@pytest.mark.parametrize("group", sorted(GROUPS))
@pytest.mark.parametrize("heads", [(1, 1), (4, 2)])
def test_every_corner_of_a_group_is_a_configuration(group: str, heads: tuple[int, int]) -> None:
    config = NanochatConfig(space=group, n_embd=32 * heads[0], n_head=heads[0], n_kv_head=heads[1])
    knobs = search_space(config)
    for corner in product((0.0, 1.0), repeat=knobs.dimension):
        config.with_knobs(knobs.decode(corner))


def test_shapes_are_whole_numbers_from_half_to_twice_the_configured() -> None:
    knobs = search_space(NanochatConfig(space="shape"))
    assert knobs.decode([0.0, 0.0]) == {"n_layer": 1, "n_embd": 16}
    assert knobs.decode(knobs.baseline) == {"n_layer": 2, "n_embd": 32}
    assert [knob.step for knob in knobs.knobs] == [1, 2]
    assert knobs.decode([1.0, 1.0]) == {"n_layer": 4, "n_embd": 64}
