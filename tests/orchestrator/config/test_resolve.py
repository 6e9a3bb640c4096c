"""Default < preset < profile < file < --set < flag, and `explain` names which one it was."""

from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from objectives.nanochat.config import NanochatConfig
from orchestrator.cli.options import FILE as FILE_OPTION
from orchestrator.cli.options import FOLLOWING, SEARCH, Asked, named
from orchestrator.cli.set_up import values_document as as_dict
from orchestrator.config import OPTIONS, Config, Layers, resolve
from orchestrator.plan.resolve import engine_of, pacing_of, window_of

Make = Callable[..., Config]
Typed = Callable[..., Asked]

LAYERS = ("preset", "profile", "file", "--set")
MICRO = {"preset": 2, "profile": 1, "file": 5, "--set": 6}
"""Of micro_batch_size: what the preset `quick`, the profile `memory_efficient`, ... say."""


NAMES = {"preset": "quick", "profile": "memory_efficient"}


def layered(make: Make, layers: tuple[str, ...]) -> Config:
    return make(
        "[training]\nmicro_batch_size = 5\n" if "file" in layers else "",
        ["training.micro_batch_size=6"] if "--set" in layers else (),
        flags={key: (NAMES[key], f"--{key}") for key in ("preset", "profile") if key in layers},
    )


@pytest.mark.parametrize(
    "layers",
    [(), *((one,) for one in LAYERS), *combinations(LAYERS, 2), LAYERS],
    ids=lambda layers: "<".join(("default", *layers)),
)
def test_the_later_layer_has_the_last_word_and_is_named(
    layers: tuple[str, ...], resolved: Make
) -> None:
    own = layered(resolved, layers)

    last = layers[-1] if layers else "default"
    default = NanochatConfig.model_fields["micro_batch_size"].default
    said = as_dict(own)["training.micro_batch_size"]
    assert said["value"] == MICRO.get(last, default)
    source = {
        "preset": "preset quick",
        "profile": "profile memory_efficient",
        "file": f"file {own.file}",
    }
    assert said["source"] == source.get(last, last)
    assert own.tuned.spec.settings["micro_batch_size"] == said["value"]


@pytest.mark.parametrize("layers", list(combinations(("file", "--set", "flag"), 2)), ids="<".join)
def test_a_flag_goes_before_all_others(
    layers: tuple[str, ...], write: Callable[..., Path], typed: Typed
) -> None:
    file = write('objective = "sphere"\n' + ("[search]\nseed = 5\n" if "file" in layers else ""))
    sets = ("--set", "search.seed=6") if "--set" in layers else ()
    flags = ("--seed", "7") if "flag" in layers else ()

    asked = typed(file, *sets, *flags)

    last = {"file": (5, f"file {file}"), "--set": (6, "--set"), "flag": (7, "--seed")}[layers[-1]]
    assert (asked.config.search.seed, asked.config.source("search.seed")) == last


@pytest.mark.parametrize("kind", ["preset", "profile"])
def test_a_preset_may_be_named_by_file_by_set_and_by_flag(kind: str, resolved: Make) -> None:
    first, second, third = {
        "preset": ("quick", "low-memory", "high"),
        "profile": ("fast", "balanced", "memory_efficient"),
    }[kind]
    text = f'{kind} = "{first}"\n'
    for own, name, source in (
        (resolved(text), first, f"file {resolved(text).file}"),
        (resolved(text, [f"{kind}={second}"]), second, "--set"),
        (
            resolved(text, [f"{kind}={second}"], flags={kind: (third, f"--{kind}")}),
            third,
            f"--{kind}",
        ),
    ):
        said = as_dict(own)
        assert (said[kind]["value"], said[kind]["source"]) == (name, source)
        assert said["training.micro_batch_size"]["source"] == f"{kind} {name}"


def test_a_condition_of_a_campaign_is_laid_over_everything(resolved: Make) -> None:
    given = resolved("[training]\nn_layer = 3\n", ["n_layer=4"]).layers
    own = resolve(
        Layers(given.file, assignments=given.assignments, cell=("deep", {"training.n_layer": 5}))
    )

    assert as_dict(own)["training.n_layer"] == {"value": 5, "source": "condition deep"}


# Every option of the commands

FILE = """
objective = "ellipsoid"
runs_dir = "elsewhere"
[search]
phase = "phase1"
tier = "max"
run_id = "mine"
seed = 11
method = "plain"
sigma0 = 0.11
population = 12
generations = 3
seeds_per_candidate = 2
[evaluation]
seed = 13
limit_seconds = 14.0
stall_seconds = 15.0
assume_eval_seconds = 16.0
[budget]
max_evals = 1700
max_device_hours = 18.0
max_hours = 19.0
max_cost = 20.0
price_per_device_hour = 21.0
window = "22h"
safety_margin = "23m"
[verdict]
confirm_seeds = 24
rung = 25.0
rung_seeds = 26
[thresholds]
patience_generations = 27
patience_improve = 0.28
[backend]
executor = "local"
launcher = "exec"
device = "cpu"
workers = 2
threads = 1
max_concurrent = 3
slots_dir = "shared"
drain_seconds = 30.0
allow_network_fs = true
[backpressure]
enabled = true
window = 5
[track]
to = ["wandb"]
"""
"""Every key that an option has too, away from its default; but those that exclude each other."""

