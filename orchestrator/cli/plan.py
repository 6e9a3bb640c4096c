"""`plan`: what would be spent, and what it could tell, without spending it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, get_args

from typer import Context, Option

from budgets.formatting import plain, printable
from budgets.plan import Tier
from orchestrator.cli.options import (
    FILE,
    FOLLOWING,
    SEARCH,
    Json,
    Request,
    numbers_of,
    requested,
    taking,
)
from orchestrator.cli.terminal import print_json, print_line, print_markdown
from orchestrator.config import Config
from orchestrator.execution.engine import devices_of
from orchestrator.look.page import named_file
from orchestrator.matrix.campaign import campaign_name
from orchestrator.matrix.campaign_plan import campaign_plan, runs_document, runs_page
from orchestrator.plan.fit import (
    Choice,
    Room,
    Wanted,
    best,
    choices,
    fit_text,
    profiles,
    room_of,
    too_short,
)
from orchestrator.plan.history import calibration_here
from orchestrator.plan.resolve import slots_of
from orchestrator.plan.times import times_here
from orchestrator.warm_start import foreseen, warm_start_of


def plan_phase(config: Config, counts: tuple[int, ...], *, as_json: bool, in_full: bool) -> None:
    """Print what would be spent, also on so many devices. Touches nothing."""
    from orchestrator.plan.page import circumstances, page_of, page_text

    root, assumed = Path(config.runs_dir), config.evaluation.assume_eval_seconds
    warnings, notes = [*config.tuned.preflight()], tuple[str, ...]()
    devices = devices_of(slots_of(config))
    earlier = warm_start_of(root, config, devices.kind)
    if earlier is not None:
        warnings += earlier.objections.values()
        notes = earlier.notes
    succession = None if earlier is None else earlier.succession(config)
    under, unread = circumstances(root, config.tuned, devices, assumed, succession)
    tiers = get_args(Tier) if config.search.tier is None else (config.search.tier,)
    page = page_of(config, under, tiers, counts)
    if as_json:
        print_json({**page.as_dict(), "notes": notes, "warnings": [*warnings, *unread]})
        return
    print_markdown(page_text(page, in_full=in_full))
    for note in notes:
        print(printable(f"Note: {note}."))
    for warning in (*warnings, *unread):
        print(printable(f"Warning: {warning}."))


@taking(FILE, FOLLOWING, SEARCH)
def plan(
    context: Context,
    counts: Annotated[
        str | None,
        Option("--devices", metavar="1,4,8", help="Compare these numbers of devices."),
    ] = None,
    verbose: Annotated[
        bool, Option("--verbose", help="And what all of it rests on: times, disk, rules, checks.")
    ] = False,
    fit: Annotated[
        bool, Option("--fit", help="What fits into --window or --max-hours, at what price.")
    ] = False,
    out: Annotated[
        Path | None,
        Option("--out", metavar="FILE", help="With --fit: write the choice into this TOML."),
    ] = None,
    choice: Annotated[
        int | None,
        Option("--choice", metavar="N", min=1, help="With --out; default: the first that fits."),
    ] = None,
    as_json: Json = False,
) -> None:
    """What a search or a campaign would cost, and what it could tell; all tiers without --tier.

    With --from and --variant a phase 2.

    Writes nothing, but with --out FILE the choice into a configuration.
    """
    also_on = () if counts is None else numbers_of("--devices", counts)
    fitting = fitting_of(fit, out, choice)
    if fitting is not None and also_on:
        raise ValueError("--fit has a page of its own: plan without it for --devices")
    request = requested(context)
    if request.config.campaign is not None:
        if fitting is not None or also_on:
            raise ValueError("--fit, --devices: of a search, and the file has a campaign")
        plan_campaign(request)
    elif fitting is not None:
        fit_phase(request, fitting)
    else:
        plan_phase(request.config, also_on, as_json=as_json, in_full=verbose)


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


def fit_phase(request: Request, fitting: Fitting) -> None:
    """Print what fits; write the choice where a file is named, and nothing else."""
    now = datetime.now(UTC)
    config, root, assumed = request.config, Path(request.config.runs_dir), _assumed(request)
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
    changes = None if fitting.file is None else _applied(request, fitting, found, room)
    if request.as_json:
        document = {
            "available_hours": room.hours,
            "fits": best(found) is not None,
            "choices": [choice.as_dict() for choice in found],
            "prior": None if times.prior is None else times.prior.sentence(),
            "profiles": profiles(config.tuned, times, room),
            "applied": changes,
        }
        print_json(document)
        return
    print_markdown(fit_text(found, room))
    if times.prior is not None:
        print_line(printable(f"Note: {times.prior.sentence()}."))
    if changes is not None:
        print_line(printable(changes) if changes else f"{fitting.file} says so already.")


def _applied(request: Request, fitting: Fitting, found: list[Choice], room: Room) -> str:
    """Write the choice; what changes in the file. Raises ValueError where nothing fits."""
    from orchestrator.plan import fit as apply

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
    if before and request.config.file != path:
        raise ValueError(
            f"--out: {path} is there, and this plan knows nothing of what it says: plan with "
            f"{path} too, or name a new file"
        )
    values: dict[str, Any] = {**_given(request), **apply.chosen(choice)}
    if _assumed(request) is not None and choice.plan.calibration is not None:
        assumed = choice.plan.calibration.median_seconds
        values["evaluation.assume_eval_seconds"] = assumed
    return apply.write(path, apply.applied(before, values))


def _assumed(request: Request) -> float | None:
    return request.config.evaluation.assume_eval_seconds


def _given(request: Request) -> Mapping[str, Any]:
    """What is no default, by dotted key: a preset's and a profile's values follow from its name."""
    values, sources = request.config.all_values(), request.config.sources
    return {
        key: values[key]
        for key, source in sources.items()
        if not source.startswith(("preset ", "profile ")) and values.get(key) is not None
    }


def plan_campaign(request: Request) -> None:
    """Print what the campaign of a file would take."""
    config = request.config
    warnings = config.tuned.preflight()
    document, lines = campaign_plan(config, datetime.now(UTC))
    if request.as_json:
        print_json({**runs_document(config), **document})
        return
    title = f"# Campaign {plain(campaign_name(config))} of {config.objective}"
    print_markdown("\n".join([title, "", *runs_page(config), "", *lines]))
    for warning in warnings:
        print_line(printable(f"Warning: {warning}."))
