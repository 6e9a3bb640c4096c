"""`plan --fit`: what fits into a window, and the choice that is written into a configuration."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from budgets.plain import printable
from budgets.words import duration
from orchestrator.cli.given import Asked
from orchestrator.cli.terminal import print_json, print_line, print_markdown
from orchestrator.config import Budget
from orchestrator.execution.engine import devices_of
from orchestrator.look.page import named_file
from orchestrator.planning.calibrations import calibration_here
from orchestrator.planning.engine import slots_of
from orchestrator.planning.fit import Choice, Room, Wanted, best, choices, too_short
from orchestrator.planning.fit_text import to_markdown
from orchestrator.planning.profiles import current_profile, profile_reports
from orchestrator.planning.times import times_here
from orchestrator.planning.window import window_of
from orchestrator.running.searching import refuse_the_past
from orchestrator.warm_start import foreseen


@dataclass(frozen=True)
class Fitting:
    """The options of fitting, parsed."""

    file: Path | None = None
    number: int | None = None


def fitting_of(fit: bool, file: Path | None, number: int | None) -> Fitting | None:
    """None where nobody wants it. Raises ValueError on an option that says nothing alone."""
    if not fit and (file is not None or number is not None):
        raise ValueError("--out and --choice go with --fit")
    if fit and number is not None and file is None:
        raise ValueError("--choice says which one --out FILE writes")
    return Fitting(file, number) if fit else None


def room_of(budget: Budget, now: datetime) -> Room:
    """The time that a budget leaves for evaluations. Raises ValueError where there is none."""
    window, hours = window_of(budget), budget.max_hours
    refuse_the_past(window, now)
    rooms = []
    if window is not None:
        whole, margin = window.hours_from(now), window.margin_seconds / 3600
        text = f"a window of {duration(3600 * whole)} less {duration(3600 * margin)}"
        rooms.append(Room(whole - margin, "--window", text))
    if hours is not None:
        rooms.append(Room(hours, "--max-hours", f"--max-hours {hours:g}"))
    if not rooms:
        raise ValueError("--fit: into what? Give --window 12h, a moment, or --max-hours")
    return min(rooms, key=lambda room: room.hours)


def fit_phase(asked: Asked, fitting: Fitting) -> None:
    """Print what fits; write the choice where a file is named, and nothing else."""
    now = datetime.now(UTC)
    config, root, assumed = asked.config, Path(asked.config.runs_dir), _assumed(asked)
    devices, room = devices_of(slots_of(config)), room_of(config.budget, now)
    times = times_here(root, config.tuned, devices, assumed)
    wanted = Wanted(
        config,
        devices,
        times,
        room,
        foreseen(root, config, devices.kind),
        calibrated=lambda objective: calibration_here(root, objective, devices),
    )
    found = choices(wanted)
    changes = None if fitting.file is None else _applied(asked, fitting, found, room)
    if asked.as_json:
        document = {
            "available_hours": room.hours,
            "fits": best(found) is not None,
            "choices": [choice.as_dict() for choice in found],
            "prior": None if times.prior is None else times.prior.sentence(),
            "profile": current_profile(config.tuned),
            "profiles": profile_reports(config.tuned, times, room, now),
            "applied": changes,
        }
        print_json(document)
        return
    print_markdown(to_markdown(found, room))
    if times.prior is not None:
        print_line(printable(f"Note: {times.prior.sentence()}."))
    if changes is not None:
        print_line(printable(changes) if changes else f"{fitting.file} says so already.")


def _applied(asked: Asked, fitting: Fitting, found: list[Choice], room: Room) -> str:
    """Write the choice; what changes in the file. Raises ValueError where nothing fits."""
    from orchestrator.planning import apply  # imports tomlkit

    path, choice = fitting.file, best(found)
    assert path is not None, "only where a file is named"
    if fitting.number is not None:
        if fitting.number > len(found):
            raise ValueError(f"--choice: expected 1 to {len(found)}, got {fitting.number}")
        choice = found[fitting.number - 1]
        if not choice.fits:
            raise ValueError(f"--choice {fitting.number}: {choice.idea.what} does not fit")
    if choice is None:
        raise ValueError(f"--out: {too_short(found, room)}")
    before = apply.read(named_file("--out", path))
    if before and asked.config.file != path:
        raise ValueError(
            f"--out: {path} is there, and this plan knows nothing of what it says: plan with "
            f"{path} too, or name a new file"
        )
    values: dict[str, Any] = {**_given(asked), **apply.chosen(choice)}
    if _assumed(asked) is not None and choice.plan.calibration is not None:
        assumed = choice.plan.calibration.median_seconds
        values["evaluation.assume_eval_seconds"] = assumed
    return apply.write(path, apply.applied(before, values))


def _assumed(asked: Asked) -> float | None:
    return asked.config.evaluation.assume_eval_seconds


def _given(asked: Asked) -> Mapping[str, Any]:
    """What is no default, by dotted key: a preset's and a profile's values follow from its name."""
    values, sources = asked.config.all_values(), asked.config.sources
    return {
        key: values[key]
        for key, source in sources.items()
        if not source.startswith(("preset ", "profile ")) and values.get(key) is not None
    }
