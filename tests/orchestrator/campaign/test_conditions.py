"""Conditions, factors and controls as people write them: names, numbers, and what is refused."""

from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from budgets.terms import CampaignTerms
from objectives import registry
from objectives.api import ObjectiveSpec
from orchestrator.campaign.conditions import campaign_name, cells_of, runs_of, terms_of
from orchestrator.campaign.conditions import (
    MOST_CELLS,
    Level,
    Varied,
    check_names,
    factorial,
    factors_of,
)
from orchestrator.campaign.plan import runs_document as as_dict, design
from orchestrator.config import Config, Layers, resolve

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


def names(resolved: Config) -> list[str]:
    return [cell.name for cell in cells_of(resolved)]


# Factorials

SOME = st.lists(
    st.tuples(st.text("abc", min_size=1, max_size=3), st.integers(1, 4)),
    min_size=1,
    max_size=4,
    unique_by=lambda pair: pair[0],
)


@given(SOME)
@settings(max_examples=60)
def test_a_factorial_has_every_combination_once_and_the_last_factor_varies_fastest(
    shape: list[tuple[str, int]],
) -> None:
    factors = tuple(
        Varied(name, tuple(Level(str(n), {f"{name}.x": n}) for n in range(count)))
        for name, count in shape
    )

    cells = factorial(factors)

    assert len(cells) == prod(count for _, count in shape)
    assert len({tuple(cell.levels.items()) for cell in cells}) == len(cells)
    indices = [tuple(int(level) for level in cell.levels.values()) for cell in cells]
    assert indices == sorted(indices)
    for cell in cells:
        assert list(cell.levels) == [name for name, _ in shape]
        assert cell.settings == {f"{name}.x": int(level) for name, level in cell.levels.items()}
        assert cell.name == "_".join(f"{name}{level}" for name, level in cell.levels.items())


@given(SOME, st.integers(1, 5), st.integers(0, 3), st.booleans())
@settings(max_examples=40)
def test_total_runs_are_conditions_times_seeds(
    shape: list[tuple[str, int]], seeds: int, written: int, controls: bool
) -> None:
    factors = {
        name: {str(n): {"noise": (place * 5 + n) / 1000} for n in range(count)}
        if place == 0
        else {
            str(n): {f"{('seconds', 'failure_rate', 'traps')[place - 1]}": n / 10}
            for n in range(count)
        }
        for place, (name, count) in enumerate(shape)
    }
    conditions = [{"name": f"own-{n}", "available": 0.1 + n / 10} for n in range(written)]
    campaign = {"seeds": list(range(1, seeds + 1)), "controls": controls, "conditions": conditions}
    flags = {"objective": ("sphere", "--objective")}
    flags |= {f"campaign.{key}": (value, "--set") for key, value in campaign.items()}  # type: ignore[misc]
    flags |= {f"factors.{key}": (value, "--set") for key, value in factors.items()}  # type: ignore[misc]
    resolved = resolve(Layers(flags=flags))

    cells = cells_of(resolved)

    crossed = prod(count for _, count in shape)
    base = controls and not any(
        not any(cell.settings.values()) and cell.levels for cell in cells
    )  # the cell of all zeros is the configuration as it is, and so the control
    assert len(cells) == crossed + written + base
    assert len(list(runs_of(resolved))) == as_dict(resolved)["total_runs"] == len(cells) * seeds
    assert sum(cell.control for cell in cells) == controls


def test_a_factorial_of_too_many_combinations_is_refused_without_making_them() -> None:
    levels = tuple(Level(str(n), {}) for n in range(100))

    with pytest.raises(ValueError, match="1000000000000 combinations: expected 10000 at most"):
        factorial([Varied(name, levels) for name in "abcdef"])
    assert MOST_CELLS == 10_000


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (True, "true"),
        (False, "false"),
        (3, "3"),
        (0.5, "0.5"),
        (1e-5, "1e-5"),
        (3e10, "3e10"),
        (1.5e-7, "1.5e-7"),
        (0.1234567, "0.1234567"),
        (100000.0, "100000"),
        ("adamw", "adamw"),
        ("synaptic+optimizer", "synaptic+optimizer"),
    ],
)
def test_a_level_is_called_after_its_value(value: Any, name: str) -> None:
    (factor,) = factors_of({"x": [value]})

    assert factor.levels == (Level(name, {"training.x": value}),)
    (cell,) = factorial((factor,))
    assert cell.name == f"x{name}"
    check_names([cell])


