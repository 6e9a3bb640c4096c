"""The four training profiles as reports: what one training would take, and whether it fits."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from objectives import registry
from objectives.api import Objective
from objectives.registry import kind
from orchestrator.planning.fit import Room
from orchestrator.planning.times import Times


def profile_reports(
    objective: Objective, times: Times, room: Room, now: datetime
) -> list[dict[str, Any]]:
    """One a profile that the objective's program has, times scaled by exact FLOPs and so assumed.

    Empty where the objective has no profiles; an estimate is None where no time is known, or where
    its settings pay for no step of such a batch.
    """
    from objectives.nanochat.config import PROFILES

    if kind(objective.spec) != "nanochat":
        return []
    return [
        {
            "timestamp": now.isoformat(timespec="seconds"),
            "max_training_hours": room.hours,
            "profile_name": name,
            "profile": dict(settings),
            "estimate": _estimate(objective, dict(settings), times, room),
            "dataset_info": _data(objective),
        }
        for name, settings in PROFILES.items()
    ]


def current_profile(objective: Objective) -> str:
    """The profile whose settings these are, or `custom`."""
    from objectives.nanochat.config import PROFILES

    mine = objective.spec.settings
    same = (n for n, s in PROFILES.items() if all(mine.get(k) == v for k, v in s.items()))
    return next(same, "custom")


def _estimate(
    objective: Objective, settings: dict[str, Any], times: Times, room: Room
) -> dict[str, Any] | None:
    before = objective.flops()
    after = registry.load(registry.varied(objective.spec, settings)).flops()
    if before is None or after is None or not before.total or after.steps < 1:
        return None
    scaled = times.for_work(after.total / before.total)
    if scaled is None:
        return None
    hours = scaled.median_seconds / 3600
    return {
        "total_steps": after.steps,
        "total_tokens": after.tokens,
        "estimated_hours": hours,
        "tokens_per_second": after.tokens / scaled.median_seconds,
        "fits_in_window": hours <= room.hours,
        "assumed": True,
    }


def _data(objective: Objective) -> dict[str, Any]:
    return dict(_facts(objective))


def _facts(objective: Objective) -> Iterator[tuple[str, str | int]]:
    wanted = ("data", "documents", "train_tokens")
    for name, value in objective.provenance.items():
        if name in wanted:
            yield name, value
