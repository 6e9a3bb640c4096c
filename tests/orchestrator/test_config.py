"""A configuration: its layers and their origins, what is refused, and the plan that it becomes."""

import os
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from datetime import date
from itertools import combinations
from operator import attrgetter
from pathlib import Path
from typing import Any

import orjson
import pytest
import tomlkit
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from budgets.ledger import LEDGER, read
from budgets.state import fold
from objectives import registry
from objectives.files import LARGEST
from objectives.nanochat.config import NanochatConfig
from orchestrator.cli.app import program
from orchestrator.cli.plan import explained
from orchestrator.config import FLAGS as FLAGS_BY_KEY
from orchestrator.config import (
    SECTIONS,
    TOP,
    Config,
    flattened,
    format_value,
    parse_assignments,
    resolve,
)

Command = Callable[..., Any]

SPHERE = 'objective = "sphere"\n[backend]\nexecutor = "inline"\nworkers = 1\n'


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """`write(text)`: that text as `run.toml` in the test's own directory, which is where it is."""
    monkeypatch.chdir(tmp_path)

    def write_text(text: str) -> Path:
        Path("run.toml").write_text(text, encoding="utf-8")
        return Path("run.toml")

    return write_text


Write = Callable[[str], Path]


def values_of(config: Config) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = explained(config)[0]["values"]
    return found


# Layers

NAMES = {"preset": "quick", "profile": "memory_efficient"}
MICRO = {"preset": 2, "profile": 1, "file": 5, "--set": 6}
"""Of micro_batch_size: what the preset `quick`, the profile `memory_efficient`, ... say."""


@pytest.mark.parametrize(
    "layers", [(), *((one,) for one in MICRO), *combinations(MICRO, 2), tuple(MICRO)], ids="<".join
)
def test_the_later_layer_has_the_last_word_and_is_named(
    layers: tuple[str, ...], write: Write
) -> None:
    own = resolve(
        write("[training]\nmicro_batch_size = 5\n" if "file" in layers else ""),
        ["training.micro_batch_size=6"] if "--set" in layers else (),
        {key: (NAMES[key], f"--{key}") for key in NAMES if key in layers},
    )

    last = layers[-1] if layers else "default"
    default = NanochatConfig.model_fields["micro_batch_size"].default
    said = values_of(own)["training.micro_batch_size"]
    sources = {**{key: f"{key} {name}" for key, name in NAMES.items()}, "file": "file run.toml"}
    assert said == {"value": MICRO.get(last, default), "source": sources.get(last, last)}
    assert own.tuned.spec.settings["micro_batch_size"] == said["value"]


def test_a_flag_goes_before_all_others(write: Write) -> None:
    file = write('objective = "sphere"\npreset = "quick"\n[search]\nseed = 5\n')
    flags = {"search.seed": (7, "--seed"), "objective": ("nanochat", "--objective")}
    sets = ("search.seed=6", "preset=high")
    own = resolve(file, sets, flags)
    assert (own.search.seed, own.source("search.seed")) == (7, "--seed")
    assert own.source("training.micro_batch_size") == "preset high"


def test_every_key_with_an_option_is_read_from_the_command_line(
    command: Command, write: Write
) -> None:
    search = program(is_whole=True).commands["phase1"]
    own = {"FILE", "--set", "--override", "--reason", "--json"}
    spelled = {parameter.opts[0] for parameter in search.params}
    assert spelled - own - {"file"} == {flag.spelling for flag in FLAGS_BY_KEY.values()}


def test_what_no_evaluation_has_is_set_aside(write: Write) -> None:
    own = resolve(write("[training]\nkeep_checkpoints = 2\nn_embd = 64\n"))
    assert own.alone == {"keep_checkpoints": 2}
    assert "keep_checkpoints" not in own.tuned.spec.settings
    assert values_of(own)["training.keep_checkpoints"]["value"] == 2


# The plan that it becomes

WHOLE = """
objective = "sphere"
runs_dir = "runs"
training = { dimension = 3, noise = 0.01 }
search = { tier = "target", run_id = "whole", seed = 4, method = "plain", sigma0 = 0.1, \
population = 4, generations = 3, seeds_per_candidate = 2 }
evaluation = { seed = 9, limit_seconds = 40.0, stall_seconds = 30.0, assume_eval_seconds = 1.0 }
budget = { max_evals = 16, max_device_hours = 3.0, max_hours = 4.0, max_cost = 50.0, \
price_per_device_hour = 2.5, window = "6h", safety_margin = "10m" }
verdict = { confirm_seeds = 3, long_run = 2.0, long_run_seeds = 1 }
thresholds.go_seeds = 3
backend = { executor = "inline", device = "cpu", workers = 1, threads = 1, drain_seconds = 5.0 }
"""