def test_levels_may_have_names_and_set_as_much_as_they_need(describe: Describe) -> None:
    resolved = describe(
        "[factors.hard]\nno = { noise = 0.0 }\nyes = { noise = 0.1, training.seed_noise = 0.05 }\n"
        "[campaign]\ncontrols = false\n"
    )

    first, second = cells_of(resolved)
    assert (first.name, first.settings) == ("hardno", {"training.noise": 0.0})
    assert second.settings == {"training.noise": 0.1, "training.seed_noise": 0.05}
    assert second.levels == {"hard": "yes"}


@pytest.mark.parametrize(
    "text",
    [
        '"training.noise" = [0.01, 0.02]',
        "training.noise = [0.01, 0.02]",
        "noise = [0.01, 0.02]",
    ],
)
def test_a_factor_may_say_its_table_or_not(text: str, describe: Describe) -> None:
    resolved = describe(f"[factors]\n{text}\n[campaign]\ncontrols = false\n")

    assert names(resolved) == ["noise0.01", "noise0.02"]
    assert [cell.settings for cell in cells_of(resolved)] == [
        {"training.noise": 0.01},
        {"training.noise": 0.02},
    ]


def test_a_factor_of_a_search_is_called_after_its_last_word(describe: Describe) -> None:
    resolved = describe(
        "[factors]\nsearch.sigma0 = [0.1, 0.2]\nnoise = [0.01, 0.02]\n"
        '[campaign]\ncell = "search"\ncontrols = false\n'
    )

    assert names(resolved) == [
        "sigma00.1_noise0.01",
        "sigma00.1_noise0.02",
        "sigma00.2_noise0.01",
        "sigma00.2_noise0.02",
    ]
    assert cells_of(resolved)[0].settings == {"search.sigma0": 0.1, "training.noise": 0.01}


def test_an_assignment_takes_the_place_of_a_factor_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text(f"{SPHERE}[factors]\ntraining.noise = [0.01, 0.02]\n")

    resolved = resolve(Layers(file, assignments=["factors.training.noise=[0.03]"]))

    assert names(resolved) == ["noise0.03", "default_base"]


# Together


def test_conditions_come_first_then_the_factorial_then_the_controls(describe: Describe) -> None:
    resolved = describe(
        "[factors]\nnoise = [0.01, 0.02]\nfailure_rate = [0.1, 0.2]\n"
        "[campaign]\nseeds = [5, 7]\n"
        '[[campaign.conditions]]\nname = "own"\ntraining.noise = 0.05\n'
        '[[campaign.conditions]]\nname = "Other"\navailable = 0.2\n'
    )

    cells = cells_of(resolved)

    assert [cell.name for cell in cells] == [
        *("own", "Other"),
        *("noise0.01_failure_rate0.1", "noise0.01_failure_rate0.2"),
        *("noise0.02_failure_rate0.1", "noise0.02_failure_rate0.2"),
        "default_base",
    ]
    assert [bool(cell.levels) for cell in cells] == [False, False, True, True, True, True, False]
    assert [cell.control for cell in cells] == [*(6 * [False]), True]
    assert design(resolved) == "2x2 factorial and 2 conditions"
    terms = terms_of(resolved)
    assert (terms.evaluations, terms.seeds) == (14, (5, 7))
    assert [condition.settings for condition in terms.conditions[:3]] == [
        {"noise": 0.05},
        {"available": 0.2},
        {"noise": 0.01, "failure_rate": 0.1},
    ]
    assert [run for _, _, run in runs_of(resolved)][:3] == ["own_s5", "own_s7", "Other_s5"]


def test_an_objective_without_controls_has_the_default_alone(describe: Describe) -> None:
    assert names(describe("[factors]\nnoise = [0.01]\n"))[1:] == ["default_base"]


def test_the_synapses_are_switched_off_in_a_control_of_nanochat(describe: Describe) -> None:
    resolved = describe("[factors]\nn_layer = [1]\n", above="")

    *_, off = cells_of(resolved)
    assert off.name == "synapses-off_base"
    assert (off.settings["training.model"], off.control) == ("gpt", True)


