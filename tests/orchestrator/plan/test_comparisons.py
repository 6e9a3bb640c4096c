"""The seeds of comparisons are fresh, however long the search becomes."""

import pytest

from budgets.plan import Calibration, Devices, Plan
from objectives import registry
from objectives.api import ObjectiveSpec
from orchestrator.plan.comparisons import confirmation_seeds, evaluation_seeds
from orchestrator.plan.resolve import search_plan
from tests.asking import config_for

CPU = Devices(count=2, kind="cpu", name="some processor", threads=1, memory_bytes=1 << 30)


def nanochat() -> Plan:
    objective = registry.load(ObjectiveSpec(name="nanochat"))
    request = config_for("phase1", "target", objective)
    return search_plan(request, CPU, Calibration(assumed_seconds=4.0))


@pytest.mark.parametrize("generations", [3, 10, 2000])
def test_fresh_seeds_stay_the_same_however_long_the_search_becomes(generations: int) -> None:
    plan = nanochat()
    resolved = plan.resolved.model_copy(update={"generations": generations})
    longer = plan.model_copy(update={"resolved": resolved})
    assert confirmation_seeds(longer) == confirmation_seeds(plan)
    searched = {s for g in range(generations) for s in evaluation_seeds(longer, g)}
    assert not searched & {*confirmation_seeds(longer).verdict}
