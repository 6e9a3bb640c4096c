"""`check knobs`: whether each knob, moved alone to the ends of its range, moves the score."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from budgets.plan import Calibration, Devices, Envelope, Phase, Plan
from objectives.space import Knob, SearchSpace
from orchestrator.config import Config
from orchestrator.matrix.matrix import within
from orchestrator.plan.resolve import caps_for, family_of, plan_of, short_hash
from orchestrator.records.recommended import Point

CHECK_SEEDS = 8
LEAST_SEEDS = 2  # a spread needs two


@dataclass(frozen=True)
class KnobCheck:
    """What shall be checked. The `config` says on which objective and within what."""

    config: Config
    seeds: int = CHECK_SEEDS
    knobs: tuple[str, ...] = ()  # empty: all
    phase: ClassVar[Phase] = "check"

    def names(self) -> tuple[str, ...]:
        """The knobs to check, in the space's order. Raises ValueError on one it does not have."""
        objective = self.config.tuned
        known = [knob.name for knob in objective.space.knobs]
        if unknown := [repr(name) for name in self.knobs if name not in known]:
            raise ValueError(
                f"--knobs: {objective.spec.name} has no {', '.join(unknown)}, expected some of "
                f"{', '.join(known)}"
            )
        return tuple(name for name in known if name in self.knobs or not self.knobs)

    def points(self) -> tuple[Point, ...]:
        """All that is evaluated, what it is compared with first."""
        return check_points(self.config.tuned.space, self.names())

    def name(self, kind: str) -> str:
        """The check's id. What was asked decides it, so the same command finds the same check."""
        asked = (*self.names(), self.seeds, *within(self.config))
        return f"{family_of(self.config.tuned, kind)}-{short_hash(repr(asked))}"

    def plan(self, devices: Devices, calibration: Calibration | None) -> Plan:
        """One generation, every point on the same seeds.

        A cap on evaluations leaves it fewer seeds. Raises ValueError where that is too few.
        """
        config, points = self.config, len(self.points())
        nominal = Envelope(population=points, generations=1, seeds_per_candidate=self.seeds)
        resolved, reasons = _affordable(nominal, config.budget.max_evals)
        return plan_of(
            config,
            devices,
            calibration,
            resolved,
            self.phase,
            run_id=self.name(devices.kind),
            nominal=nominal,
            reasons=reasons,
            caps=caps_for(config, config.budget.max_evals or resolved.evaluations),
        )

    def in_words(self, plan: Plan) -> str:
        shape = plan.resolved
        return (
            f"Checking {', '.join(self.names())}: {shape.population} points on "
            f"{shape.seeds_per_candidate} seeds, {shape.evaluations} evaluations."
            + "".join(f" {reason}." for reason in plan.reasons)
        )


def check_points(space: SearchSpace, names: Sequence[str]) -> tuple[Point, ...]:
    """The baseline, and one knob at a time at either end of its range, in the unit cube."""
    centre = space.baseline
    moved = (
        (*centre[:place], unit, *centre[place + 1 :])
        for place, knob in enumerate(space.knobs)
        if knob.name in names
        for unit in _other_ends(knob)
    )
    return (centre, *moved)


def _other_ends(knob: Knob) -> list[float]:
    """The ends of the unit interval at which the knob has another value than its baseline."""
    baseline = knob.encode(knob.baseline)
    return [e for e in (0.0, 1.0) if abs(knob.encode(knob.decode(e)) - baseline) > 1e-9]


def _affordable(nominal: Envelope, most: int | None) -> tuple[Envelope, tuple[str, ...]]:
    if most is None or nominal.evaluations <= most:
        return nominal, ()
    seeds = most // nominal.population
    if seeds < LEAST_SEEDS:
        raise ValueError(
            f"--max-evals {most} does not pay for {nominal.population} points on {LEAST_SEEDS} "
            "seeds: check fewer knobs at a time with --knobs"
        )
    reason = f"--max-evals {most} pays for {seeds} of {nominal.seeds_per_candidate} seeds"
    return nominal.model_copy(update={"seeds_per_candidate": seeds}), (reason,)