def test_without_controls_there_are_none(describe: Describe) -> None:
    resolved = describe("[factors]\nnoise = [0.01]\n[campaign]\ncontrols = false\n")

    assert names(resolved) == ["noise0.01"]


@pytest.mark.parametrize(
    "text",
    [
        "[factors]\nnoise = [0.0, 0.01]\n",
        "[factors.hard]\nno = { noise = 0.0 }\nyes = { noise = 0.01 }\n",
        "[factors.hard]\nno = {}\nyes = { noise = 0.01 }\n",
        "[factors]\nnoise = [0, 0.01]\n",  # an integer says the same
    ],
)
def test_a_cell_that_is_the_configuration_itself_is_the_control(
    text: str, describe: Describe
) -> None:
    cells = cells_of(describe(text))

    assert [cell.control for cell in cells] == [True, False]
    assert all(cell.levels for cell in cells)  # it is a cell of the factorial all the same


def test_one_of_the_objectives_own_controls_may_be_a_cell_too(describe: Describe) -> None:
    control = '{ model = "gpt", space = "synaptic", control = true }'

    cells = cells_of(
        describe(
            f"[factors.synapses]\non = {{}}\noff = {control}\n", above="[training]\nn_layer = 1\n"
        )
    )

    assert [(cell.name, cell.control) for cell in cells] == [
        ("synapseson", True),
        ("synapsesoff", True),
    ]


# Names


@pytest.mark.parametrize(
    ("stem", "name"),
    [
        ("My Campaign", "my-campaign"),
        ("a", "a"),
        ("..x..", "x"),
        ("\u00e4\u00f6\u00fc", "campaign"),
        ("x" * 64, "x" * 64),
    ],
)
def test_a_campaign_is_called_after_its_file(stem: str, name: str, describe: Describe) -> None:
    assert campaign_name(describe("[factors]\nnoise = [0.01]\n", name=f"{stem}.toml")) == name


HOSTILE = ["", ".", "..", "../up", "a/b", "/etc/passwd", "A", "a b", "a\\nb", "caf\\u00e9", "-x"]


@pytest.mark.parametrize("name", [*HOSTILE, "x" * 65, "a\\u0000"])
def test_a_campaign_that_no_directory_can_be_called_after_is_refused(
    name: str, describe: Describe
) -> None:
    resolved = describe(f'[factors]\nnoise = [0.01]\n[campaign]\nname = "{name}"\n')

    with pytest.raises(ValueError, match=r"^\[campaign\] name: expected 1 to 64 of a-z"):
        campaign_name(resolved)
    with pytest.raises(ValueError, match=r"^\[campaign\] name"):
        terms_of(resolved)


@pytest.mark.parametrize(
    "name", [name for name in HOSTILE if name != "A"] + ["x" * 101, "$(ls)", "a;b", "~", "*", "_x"]
)
def test_a_condition_that_no_file_can_be_called_after_is_refused(
    name: str, describe: Describe
) -> None:
    resolved = describe(f'[[campaign.conditions]]\nname = "{name}"\nnoise = 0.01\n')

    with pytest.raises(ValueError, match=r"^condition '.*: expected a name of 1 to 100 letters"):
        cells_of(resolved)


@pytest.mark.parametrize(
    "text",
    [
        '[factors]\nnoise = ["../x"]',
        '[factors.hard]\n"a/b" = { noise = 0.01 }',
        '[factors."a b"]\nx = { noise = 0.01 }',
        '[factors."training.a/b"]\nx = { noise = 0.01 }',
    ],
)
def test_a_factor_or_level_that_makes_no_name_is_refused(text: str, describe: Describe) -> None:
    with pytest.raises(ValueError, match=r"^condition '"):
        cells_of(describe(text))