TYPED = {key: flag.spelling for key, flag in FLAGS_BY_KEY.items()}
FLAGS = tuple(
    word
    for key, value in flattened(tomllib.loads(WHOLE), "WHOLE")
    for word in ((TYPED[key], str(value)) if key in TYPED else ("--set", f"{key}={value}"))
)
"""The same, each key by its flag where it has one."""

IN_THE_PLAN = {
    "objective": "objective.name",
    **{f"search.{name}": name for name in ("phase", "tier", "run_id")},
    **{f"search.{name}": f"search.{name}" for name in ("seed", "method", "sigma0")},
    "search.population": "resolved.population",
    "search.seeds_per_candidate": "resolved.seeds_per_candidate",
    "evaluation.seed": "evaluation_seed",
    "evaluation.limit_seconds": "limits.wall_seconds",
    "evaluation.stall_seconds": "limits.stall_seconds",
    "evaluation.assume_eval_seconds": "calibration.assumed_seconds",
    "budget.max_evals": "caps.evaluations",
    **{f"budget.max_{name}": f"caps.{name}" for name in ("device_hours", "hours", "cost")},
    "budget.price_per_device_hour": "price_per_device_hour",
    "budget.window": "caps.window.hours",
    "budget.safety_margin": "caps.window.margin_seconds",
    "verdict.confirm_seeds": "confirmation.seeds",
    "verdict.long_run": "confirmation.long_run.cost_factor",
    "verdict.long_run_seeds": "confirmation.long_run_seeds",
    "backend.device": "devices.kind",
    "backend.workers": "devices.count",
    "backend.threads": "devices.threads",
    "thresholds.go_seeds": "thresholds.go_seeds",
}
"""Where the ledger's first record has what a key says."""

TIMES = {"6h": 6.0, "10m": 600.0}

ELSEWHERE = {
    *("search.follows", "search.variant", "search.proxy"),
    "search.generations",  # the most there may be
    *("backend.executor", "backend.address", "backend.drain_seconds"),
    "backend.max_concurrent",
}


def test_what_explain_says_is_what_the_ledger_records(command: Command, write: Write) -> None:
    write(WHOLE)
    said = orjson.loads(command("explain", "run.toml", "--json").out)["values"]
    answer = command("run", "run.toml")
    assert answer.code in (0, 4), answer.err  # done, or a No-Go
    ledger = Path("runs/phase1/whole", LEDGER)
    plan = fold(read(ledger)[:1]).plan
    for key, place in IN_THE_PLAN.items():
        value = said[key]["value"]
        assert attrgetter(place)(plan) == TIMES.get(value, value), key
    searching = ("search", "budget", "evaluation", "verdict", "backend")
    keys = {f"{table}.{key}" for table in searching for key in SECTIONS[table].model_fields}
    assert keys - {*IN_THE_PLAN, *ELSEWHERE} == set()
    before = ledger.read_bytes()
    assert command("phase1", *FLAGS).code == answer.code
    assert ledger.read_bytes() == before
    write(WHOLE.replace("dimension = 3", "dimension = 2"))
    refused = command("run", "run.toml")
    assert "objective.settings.dimension: 3 -> 2" in refused.err
    assert ledger.read_bytes() == before


# What is refused

REFUSED = [
    ("[serach]\ntier = 'min'", "unknown key (file run.toml) 'serach'. Did you mean 'search'?"),
    ("search.teir = 'min'", "key in [search] (file run.toml) 'teir'. Did you mean 'tier'?"),
    ("thresholds.go_gian = 0.1", "[thresholds] (file run.toml) 'go_gian'. Did you mean 'go_gain'?"),
    ("seed = 3", "unknown key (file run.toml) 'seed'"),
    ("[training]\nn_embed = 64", "unknown nanochat setting 'n_embed'. Did you mean 'n_embd'?"),
    ("preset='quik'", "unknown nanochat preset 'quik'. Did you mean 'quick'?"),
    ("objective='sphere'\npreset='quick'", "unknown sphere preset 'quick'"),
    ("search = 3", "run.toml: search: expected a table [search], got 3"),
    ("search.sigma0 = nan", "search.sigma0: Input should be a finite number, got nan"),
    ("thresholds.go_seeds = true", "thresholds.go_seeds: expected a whole number"),
    ("objective='sphere'\ntraining.noise = 'much'", "noise: expected a number"),
    ("objective='sphere'\ntraining.noise = 'much'", "(file run.toml)"),
    ("[search]\nseed = 0\ntier = 'all'", "; file run.toml: search.seed: "),
    ("search.follows = 'x'", "belong to a phase2, which needs both"),
    ("[slurm]\nsetup = ['wget https://me:correct@host/x']", "a user name or a password in it"),
]


