"""What is compared beside a search: whole runs in this process, and panels by themselves."""

from collections.abc import Callable
from typing import Any

import pytest

from budgets.accounts import Accounts
from budgets.events import Reserved, Settled, Status
from budgets.plan import Calibration, Configuration, Devices, Plan
from budgets.state import Attempt, Batch, RunState
from objectives import registry
from objectives.api import ObjectiveSpec
from orchestrator.plan.comparisons import comparison, confirmation_seeds, evaluation_seeds
from orchestrator.plan.resolve import search_plan
from orchestrator.records.runs import Result
from tests.asking import config_for

RunSearch = Callable[..., Result]


# Controls


CPU = Devices(count=2, kind="cpu", name="some processor", threads=1, memory_bytes=1 << 30)
GPU = CPU.model_copy(update={"kind": "cuda"})


def nanochat(devices: Devices = CPU, **confirm: Any) -> Plan:
    request = config_for(
        "phase1",
        "target",
        registry.load(ObjectiveSpec(name="nanochat")),
        **confirm,
    )
    return search_plan(request, devices, Calibration(assumed_seconds=4.0))


def state_of(plan: Plan) -> RunState:
    return RunState(
        plan, plan, "g", 0, "h", 1, Accounts(plan.caps, comparison_cap=plan.comparison_evaluations)
    )


def settle(own: Batch, place: int, score: float | None, **fields: Any) -> None:
    """All evaluations of the arm, alike."""
    for seed in own.seeds[place]:
        key: dict[str, Any] = {
            "comparison": own.comparison,
            "generation": 0,
            "candidate": place,
            "seed": seed,
            "attempt": 1,
        }
        result = Settled(
            **key,
            status=Status.NAN if score is None else Status.OK,
            score=score,
            charged_ms=1000,
            seconds=10.0,
            **fields,
        )
        own.attempts[place, seed] = (Attempt(0, Reserved(**key, reserve_ms=1000), result),)
        own.pending.remove((place, seed))


def ask(state: RunState, name: Any) -> Batch:
    """The panel as it would be asked now."""
    assert state.plan.confirmation is not None
    event = comparison(state, name)
    own = Batch(name, 0, event.configurations, event.seeds)
    state.comparisons[name] = own
    return own


def compared(plan: Plan, *arms: dict[str, Any]) -> tuple[Configuration, ...]:
    """The winner's panel, when the reference's arms took what these say."""
    state = state_of(plan)
    reference = ask(state, "reference")
    for place, fields in enumerate(arms):
        settle(reference, place, **{"score": 3.0, **fields})
    best = Configuration(name="average", point=reference.configurations[0].point)
    seeds = confirmation_seeds(plan).picking
    finalists = Batch("finalists", 0, (best,), (seeds,))
    settle(finalists, 0, 2.9)
    state.comparisons["finalists"] = finalists
    return ask(state, "winner").configurations


@pytest.mark.parametrize(
    ("own", "factor"), [(4.0, 1.5), (6.0, 1.0), (7.0, 0.86), (5.9, 1.0), (0.5, 12.0)]
)
def test_a_control_gets_the_seconds_of_the_baseline(own: float, factor: float) -> None:
    metrics = {"train_cpu_seconds": own}
    _, control = compared(nanochat(), {"metrics": {"train_cpu_seconds": 6.0}}, {"metrics": metrics})
    assert control.name == f"synapses off at equal seconds ({factor:g} x FLOPs)"
    assert control.settings["model"] == "gpt"
    plain = registry.load(ObjectiveSpec(name="nanochat", settings=control.settings))
    equal = registry.load(ObjectiveSpec(name="nanochat"))
    assert plain.spec.settings["target_flops"] == pytest.approx(
        factor * equal.spec.settings["target_flops"]
    )


def test_on_a_gpu_the_wall_of_the_training_counts() -> None:
    baseline = {"train_seconds": 6.0, "cpu_seconds": 9.0, "metrics": {"train_cpu_seconds": 9.0}}
    control = {"train_seconds": 3.0, "cpu_seconds": 9.0, "metrics": {"train_cpu_seconds": 9.0}}
    assert "(2 x FLOPs)" in compared(nanochat(GPU), baseline, control)[1].name


@pytest.mark.parametrize(
    "control", [{"cpu_seconds": 0.0}, {"score": None, "cpu_seconds": 4.0}], ids=["0 s", "failed"]
)
def test_without_a_time_there_is_no_control_at_equal_seconds(control: dict[str, Any]) -> None:
    assert [arm.name for arm in compared(nanochat(), {"cpu_seconds": 6.0}, control)] == ["average"]


# Seeds


@pytest.mark.parametrize("generations", [3, 10, 2000])
def test_fresh_seeds_stay_the_same_however_long_the_search_becomes(generations: int) -> None:
    plan = nanochat()
    longer = plan.model_copy(
        update={"resolved": plan.resolved.model_copy(update={"generations": generations})}
    )
    assert confirmation_seeds(longer) == confirmation_seeds(plan)
    searched = {s for g in range(generations) for s in evaluation_seeds(longer, g)}
    assert not searched & {*confirmation_seeds(longer).verdict}