@pytest.mark.parametrize(
    ("text", "twins"),
    [
        ('[[campaign.conditions]]\nname = "a"\n[[campaign.conditions]]\nname = "A"\n', "'A'"),
        ("[factors]\nnoise = [0.1, 0.1]\n", "'noise0.1'"),
        ('[factors]\nnoise = [0.1, "0.1"]\n', "'noise0.1'"),
        ("[factors.x]\na = { noise = 0.1 }\nA = { noise = 0.2 }\n", "'xA'"),
        (
            '[[campaign.conditions]]\nname = "noise0.01"\navailable = 0.1\n[factors]\nnoise=[0.01]',
            "'noise0.01'",
        ),
        ('[[campaign.conditions]]\nname = "default_base"\nnoise = 0.1\n', "'default_base'"),
        ('[[campaign.conditions]]\nname = "DEFAULT_BASE"\nnoise = 0.1\n', "'default_base'"),
    ],
)
def test_names_that_a_file_system_takes_for_one_are_refused(
    text: str, twins: str, describe: Describe
) -> None:
    with pytest.raises(ValueError, match=f"and {twins} cannot be told apart"):
        cells_of(describe(text))


def test_two_factors_whose_names_run_together_are_refused(describe: Describe) -> None:
    text = (
        "[factors.a]\n1_b2 = { noise = 0.1 }\n1 = { noise = 0.2 }\n[factors.b]\n2_b2 = {}\n2 = {}\n"
    )

    with pytest.raises(ValueError, match="cannot be told apart"):
        cells_of(describe(text))


def test_runs_of_different_cells_and_seeds_never_have_one_name(describe: Describe) -> None:
    conditions = "".join(
        f'[[campaign.conditions]]\nname = "{name}"\navailable = {value}\n'
        for name, value in (("a", 0.1), ("a_s1", 0.2), ("a_s1_s1", 0.3))
    )
    resolved = describe(f"[campaign]\nseeds = [1, 11, 111]\n{conditions}")

    runs = [run for _, _, run in runs_of(resolved)]
    assert len(set(runs)) == len(runs) == 12