ASSIGNED = [
    ("search.tier", "--set: expected KEY=VALUE, got 'search.tier'"),
    ("serach.seed=3", "unknown key (--set) 'serach'. Did you mean 'search'?"),
    ("search.seed=three", "--set: search.seed: expected a whole number, got 'three'"),
    ("search.sigma0=NaN", "--set: search.sigma0: expected a number, got 'NaN'"),
    ("tier=min", "unknown sphere setting 'tier'"),
    ("slurm.setup=https://me:correct@host/x", "is a URL with a user name or a password"),
]


WRONG: list[tuple[str, list[str], str]] = [*((text, [], said) for text, said in REFUSED)]
WRONG += [(SPHERE, [assignment], said) for assignment, said in ASSIGNED]


@pytest.mark.parametrize(("text", "sets", "said"), WRONG, ids=range(len(WRONG)))
def test_what_may_not_be_said_is_refused_in_a_line_that_names_it(
    text: str, sets: list[str], said: str, write: Write
) -> None:
    tomllib.loads(text)
    with pytest.raises(ValueError, match=r".") as raised:
        _ = resolve(write(text), sets).tuned
    line = str(raised.value)
    assert said in line
    assert line.isprintable()
    assert "correct@" not in line


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=5,
    )
)
def test_what_is_written_as_an_assignment_is_read_back_as_it_was(value: Any) -> None:
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError:  # half of a pair of surrogates
        return
    assert parse_assignments([f"x={format_value(value)}"]) == {"training.x": value}


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (os.mkfifo, "is not a plain file"),
        (lambda file: file.symlink_to("/dev/zero"), "is not a plain file"),
        (lambda file: file.symlink_to(file), "is a symbolic link"),
        (lambda file: file.write_bytes(b"#" * (LARGEST + 1)), "expected 1048576 bytes at most"),
        (lambda file: file.write_bytes(b"a = " + b"[" * 50_000), "maximum recursion depth"),
        (lambda file: file.write_bytes(b"a = 1\na = 2\n"), "not a TOML file: Cannot overwrite"),
    ],
)
def test_what_is_no_configuration_is_refused_and_hangs_nobody(
    make: Callable[[Path], Any], said: str, command: Command, tmp_path: Path
) -> None:
    make(tmp_path / "run.toml")
    answer = command("run", "run.toml")
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert said in answer.err
    assert [path.name for path in tmp_path.iterdir()] == ["run.toml"]


# Whatever a file says: a configuration that can be shown, or a ValueError. Never anything else.

FIELDS = {
    **{table: tuple(section.model_fields) for table, section in SECTIONS.items()},
    "training": (*registry.settings_of("sphere").model_fields, "n_embd"),
    "factors": ("noise", "hard", "training.noise", "search.sigma0"),
}
KEYS = [(table, name) for table, names in FIELDS.items() for name in (*names, "x")]
KEYS += [("", name) for name in (*TOP, *FIELDS, "x")]

TABLE_NAMES = st.sampled_from(
    ["a", "name", "training", "search", "noise", "training.noise", "", "|"]
)
TEXT = st.one_of(
    st.sampled_from(["sphere", "min", "phase2", "12h", "a", "search", "training", "", "|`*"]),
    st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=6),
)
PLAIN = st.one_of(
    *(st.booleans(), st.integers(-3, 40), st.integers(-(2**70), 2**70), st.floats(width=32)),
    *(TEXT, st.dates(), st.datetimes(), st.times()),
)
VALUE = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TABLE_NAMES, inner, max_size=3),
    max_leaves=6,
)

Some = Mapping[tuple[str, str], Any]


def written(values: Some) -> str:
    document: dict[str, Any] = {}
    for (table, name), value in sorted(values.items(), key=lambda item: item[0]):  # "" first
        own = document.setdefault(table, {}) if table else document
        if isinstance(own, dict):
            own[name] = value
    document.setdefault("objective", "sphere")
    return tomlkit.dumps(document)


def shown(file: Path) -> Config | None:
    """It can be shown in either form, or is refused with a reason."""
    try:
        resolved = resolve(file)
        document, lines = explained(resolved)
    except ValueError:
        return None
    assert orjson.dumps(document)
    assert "\n".join(lines)
    return resolved


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(KEYS), VALUE, max_size=5))
@example({("slurm", "setup"): 2**64})
@example({("training", "noise"): 10**400})
@example({("factors", "hard"): {"a": {"training": {"training.noise": 0.1}}}})
@example({("campaign", "conditions"): [{"name": "a", "": 3}]})
@example({("factors", "noise"): [float("nan")]})
@example({("factors", "noise"): [date(2000, 1, 1)]})
@example({("slurm", "setup"): [], ("", "slurm"): {}})
def test_any_file_is_shown_or_refused(values: Some) -> None:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "run.toml"
        file.write_text(written(values), encoding="utf-8")
        if (resolved := shown(file)) is not None:
            given = {".".join(filter(None, key)) for key in values}
            assert all(resolved.source(key) != "default" for key in given if "slurm." in key)
