"""What is compared beside a search: whole runs in this process, and panels by themselves."""

from collections.abc import Callable
from typing import Any

import pytest

from budgets.accounts import Accounts
from budgets.events import Reserved, Settled, Status
from budgets.ledger import LEDGER, read
from budgets.plan import Calibration, Configuration, Devices, Plan
from budgets.state import Attempt, Batch, RunState, apply, fold
from objectives import registry
from objectives.api import ObjectiveSpec
from orchestrator.plan.comparisons import due, panel
from orchestrator.plan.resolve import search_plan
from orchestrator.plan.seeds import confirmation_seeds, evaluation_seeds
from orchestrator.records.runs import Result
from tests.asking import config_for

RunSearch = Callable[..., Result]


@pytest.fixture(scope="module")
def go(tmp_path_factory: pytest.TempPathFactory, run_search: RunSearch) -> Result:
    """A whole run of a few generations of a sphere, compared on 5 fresh seeds."""
    return run_search(
        tmp_path_factory.mktemp("go"),
        "sphere",
        {"dimension": 2, "noise": 0.005},
        tier="target",
        max_evals=24,
        confirm_seeds=5,
    )


def test_nobody_is_judged_on_a_seed_that_was_looked_at(go: Result) -> None:
    state = go.state
    seeds = confirmation_seeds(state.plan)
    searched = {seed for g in state.generations for seed in g.seeds[0]}
    assert state.plan.calibration is not None
    known = searched | {sample.seed for sample in state.plan.calibration.samples}
    fresh = (*seeds.picking, *seeds.verdict, *seeds.rung)
    assert len(set(fresh)) == 3 + 5 + 2
    assert not known & set(fresh)
    assert set(state.comparisons["finalists"].seeds) == {seeds.picking}
    assert state.comparisons["winner"].seeds == (seeds.verdict,)
    assert state.comparisons["reference"].seeds == ((*seeds.picking, *seeds.verdict),)
    assert set(state.comparisons["rung"].seeds) == {seeds.rung}


def test_a_panel_is_due_once_and_the_same_whenever_it_is_asked(go: Result) -> None:
    records = read(go.directory / LEDGER).records
    for number, record in enumerate(records):
        if record.event.kind == "comparison_asked":
            state = fold(records[:number])
            assert due(state) == record.event
            apply(state, record)
            assert due(state) is None


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
    event = panel(state, name, state.plan.confirmation)
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


def test_the_reference_is_known_before_the_search() -> None:
    plan = nanochat()
    own, seeds = ask(state_of(plan), "reference"), confirmation_seeds(plan)
    baseline, control = own.configurations
    assert (baseline.name, baseline.settings) == ("baseline", {})
    assert own.seeds[0] == (*seeds.picking, *seeds.verdict)
    assert (control.name, control.settings["model"]) == ("synapses off", "gpt")
    assert control.point == baseline.point
    assert own.seeds[1] == seeds.verdict[:5]


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


def test_an_earlier_winner_is_compared_on_the_seeds_of_the_new_one() -> None:
    plan = nanochat()
    assert plan.confirmation is not None
    point = tuple(0.4 for _ in plan.space.knobs)
    earlier = plan.confirmation.model_copy(update={"incumbent": point})
    own = ask(state_of(plan.model_copy(update={"confirmation": earlier})), "reference")
    assert [arm.name for arm in own.configurations] == ["baseline", "incumbent", "synapses off"]
    assert (own.configurations[1].point, own.seeds[1]) == (point, confirmation_seeds(plan).verdict)


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
