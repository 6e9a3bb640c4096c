"""Conditions, factors and controls as people write them: names, numbers, and what is refused."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.config import Config, Layers, resolve
from orchestrator.matrix.campaign import (
    SAFE_NAME,
    Staggered,
    campaign_from,
    changed_by,
    factors_of,
)

Describe = Callable[..., Config]

SPHERE = 'objective = "sphere"\n[training]\ndimension = 2\n'


@pytest.fixture
def describe(tmp_path: Path) -> Describe:
    """`describe(text, name="c.toml")`: what a file of that text, about a sphere, comes to."""

    def of(text: str, name: str = "c.toml", above: str = SPHERE) -> Config:
        file = tmp_path / name
        file.write_text(f"{above}{text}", encoding="utf-8")
        return resolve(Layers(file))

    return of


def entry(name: str, *settings: str) -> str:
    return "\n".join(["[[campaign.conditions]]", f'name = "{name}"', *settings, ""])


# Factorials


def test_too_many_combinations_are_refused_without_making_them() -> None:
    said: dict[str, Any] = {"objective": "sphere", "campaign.name": "c"}
    said |= {f"factors.{name}": {str(n): {} for n in range(100)} for name in "abcdef"}
    config = resolve(Layers(flags={key: (value, "--set") for key, value in said.items()}))
    with pytest.raises(ValueError, match="1000000000000"):
        campaign_from(config)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        *((True, "true"), (3, "3"), (0.0, "0"), (0.5, "0.5"), (1e-5, "1e-05"), (3e10, "3e10")),
        *((0.1234567, "0.1234567"), ("adamw", "adamw"), ("a+b", "a+b")),
    ],
)
def test_a_level_is_called_after_its_value(value: Any, name: str) -> None:
    factors = factors_of({"x": [value]})
    assert factors == {"x": {name: {"x": value}}}
    assert SAFE_NAME.fullmatch(f"x{name}")


NO_CONTROLS = "\n[campaign]\ncontrols = false\n"


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ('"training.noise" = [0.01]', {"noise0.01": {"training.noise": 0.01}}),
        (
            "hard.yes = { noise = 0.1, training.seed_noise = 0.05 }",
            {"hardyes": {"training.noise": 0.1, "training.seed_noise": 0.05}},
        ),
    ],
)
def test_a_factor_may_say_its_table_and_a_level_its_name(
    text: str, cells: dict[str, Any], describe: Describe
) -> None:
    config = describe(f"[factors]\n{text}{NO_CONTROLS}")
    assert {one.name: changed_by(one) for one in campaign_from(config).conditions} == cells


# Together


def test_conditions_come_first_then_the_factorial_then_the_controls(describe: Describe) -> None:
    config = describe(
        "[factors]\nnoise = [0.01, 0.02]\nfailure_rate = [0.1, 0.2]\n[campaign]\nseeds = [5, 7]\n"
        + entry("own", "training.noise = 0.05")
        + entry("Other", "available = 0.2")
    )
    campaign = campaign_from(config)
    cells = campaign.conditions
    assert [cell.name for cell in cells] == [
        *("own", "Other"),
        *("noise0.01_failure_rate0.1", "noise0.01_failure_rate0.2"),
        *("noise0.02_failure_rate0.1", "noise0.02_failure_rate0.2"),
        "default_base",
    ]
    assert [cell.control for cell in cells] == [*(6 * [False]), True]
    assert (campaign.evaluations, campaign.seeds) == (14, (5, 7))
    assert campaign.conditions[1].settings == {"available": 0.2}
    assert [run for *_, run in campaign.runs][:3] == ["own_s5", "own_s7", "Other_s5"]


@pytest.mark.parametrize(
    "text",
    ["[factors]\nnoise = [0.0, 0.01]\n", "[factors.hard]\nno = {}\nyes = { noise = 0.01 }\n"],
)
def test_a_cell_that_is_the_configuration_itself_is_the_control(
    text: str, describe: Describe
) -> None:
    assert [(bool(c.levels), c.control) for c in campaign_from(describe(text)).conditions] == [
        (True, True),
        (True, False),
    ]


def test_one_of_the_objectives_own_controls_may_be_a_cell_too(describe: Describe) -> None:
    off = '{ model = "gpt", space = "synaptic", control = true }'
    text = f"[training]\nn_layer = 1\n[factors.synapses]\non = {{}}\noff = {off}\n"
    cells = campaign_from(describe(text, above="")).conditions
    assert [cell.control for cell in cells] == [True, True]


# What is refused


HOSTILE = ["", "..", "a/b", "a b", "a\\nb", "caf\\u00e9", "-x"]


@pytest.mark.parametrize("name", [*HOSTILE, "A", "x" * 65])
def test_a_campaign_that_no_directory_can_be_called_after_is_refused(
    name: str, describe: Describe
) -> None:
    config = describe(f'[factors]\nnoise = [0.01]\n[campaign]\nname = "{name}"\n')
    with pytest.raises(ValueError, match=r"^\[campaign\] name"):
        campaign_from(config)


@pytest.mark.parametrize(
    "text",
    [
        *(entry(name, "noise = 0.01") for name in [*HOSTILE, "x" * 101, "$(ls)"]),
        '[factors]\nnoise = ["../x"]',
        '[factors.hard]\n"a/b" = { noise = 0.01 }',
    ],
)
def test_a_condition_that_no_file_can_be_called_after_is_refused(
    text: str, describe: Describe
) -> None:
    with pytest.raises(ValueError, match=r"^condition '"):
        campaign_from(describe(text))


@pytest.mark.parametrize(
    "text",
    [
        entry("a") + entry("A"),
        entry("noise0.01", "available = 0.1") + "[factors]\nnoise=[0.01]",
        "[factors.a]\n1_b2 = { noise = 0.1 }\n1 = { noise = 0.2 }\n[factors.b]\n2_b2={}\n2={}\n",
    ],
)
def test_names_that_a_file_system_takes_for_one_are_refused(text: str, describe: Describe) -> None:
    with pytest.raises(ValueError, match="cannot be told apart"):
        campaign_from(describe(text))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[factors]\nnoise = 3\n", "factors.noise: expected a list"),
        ("[factors]\nnoise = [[0.1]]\n", "factors.noise: expected a list"),
        ("[factors]\nnoise = [0.1, 0.1]\n", "factors.noise: 0.1 is given twice"),
        ("[factors]\nnosie = [0.1]\n", "condition nosie0.1: .*'nosie'"),
        ('[factors]\nnoise = [0.1]\n"training.noise" = [0.2]\n', "noise is given twice"),
        (entry("a", "noise = 0.1", "training.noise = 0.2"), "condition a: .* given twice"),
        ("[[campaign.conditions]]\nnoise = 0.1\n", "entry 1: expected a name, got None"),
        (entry("a", "noise = 0.1") + entry("b", "noise = 0.1"), "a and b are the same"),
        (entry("a", "budget.max_evals = 3"), "condition a: budget.max_evals is the same for all"),
        (entry("a", 'objective = "cliff"'), "'objective'"),
    ],
)
def test_what_makes_no_campaign_is_refused_by_name(
    text: str, named: str, describe: Describe
) -> None:
    with pytest.raises(ValueError, match=named):
        campaign_from(describe(text))


# What they take


def test_one_more_is_admitted_every_so_many_seconds() -> None:
    now = 100.0
    pace, none = Staggered(8.0, lambda: now), Staggered(0.0, lambda: now)

    def admits(in_flight: int, which: Staggered = pace) -> bool:
        holds = dict.fromkeys(range(in_flight))
        state: Any = SimpleNamespace(accounts=SimpleNamespace(holds=holds))
        return which.admits(state)

    assert (admits(0), admits(1), admits(99, none)) == (True, False, True)
    now += 7.9
    assert not admits(1)
    now += 0.1
    assert (admits(1), admits(2)) == (True, False)
