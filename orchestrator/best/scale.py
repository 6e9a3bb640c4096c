"""How much longer something is trained than a search evaluated it."""

from math import isfinite
from typing import Any

from objectives import registry
from objectives.api import Objective, ObjectiveSpec, SetupError, Variant
from objectives.programs.objective import BUDGET
from orchestrator.config import RUNG_FACTOR

TARGET = "target_flops"
"""The setting that says how long an evaluation is, where it counts its FLOPs."""


def longer(objective: Objective, times: float | None, target_flops: float | None) -> Variant:
    """The objective with so many times its budget, or with that many FLOPs; neither: 4 times.

    Raises ValueError where both are given, on less than its own budget, and where it has none.
    """
    if times is not None and target_flops is not None:
        raise ValueError("--times and --target-flops both say how long: give one of them")
    if target_flops is None:
        return _times(objective, RUNG_FACTOR if times is None else times)
    own = _budget(objective)
    if own is None:
        raise ValueError(
            f"--target-flops: {objective.spec.name} has no budget in FLOPs: say --times, how many "
            "times as long as the search trained"
        )
    if not own <= target_flops or not isfinite(target_flops):
        raise ValueError(
            f"--target-flops: expected {own:g} or more, which is what the search spent on an "
            f"evaluation, got {target_flops:g}"
        )
    variant = _times(objective, target_flops / own)
    if TARGET not in variant.settings:
        return variant
    return variant.model_copy(update={"settings": {**variant.settings, TARGET: target_flops}})


def usual_times(spec: ObjectiveSpec) -> float:
    """How many times as long somebody may train it who has not looked: 1 where it has no budget."""
    try:
        scales = registry.load(spec).rung(RUNG_FACTOR) is not None
    except (ValueError, SetupError):  # the training itself will say so
        scales = True
    return RUNG_FACTOR if scales else 1.0


def _times(objective: Objective, factor: float) -> Variant:
    if not factor >= 1 or not isfinite(factor):
        raise ValueError(f"--times: expected 1 or more, got {factor:g}")
    variant = objective.rung(factor)
    if variant is not None:
        return variant
    if factor == 1:
        return Variant(label="as long", settings={})
    raise ValueError(
        f"{objective.spec.name} cannot be trained {factor:g} times as long: none of its settings "
        "scales that far. --times 1 trains it as long as the search did"
    )


def _budget(objective: Objective) -> float | None:
    """Of one evaluation: as it is set, or as it is counted."""
    settings = objective.spec.settings
    if (target := _number(settings.get(TARGET))) is not None:
        return target
    try:
        counted = objective.flops()
    except SetupError as error:
        raise ValueError(f"--target-flops: {error}") from error
    if counted is not None and counted.train > 0:
        return counted.train
    return _number(settings.get(BUDGET))


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
    return float(value) if is_number else None


def keeping(objective: Objective) -> dict[str, Any]:
    """Settings with which a program that deletes its checkpoints leaves them; they score alike."""
    spec = objective.spec
    is_checkout = registry.CHECKOUT in spec.settings
    known = registry.named(spec.name, spec.settings).settings if is_checkout else ()
    return {"keep": "all"} if "keep" in known else {}