# What is refused


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (
            "[factors]\nnoise = 3\n",
            "factors.noise: expected a list of values, or a table of levels",
        ),
        ("[factors]\nnoise = []\n", "factors.noise: expected a list of values, or a table of leve"),
        ("[factors.noise]\n", "factors.noise: expected a list of values, or a table of levels"),
        ("[factors]\nnoise = [[0.1]]\n", "factors.noise: expected plain values, got \\[0.1\\]"),
        ("[factors.hard]\nyes = 3\n", "factors.hard.yes: expected a table of settings, got 3"),
        ("[factors]\nnosie = [0.1]\n", "condition nosie0.1: unknown sphere setting 'nosie'"),
        ("[factors]\nnoise = [7.0]\n", "condition noise7: sphere settings: noise: Input should"),
        ("[factors]\nsaerch.x = [1]\n", "factors.saerch.x: expected a table of settings, got"),
        ('[factors]\n"saerch.x" = [1]\n', "unknown sphere setting 'saerch.x'"),
        (
            '[factors]\nnoise = [0.1]\n"training.noise" = [0.2]\n',
            "factors.training.noise: another factor sets training.noise too",
        ),
        (
            "[factors]\nnoise = [0.1]\n[factors.hard]\nyes = { training.noise = 0.2 }\n",
            "factors.hard: another factor sets training.noise too",
        ),
        (
            '[factors.hard]\nyes = { noise = 0.1, "training.noise" = 0.2 }\n',
            "factors.hard.yes: training.noise is given twice",
        ),
        (
            '[[campaign.conditions]]\nname = "a"\nnoise = 0.1\ntraining.noise = 0.2\n',
            "campaign.conditions, entry 1: training.noise is given twice",
        ),
        (
            "[[campaign.conditions]]\nnoise = 0.1\n",
            "conditions, entry 1: expected a name, got None",
        ),
        ("[[campaign.conditions]]\nname = 3\n", "conditions, entry 1: expected a name, got 3"),
        (
            '[[campaign.conditions]]\nname = "a"\ntraining = 3\n',
            "entry 1: training: expected a table \\[training\\], got 3",
        ),
        (
            '[[campaign.conditions]]\nname = "a"\nnoise = 0.1\n'
            '[[campaign.conditions]]\nname = "b"\nnoise = 0.1\n',
            "conditions a and b are the same configuration",
        ),
        (
            '[[campaign.conditions]]\nname = "a"\nnoise = 0.1\n[factors]\nnoise = [0.1]\n',
            "conditions a and noise0.1 are the same configuration",
        ),
        *(
            (
                f'[[campaign.conditions]]\nname = "a"\n{key} = 3\n',
                f"condition a: {key} is the same for all cells of a campaign of training runs",
            )
            for key in ("search.seed", "budget.max_evals", "evaluation.seed", "backend.workers")
        ),
        (
            '[[campaign.conditions]]\nname = "a"\ncampaign.seeds = [3]\n',
            "condition a: campaign.seeds is the same for all cells",
        ),
        (
            '[[campaign.conditions]]\nname = "a"\nsearch.tire = "min"\n',
            "unknown key in \\[search\\] \\(condition a\\) 'tire'. Did you mean 'tier'?",
        ),
        (
            '[[campaign.conditions]]\nname = "a"\nobjective = "cliff"\n',
            "unknown sphere setting 'obj",
        ),
    ],
)
def test_what_makes_no_campaign_is_refused_by_name(
    text: str, named: str, describe: Describe
) -> None:
    with pytest.raises(ValueError, match=named):
        terms_of(describe(text))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("seeds = []", "campaign.seeds: List should have at least 1 item"),
        ("seeds = [0]", "campaign.seeds.0: Input should be greater than or equal to 1, got 0"),
        ("seeds = [-1]", "campaign.seeds.0: Input should be greater than or equal to 1, got -1"),
        ("seeds = [1, 4294967296]", "campaign.seeds.1: Input should be less than 4294967296"),
        ("seeds = [1, 2, 1]", "campaign.seeds: expected each seed once, 1 is there twice"),
        ("seeds = 3", "campaign.seeds: expected a list, got 3"),
        ("seeds = [1.0]", "campaign.seeds.0: Input should be a valid integer, got 1.0"),
        ('seeds = ["1"]', "campaign.seeds.0: Input should be a valid integer, got '1'"),
        ("max_workers = 0", "campaign.max_workers: Input should be greater than or equal to 1"),
        ("stagger_seconds = -1", "campaign.stagger_seconds: Input should be greater than or equal"),
        ("parallel = 1", "campaign.parallel: Input should be a valid boolean"),
        ('cell = "run"', "campaign.cell: Input should be 'training' or 'search', got 'run'"),
        ("conditions = 3", "campaign.conditions: expected a list, got 3"),
        ("conditions = [3]", "campaign.conditions.0: Input should be a valid dictionary, got 3"),
        ("[campaign.conditions]\nname = 3", "campaign.conditions: expected a list"),
        ("condition = []", "unknown key in .campaign. .*'condition'. Did you mean 'conditions'?"),
    ],
)
def test_a_table_campaign_that_cannot_be_is_refused(
    text: str, named: str, describe: Describe
) -> None:
    with pytest.raises(ValueError, match=named):
        describe(f"[factors]\nnoise = [0.01]\n[campaign]\n{text}\n")


def test_no_condition_sets_what_no_evaluation_has(describe: Describe) -> None:
    for cell in ("training", "search"):
        resolved = describe(
            f'[campaign]\ncell = "{cell}"\n'
            '[[campaign.conditions]]\nname = "a"\nkeep_best = false\n',
            above="",
        )
        with pytest.raises(ValueError, match="condition a: keep_best is for a training by itself"):
            cells_of(resolved)


def test_a_thousand_conditions_are_looked_at_in_a_moment(describe: Describe) -> None:
    levels = ", ".join(f"{n / 1e6}" for n in range(1, 1001))

    cells = cells_of(describe(f"[factors]\nnoise = [{levels}]\n[campaign]\ncontrols = false\n"))

    assert len(cells) == 1000


def test_a_campaign_in_a_ledger_has_different_names_and_seeds() -> None:
    objective = registry.load(ObjectiveSpec(name="sphere", settings={"dimension": 2}))
    one = {"name": "a", "settings": {}, "knobs": objective.space.decode(objective.space.baseline)}

    with pytest.raises(ValueError, match="different names, got twice: a"):
        CampaignTerms.model_validate({"name": "c", "conditions": [one, one], "seeds": [1]})
    with pytest.raises(ValueError, match="seeds must differ"):
        CampaignTerms.model_validate({"name": "c", "conditions": [one], "seeds": [1, 1]})
