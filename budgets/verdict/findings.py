"""What a search found, as everything a verdict owes its reader: gains, controls, conditions."""

from budgets.calibration import noise
from budgets.events import Grade, NoGo
from budgets.plan import Frozen
from budgets.state import RunState
from budgets.stats import Gain
from budgets.verdict.decision import Condition, conditions
from budgets.verdict.finalists import winner
from budgets.verdict.gains import (
    control_gains,
    gain_over_incumbent,
    incumbent_gain,
    luck,
    picking_gains,
    promise,
    rung_gain,
    winner_gain,
)

TITLES: dict[Grade, str] = {
    "go_persists": "Go that persists",
    "go": "Go; persistence not shown",
    "no_go": "No-Go",
}

NAMES: dict[NoGo, str] = {
    "dead_space": "dead space",
    "below_noise": "below noise",
    "too_small": "smaller than asked",
    "does_not_persist": "does not persist",
    "pathological": "pathological",
    "unstable": "unstable",
}


class Finalist(Frozen):
    """A configuration that was compared on the picking seeds."""

    name: str
    gain: Gain  # over the baseline, there
    is_winner: bool


class Control(Frozen):
    """The objective with something switched off, at the baseline's knobs."""

    name: str
    gain: Gain  # over the baseline
    winner_gain: Gain  # of the winner over the control


class Findings(Frozen):
    """What is known so far; most of it is None until its evaluations are settled."""

    grade: Grade | None
    no_go: NoGo | None
    asked: float  # the gain a Go needs, relative to the baseline's score
    arm: str | None  # that is recommended
    gain: Gain | None  # the winner's over the baseline, on seeds nobody was picked on
    finalists: tuple[Finalist, ...]
    controls: tuple[Control, ...]
    incumbent: Gain | None  # an earlier winner's over the baseline
    rung: Gain | None  # the winner's over the baseline, on more FLOPs
    rung_label: str | None
    conditions: tuple[Condition, ...]
    seemed: float | None  # gain that the search's best score promised
    luck: float | None  # ... that the best of as many baselines would have
    over_incumbent: Gain | None = None  # the winner's over that earlier one


def beating(found: Findings) -> list[Control]:
    """Controls that the winner is shown to be worse than."""
    return [one for one in found.controls if one.winner_gain.is_loss]


def unbeaten(found: Findings) -> list[Control]:
    """Controls that the winner is not shown to be better than."""
    compared = [one for one in found.controls if one.winner_gain.mean is not None]
    return [one for one in compared if not one.winner_gain.is_shown]


def title(grade: Grade, no_go: NoGo | None) -> str:
    """`Go; persistence not shown`, `No-Go, below noise`."""
    return TITLES[grade] if no_go is None else f"{TITLES[grade]}, {NAMES[no_go]}"


def is_settled(state: RunState) -> bool:
    """Whether the winner has met the baseline: a bound watched while it grows is none."""
    panels = (state.panel("reference"), state.panel("winner"))
    return all(panel is not None and panel.closed for panel in panels)


def findings(state: RunState) -> Findings | None:
    """What the run found; None of one that is not to be compared with the baseline."""
    plan, decided = state.plan, state.decided
    if plan.confirmation is None:
        return None
    best, rung = winner(state), plan.confirmation.rung
    measured = None if plan.calibration is None else noise(plan.calibration)
    is_share = measured is None or not measured.is_about_zero  # a gain, of the baseline's score
    return Findings(
        grade=None if decided is None else decided.grade,
        no_go=None if decided is None else decided.no_go,
        asked=plan.thresholds.go_gain,
        arm=decided.arm or None if decided is not None else None,
        gain=winner_gain(state) if is_settled(state) else None,
        finalists=tuple(
            Finalist(name=arm.name, gain=gain, is_winner=best is not None and arm.name == best.name)
            for arm, gain in picking_gains(state)
        ),
        controls=tuple(
            Control(name=name, gain=own, winner_gain=over)
            for name, own, over in control_gains(state)
        ),
        incumbent=incumbent_gain(state),
        rung=rung_gain(state),
        rung_label=None if rung is None else rung.varied.label,
        conditions=conditions(state),
        seemed=promise(state) if is_share else None,
        luck=luck(state) if is_share else None,
        over_incumbent=gain_over_incumbent(state),
    )
