"""Where two plans differ: provenance counts as far as it may decide a score."""

from typing import Any

import pytest

from budgets.plan import Devices, Plan
from objectives import registry
from objectives.api import ObjectiveSpec
from orchestrator.plan.differences import differences, differing, in_short
from orchestrator.plan.resolve import search_plan
from tests.asking import config_for

BEFORE: dict[str, str | int] = {"commit": "a" * 40, "dirty": 1, "data_sha256": "d" * 64}
COMMITTED = BEFORE | {"commit": "b" * 40, "dirty": 0}


@pytest.fixture
def plan() -> Plan:
    """The plan of a search whose sources were at a commit, with changes."""
    devices = Devices(count=2, kind="cpu", name="x", threads=1, memory_bytes=1 << 30)
    config = config_for("phase1", "min", registry.load(ObjectiveSpec(name="sphere")))
    return search_plan(config, devices, None).model_copy(update={"provenance": BEFORE})


@pytest.mark.parametrize(
    ("provenance", "expected"),
    [
        (BEFORE, []),
        (COMMITTED, []),
        (BEFORE | {"program_torch": "2.6"}, ["provenance.program_torch: None -> 2.6"]),
        (COMMITTED | {"data_sha256": "e"}, [f"provenance.data_sha256: {'d' * 12}... -> e"]),
    ],
)
def test_a_commit_is_for_the_record(
    provenance: dict[str, str | int], expected: list[str], plan: Plan
) -> None:
    assert differences(plan, plan.model_copy(update={"provenance": provenance})) == expected


def test_a_list_of_the_same_length_shows_which_of_it_differs(plan: Plan) -> None:
    def starting(*argv: str) -> Any:
        return plan.model_copy(
            update={"objective": ObjectiveSpec(name="own", settings={"argv": list(argv)})}
        )

    one, other, longer = starting("python", "a.py"), starting("python", "b.py"), starting("python")
    assert differences(one, other) == ["objective.settings.argv[1]: a.py -> b.py"]
    [whole] = differences(one, longer)
    assert whole == "objective.settings.argv: ['python', 'a.py'] -> ['python']"


def test_long_values_are_shown_where_they_differ() -> None:
    long = "/data" + 12 * "/folder"
    (said,) = differing("data", f"{long}/a", f"{long}/b")
    assert said.startswith("data: ...")
    assert "/folder/a -> ..." in said
    assert said.endswith("/folder/b")
    assert list(differing("data", 1, "1")) == ["data: 1 -> '1'"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (["objective.name: a -> b", "space.knobs: [] -> [1]", "search.start: 0 -> 1"], [0]),
        (["space.knobs[0].low: 0 -> 1", "objective_fingerprint: a -> b"], [0, 1]),
        (["resolved.generations: 1 -> 2", "search.seed: 1 -> 2"], [1]),
    ],
)
def test_what_follows_from_another_objective_is_left_out(
    changed: list[str], said: list[int]
) -> None:
    assert in_short(changed) == "; ".join(changed[place] for place in said)
