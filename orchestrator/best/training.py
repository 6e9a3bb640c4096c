"""One more training of what a search recommends: a campaign of one condition, or two, of its own.

It is planned like any other run, so it is reserved, settled, resumed and verified like one.
"""

from dataclasses import dataclass, replace

from budgets.plan import Calibration, CampaignTerms, Condition, Devices, Limits, Parent, Plan
from objectives import registry
from objectives.api import Objective, Variant
from orchestrator.best.scale import keeping
from orchestrator.campaign.conditions import CONTROL, DEFAULT
from orchestrator.campaign.request import CampaignRequest
from orchestrator.config import Config
from orchestrator.planning.names import RUN_ID, check_run_id, short_hash
from orchestrator.planning.plan import limits_for
from orchestrator.planning.seeds import training_seeds
from orchestrator.records.recommended import Best, Point

RECOMMENDED, CANDIDATE = "recommended", "candidate"
"""What the condition is called: the second where it is not recommended."""

LONGEST_NAME = 40
"""Characters of the search's name in the training's, where both do not fit."""


@dataclass(frozen=True)
class TrainingRequest(CampaignRequest):
    """What shall be trained, how long, and which search that is from."""

    parent: Parent
    limits: Limits  # of an evaluation of the search
    length: float  # of the training, in these

    def plan(self, devices: Devices, calibration: Calibration | None) -> Plan:
        """A campaign's, in the search's limits, stretched; a limit asked for is taken whole."""
        plan, asked = super().plan(devices, calibration), self.config.evaluation
        limits = self.limits.model_copy(update={"memory_bytes": devices.memory_bytes})
        if asked.limit_seconds is not None or asked.stall_seconds is not None:
            wall, stall = asked.limit_seconds, asked.stall_seconds
            wall = self.length * limits.wall_seconds if wall is None else wall
            whole = limits_for(
                wall, limits.stall_seconds if stall is None else stall, devices, None
            )
            limits = whole.model_copy(update={"wall_seconds": whole.wall_seconds / self.length})
        return plan.model_copy(update={"limits": limits, "parent": self.parent})

    def in_words(self, plan: Plan) -> str:
        shape = plan.resolved
        names = " and ".join(c.name for c in self.campaign.conditions)
        count = shape.seeds_per_candidate
        seeds = "one fresh seed" if count == 1 else f"{count} fresh seeds"
        return (
            f"Training what {self.parent.run_id} has found, {self.length:g} times as long as it "
            f"evaluated: {names} on {seeds}."
        )


def training_name(run_id: str, factor: float) -> str:
    """`best-RUN-x4`: a run's id, also where the search's own is as long as one may be."""
    tail = f"x{factor:.6g}".replace("+", "")
    name = f"best-{run_id}-{tail}"
    if not RUN_ID.fullmatch(name):
        name = f"best-{run_id[:LONGEST_NAME]}-{short_hash(run_id)}-{tail}"
    check_run_id(name)
    return name


def training_of(  # noqa: PLR0913 - what is trained, and how
    best: Best, variant: Variant, config: Config, *, name: str, seeds: int, compare: bool
) -> TrainingRequest:
    """The training of the search's best, and with `compare` of the baseline beside it."""
    state, objective = best.state, config.tuned
    called = CANDIDATE if best.standing == "no_go" else RECOMMENDED
    settings = {**variant.settings, **keeping(objective)}
    conditions = [_condition(objective, called, settings, variant.length, best.candidate)]
    if compare:
        baseline = _condition(objective, f"{DEFAULT}{CONTROL}", variant.settings, variant.length)
        conditions.append(baseline)
    return TrainingRequest(
        config=config,
        campaign=CampaignTerms(
            name=name, conditions=tuple(conditions), seeds=training_seeds(state, seeds)
        ),
        parent=Parent(run_id=state.plan.run_id, head=state.head, device_ms=0, open_ms=0),
        limits=state.plan.limits,
        length=variant.length,
    )


def _condition(
    objective: Objective,
    name: str,
    settings: dict[str, object],
    length: float,
    point: Point | None = None,
) -> Condition:
    """At the point, or as the control at its baseline."""
    space = registry.load(registry.varied(objective.spec, settings)).space
    return Condition(
        name=name,
        settings=settings,
        knobs=space.decode(space.baseline if point is None else point),
        point=point,
        length=length,
        control=point is None,
    )


def taken_up(request: TrainingRequest, recorded: Plan) -> tuple[TrainingRequest, bool]:
    """The request for the recorded training, and whether its search has found another point since.

    A training that was begun goes on with what was recommended then, on the seeds drawn then. One
    of other conditions is left to be refused as another plan.
    """
    asked, known = request.campaign, recorded.campaign
    if known is None or recorded.parent is None or recorded.parent.run_id != request.parent.run_id:
        return request, False
    if len(known.conditions) != len(asked.conditions) or len(known.seeds) != len(asked.seeds):
        return request, False
    conditions = tuple(
        own.model_copy(update={"name": there.name, "point": there.point, "knobs": there.knobs})
        for own, there in zip(asked.conditions, known.conditions, strict=True)
    )
    campaign = asked.model_copy(update={"conditions": conditions, "seeds": known.seeds})
    is_moved = campaign.conditions[0].point != asked.conditions[0].point
    return replace(request, campaign=campaign), is_moved


def known_times(best: Best, devices: Devices) -> Calibration | None:
    """What the search knew of its evaluations, for the time left; None on other devices.

    It is paid for by the search.
    """
    calibration, theirs = best.state.plan.calibration, best.state.plan.devices
    same = (theirs.kind, theirs.name, theirs.threads)
    if calibration is None or same != (devices.kind, devices.name, devices.threads):
        return None
    return calibration.model_copy(update={"charged_ms": 0, "open_ms": 0})
