"""Reports made by hand: what is in them is known to the last number."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from budgets.events import Status
from budgets.report.model import Balance, BudgetReport
from budgets.statistics.comparison import Gain
from budgets.terms import Limits
from orchestrator.report.model import (
    Answer,
    ArmScores,
    Beside,
    Comparison,
    Curve,
    Distribution,
    Evaluation,
    FailureGroup,
    GenerationView,
    Identity,
    KnobView,
    Marginal,
    Noise,
    Provenance,
    Report,
    Session,
    Spread,
)

MOMENT = datetime(2026, 1, 2, tzinfo=UTC)


def evaluation(generation: int, candidate: int, **given: Any) -> Evaluation:
    """A healthy one of the search, of one second on the first device."""
    began = 10.0 * generation + candidate
    own: dict[str, Any] = {
        "panel": None,
        "generation": generation,
        "candidate": candidate,
        "arm": "",
        "seed": 7,
        "attempt": 1,
        "is_final": True,
        "is_short": False,
        "status": Status.OK,
        "score": 1.0 - 0.1 * generation + 0.01 * candidate,
        "point": (0.5, 0.25),
        "knobs": {"lr": 0.01, "depth": 4.0},
        "session": 0,
        "device": "worker 1",
        "began": began,
        "ended": began + 1.0,
        "seconds": 1.0,
        "startup_seconds": 0.1,
        "train_seconds": 0.8,
        "charged_seconds": 1.0,
        "peak_memory_bytes": 300 << 20,
        "steps": 10,
        "tokens": 100,
        "train_flops": 1e9,
        "eval_flops": 1e8,
        "cause": "",
        "whose": "",
        "recovered": False,
        "place": f"eval/gen_{generation:04d}/cand_{candidate:04d}/seed_7",
        "metrics": {},
    }
    own |= given
    if own["status"] != Status.OK:
        own["score"] = given.get("score")
    return Evaluation(**own)


def generation(number: int, evaluations: Sequence[Evaluation], **given: Any) -> GenerationView:
    """What its evaluations come to."""
    scores = [e.score for e in evaluations if e.score is not None]
    own: dict[str, Any] = {
        "number": number,
        "is_short": False,
        "is_told": True,
        "descent": 0,
        "began": 10.0 * number,
        "ended": 10.0 * number + 9.0,
        "candidates": len(evaluations),
        "healthy": len(scores),
        "failed": len(evaluations) - len(scores),
        "best": min(scores, default=None),
        "mean": sum(scores) / len(scores) if scores else None,
        "sd": 0.01 if len(scores) > 1 else None,
        "best_so_far": min(scores, default=None),
        "luck_so_far": 0.98 - 0.001 * number,
        "sigma": 0.2,
        "axis_ratio": 1.5,
        "favourite": (0.5, 0.25),
        "planned_device_hours": 0.5,
        "useful_device_hours": 0.4,
        "wasted_device_hours": 0.1,
        "idle_device_hours": 0.2,
        "reserved_device_hours": 0.0,
    }
    return GenerationView(**(own | given))


KNOBS = (
    KnobView(
        name="lr",
        kind="log10",
        low=1e-4,
        high=1.0,
        baseline=0.01,
        recommended=0.1,
        baseline_unit=0.5,
        recommended_unit=0.75,
    ),
    KnobView(
        name="depth",
        kind="int",
        low=2,
        high=8,
        step=2,
        baseline=4,
        recommended=2,
        baseline_unit=0.375,
        recommended_unit=0.125,
    ),
)

BALANCES = (
    Balance(currency="evaluations", spent=12, reserved=2, free=6, cap=20),
    Balance(currency="device-hours", spent=0.5, reserved=0.25, free=None, cap=None),
)

BUDGET = BudgetReport(
    run_id="made",
    phase="phase1",
    tier="target",
    objective="sphere",
    devices="2 x cpu",
    decision="continue",
    sentence="It goes on.",
    generations_finished=3,
    generations_planned=3,
    evaluations_by_status={"ok": 12},
    lost_attempts=0,
    balances=BALANCES,
    lost_device_hours=0.0,
    overrun_device_hours=0.0,
    overrun_hours=0.0,
    eval_seconds=1.0,
    expected_seconds=1.0,
    remaining_hours=0.0,
    baseline=None,
    luckiest_score=None,
    luckiest_of_noise=None,
    rows=(),
    recommendation=None,
    triggers=(),
    overrides=(),
    records=40,
    head="0" * 32,
)

NOISE = Noise(
    mean=1.0,
    sd=0.02,
    sd_low=0.01,
    sd_high=0.04,
    scores=(0.98, 1.0, 1.02),
    seconds=(0.9, 1.0, 1.1),
    peak_memory_bytes=(290 << 20,) * 3,
    median_seconds=1.0,
    p90_seconds=1.1,
    band=(0.96, 1.04),
)


def identity(**given: Any) -> Identity:
    own: dict[str, Any] = {
        "run_id": "made",
        "phase": "phase1",
        "tier": "target",
        "objective": "sphere",
        "score": "score",
        "began": MOMENT,
        "last": MOMENT,
        "is_over": True,
        "sessions": (session(0, 0.0),),
        "records": 40,
        "head": "0" * 32,
    }
    return Identity(**(own | given))


def session(number: int, began: float) -> Session:
    return Session(
        number=number,
        opened=MOMENT,
        began=began,
        ended=began + 30.0,
        host="here",
        workers=2,
        versions={},
    )


def unseen(part: Any) -> Any:
    """A part that no plot looks at."""
    return part.model_construct()


def report(evaluations: Sequence[Evaluation] = (), **given: Any) -> Report:
    """Of a search with these evaluations, and of each generation what they come to."""
    numbers = sorted({e.generation for e in evaluations if e.panel is None})
    luck = {} if given.get("noise", NOISE) is not None else {"luck_so_far": None}
    own: dict[str, Any] = {
        "identity": identity(),
        "answer": unseen(Answer),
        "budget": BUDGET,
        "knobs": KNOBS,
        "evaluations": tuple(evaluations),
        "in_flight": (),
        "generations": tuple(
            generation(n, [e for e in evaluations if (e.generation, e.panel) == (n, None)], **luck)
            for n in numbers
        ),
        "beside": (),
        "noise": NOISE,
        "distribution": None,
        "no_distribution": "no generation is over",
        "marginals": (),
        "arms": (),
        "comparisons": (),
        "curves": (),
        "no_curves": "nothing is logged",
        "failures": (),
        "provenance": unseen(Provenance),
        "limits": Limits(wall_seconds=2.0, memory_bytes=400 << 20),
    }
    return Report(**(own | given))


def gain(mean: float | None, lower: float | None, upper: float | None, pairs: int = 8) -> Gain:
    return Gain(
        pairs=pairs, mean=mean, sd=None, lower=lower, upper=upper, level=0.01, detectable=None
    )


def spread(number: int, sd: float, knobs: int = 2) -> Spread:
    return Spread(
        generation=number,
        sigma=sd,
        axis_ratio=1.0 + number,
        deviations=(sd,) * knobs,
        favourite=(0.5,) * knobs,
    )


def distribution(generations: int = 3, knobs: int = 2) -> Distribution:
    """Its knobs do not go together, but for the first two."""
    correlations = [[float(i == j) for j in range(knobs)] for i in range(knobs)]
    if knobs > 1:
        correlations[0][1] = correlations[1][0] = -0.75
    return Distribution(
        history=tuple(spread(n, 0.2 - 0.03 * n, knobs) for n in range(generations)),
        first_deviations=(0.2,) * knobs,
        correlations=tuple(map(tuple, correlations)),
        eigenvalues=tuple(float(2 ** (knobs - n)) for n in range(knobs)),
        axes=tuple(tuple(float(i == j) for j in range(knobs)) for i in range(knobs)),
        correlation_by_chance=0.4,
        condition_by_chance=3.0,
    )


def whole(run_id: str = "made") -> Report:
    """A search that ended in a Go, with something to show in every plot of a search."""
    own = [evaluation(g, c) for g in range(3) for c in range(4)]
    own[5] = evaluation(1, 1, status=Status.NAN, cause="nan", whose="configuration")
    own += [evaluation(0, 0, panel="winner", arm="mean", seed=s, began=40.0) for s in (1, 2, 3)]
    scores = {"baseline": (1.0, 1.01, 0.99), "mean": (0.9, 0.92, 0.88)}
    arms = [
        ArmScores(panel=panel, number=0, name=name, scores=dict(enumerate(scores[name], 1)))
        for panel, name in (("reference", "baseline"), ("winner", "mean"))
    ]
    marginals = [
        Marginal(
            knob=name,
            units=(0.1, 0.5, 0.9),
            excess=(-0.1, 0.0, 0.1),
            bin_units=(0.1, 0.9),
            bin_means=(-0.1, 0.1),
            bin_errors=(0.01, 0.01),
            slope=0.1,
            slope_error=0.01,
            stands=name == "lr",
        )
        for name in ("lr", "depth")
    ]
    return report(
        own,
        identity=identity(run_id=run_id),
        beside=(
            Beside(
                name="start-up",
                useful_device_hours=0.0,
                wasted_device_hours=0.0,
                idle_device_hours=0.3,
            ),
        ),
        distribution=distribution(),
        no_distribution="",
        marginals=tuple(marginals),
        arms=tuple(arms),
        comparisons=(
            Comparison(
                name="winner", against="baseline", gain=gain(0.1, 0.08, 0.12), is_decisive=True
            ),
            Comparison(
                name="mean (picking seeds)",
                against="baseline",
                gain=gain(0.02, -0.5, 0.54, pairs=2),
                is_decisive=False,
            ),
        ),
        curves=(
            Curve(
                name="baseline",
                seed=1,
                quantity="train loss",
                steps=(1.0, 10.0, 1000.0),
                values=(3.0, 2.5, 2.0),
            ),
        ),
        no_curves="",
        failures=(
            FailureGroup(
                whose="configuration",
                what="no score that can be compared",
                attempts=1,
                final=1,
                places=(),
                example="nan",
                log=(),
                log_from="",
            ),
        ),
    )


@dataclass(frozen=True)
class Made:
    """Parts of reports, and reports."""

    evaluation = staticmethod(evaluation)
    generation = staticmethod(generation)
    identity = staticmethod(identity)
    session = staticmethod(session)
    report = staticmethod(report)
    gain = staticmethod(gain)
    spread = staticmethod(spread)
    distribution = staticmethod(distribution)
    whole = staticmethod(whole)


@pytest.fixture
def made() -> Made:
    """Builders of reports."""
    return Made()