TYPED: dict[str, Any] = {
    "objective": "sphere",
    "runs_dir": "there",
    "search.tier": "min",
    "search.run_id": "other",
    "search.seed": 31,
    "evaluation.assume_eval_seconds": 35.0,
    "budget.max_evals": 1600,
    "budget.max_device_hours": 36.0,
    "budget.max_hours": 37.0,
    "budget.max_cost": 38.0,
    "budget.window": "40h",
    "backend.executor": "inline",
    "backend.device": "auto",
    "backend.workers": 1,
    "track.to": ["mlflow"],
}
"""Of every key with an option that takes a value: another than the file's."""

NOT_TYPED = {"preset", "profile", "search.from", "search.variant", "backend.address"}
"""What no file has beside the others, and what is no value."""


def test_every_key_with_an_option_is_tried() -> None:
    assert set(OPTIONS) == {*TYPED, *NOT_TYPED}


def test_every_option_of_a_search_is_a_key_or_known_to_be_none() -> None:
    names = {option.name for option in (*FILE_OPTION, *FOLLOWING, *SEARCH)}
    others = {"config", "settings", "override", "reason", "accept_drift"}
    assert names == {*map(named, OPTIONS), *others}


def test_options_that_are_not_given_leave_the_file_its_say(
    write: Callable[..., Path], typed: Typed
) -> None:
    file = write(FILE)

    asked = typed(file)

    keys = {*TYPED, "backend.allow_network_fs", "backpressure.enabled"}
    assert {asked.config.source(key) for key in keys} == {f"file {file}"}
    config = asked.config
    assert (config.search.seed, config.evaluation.seed, config.search.tier) == (11, 13, "max")
    assert (config.budget.price_per_device_hour, config.budget.max_cost) == (21.0, 20.0)
    window, engine, pacing = window_of(config.budget), engine_of(config), pacing_of(config)
    assert window is not None
    assert (window.hours, window.margin_seconds) == (22.0, 23 * 60.0)
    assert (config.runs_dir, engine.kind, engine.launcher) == ("elsewhere", "local", "exec")
    assert (engine.device, engine.workers, engine.threads) == ("cpu", 2, 1)
    assert (config.backend.drain_seconds, config.backend.allow_network_fs) == (30.0, True)
    assert (pacing.max_concurrent, pacing.slots_dir) == (3, Path("shared"))
    assert (pacing.backpressure.enabled, pacing.backpressure.window) == (True, 5)
    assert config.track.to == ["wandb"]
    assert config.tuned.spec.name == "ellipsoid"
    named = config.thresholds.model_dump(exclude_unset=True)
    assert named == {"patience_generations": 27, "patience_improve": 0.28}
    assert config.evaluation.assume_eval_seconds == 16.0


@pytest.mark.parametrize("key", TYPED)
def test_an_option_that_is_given_goes_before_the_file(
    key: str, write: Callable[..., Path], typed: Typed
) -> None:
    value, flag = TYPED[key], OPTIONS[key].spelling

    asked = typed(write(FILE), flag, str(value[0] if isinstance(value, list) else value))

    assert as_dict(asked.config)[key] == {"value": value, "source": flag}
    others = {asked.config.source(other) for other in TYPED if other != key}
    assert others == {f"file {asked.config.file}"}


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("search.seed", "1"),
        ("runs_dir", "artifacts/cmaes"),
        ("backend.executor", "ray"),
    ],
)
def test_an_option_that_is_given_its_own_default_goes_before_the_file_too(
    key: str, text: str, write: Callable[..., Path], typed: Typed
) -> None:
    without_cost = FILE.replace("max_cost = 20.0\n", "")

    asked = typed(write(without_cost), OPTIONS[key].spelling, text)

    assert asked.config.source(key) == OPTIONS[key].spelling
    assert str(as_dict(asked.config)[key]["value"]).removesuffix(".0") == text


def test_back_pressure_that_a_file_turns_on_can_be_turned_off(
    write: Callable[..., Path], typed: Typed
) -> None:
    asked = typed(write(FILE), "--set", "backpressure.enabled=false")
    assert not asked.config.backpressure.enabled
    assert asked.config.backpressure.window == 5


def test_what_a_phase_2_follows_may_be_in_the_file_or_typed(
    write: Callable[..., Path], typed: Typed
) -> None:
    said = '[search]\nphase = "phase2"\nfrom = "one"\nvariant = "expanded"\n'

    asked = typed(write('objective = "sphere"\n' + said), "--from", "two")

    search = asked.config.search
    assert (search.phase, search.follows, search.variant) == ("phase2", "two", "expanded")


def test_what_no_evaluation_has_is_set_aside(resolved: Make) -> None:
    own = resolved("[training]\nkeep_best = false\nn_embd = 64\n")

    assert own.alone == {"keep_best": False}
    assert "keep_best" not in own.tuned.spec.settings
    assert as_dict(own)["training.keep_best"]["value"] is False


def test_the_condition_that_resolves_is_not_the_files_own(resolved: Make) -> None:
    """A cell changes nothing of what it was made from."""
    base = resolved("[training]\nn_layer = 3\n")
    before = as_dict(base)

    resolve(Layers(base.layers.file, cell=("deep", {"training.n_layer": 5})))

    assert as_dict(base) == before
