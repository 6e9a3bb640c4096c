"""Whatever a file says: a configuration that can be shown, or a ValueError. Never anything else."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import tomlkit
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from budgets.plan import Thresholds
from objectives import registry
from orchestrator.cli import set_up
from orchestrator.config import SECTIONS, TOP, Config, Layers, resolve
from orchestrator.matrix import campaign_plan as plan
from orchestrator.matrix.campaign import terms_of
from orchestrator.plan.resolve import check_beginning

FIELDS = {
    **{table: tuple(section.keys()) for table, section in SECTIONS.items()},
    "thresholds": tuple(Thresholds.model_fields),
    "training": (*registry.named("sphere").settings, "n_embd"),
    "factors": ("noise", "hard", "training.noise", "search.sigma0"),
    "slurm": ("setup",),
}
KEYS = [(table, name) for table, names in FIELDS.items() for name in (*names, "x")]
KEYS += [("", name) for name in (*TOP, *FIELDS, "x")]

NAMES = st.sampled_from(["a", "name", "training", "search", "noise", "training.noise", "", "|"])
TEXT = st.one_of(
    st.sampled_from(["sphere", "min", "phase2", "12h", "a", "search", "training", "", "|`*"]),
    st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=6),
)
PLAIN = st.one_of(
    st.booleans(),
    st.integers(-3, 40),
    st.integers(-(2**70), 2**70),
    st.floats(width=32),
    TEXT,
    st.dates(),
    st.datetimes(),
    st.times(),
)
VALUE = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)

Some = Mapping[tuple[str, str], Any]


def written(values: Some) -> str:
    document: dict[str, Any] = {}
    for (table, name), value in sorted(values.items(), key=lambda item: item[0]):  # "" first
        if table:
            own = document.setdefault(table, {})
            if isinstance(own, dict):
                own[name] = value
        else:
            document[name] = value
    document.setdefault("objective", "sphere")
    return tomlkit.dumps(document)


def shown(given: Layers) -> Config | None:
    """It can be shown in either form, or is refused with a reason."""
    try:
        resolved = resolve(given)
        check_beginning(resolved)
        if resolved.campaign is not None:
            terms_of(resolved)
    except ValueError:
        return None
    values = set_up.values_document(resolved)
    assert orjson.dumps(values)
    rows = [line for line in set_up.values_page(resolved) if line.startswith("| ")]
    # A long table has a row for each of its parts.
    assert len([row for row in rows if row != "| key | value | from |"]) >= len(values)
    if resolved.campaign is not None:
        assert plan.runs_document(resolved)["total_runs"] > 0
        assert "\n".join(plan.runs_page(resolved))
    return resolved


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(KEYS), VALUE, max_size=5))
@example({("slurm", "setup"): 2**64})
@example({("training", "noise"): 10**400})
@example({("factors", "hard"): {"a": {"training": {"training.noise": 0.1}}}})
@example({("campaign", "conditions"): [{"name": "a", "": 3}]})
@example({("factors", "noise"): [float("nan")]})
@example({("slurm", "setup"): [], ("", "slurm"): {}})
def test_any_file_is_shown_or_refused(values: Some) -> None:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "run.toml"
        file.write_text(written(values), encoding="utf-8")

        resolved = shown(Layers(file))

        if resolved is not None:
            given = {".".join(filter(None, key)) for key in values}
            assert {key for key in given if key.startswith("slurm.")} <= set(resolved.sources)


ASSIGNED = st.one_of(
    TEXT,
    st.sampled_from(["\udcff", '"\\ud800"', "{", "[[]]", '{"a": {"b": 1}}', "1e999", "-0", "NaN"]),
    st.integers().map(str),
    st.floats().map(str),
)


@settings(max_examples=200)
@given(st.dictionaries(st.sampled_from(KEYS), ASSIGNED, max_size=4))
@example({("slurm", "setup"): str(2**64)})
@example({("slurm", "setup"): "\udcff"})
@example({("training", "noise"): '"\\ud800"'})
@example({("slurm", "setup"): "[" * 20 + "]" * 20})
def test_any_assignments_are_taken_or_refused(values: Mapping[tuple[str, str], str]) -> None:
    sets: Sequence[str] = [
        f"{'.'.join(filter(None, key))}={value}" for key, value in values.items()
    ]

    shown(Layers(assignments=[*sets], flags={"objective": ("sphere", "--objective")}))
