"""`plan`: what would be spent, and what it could tell, without spending it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from typer import Context, Option

from budgets.formatting import plain, printable
from budgets.plan import Devices
from orchestrator.cli.options import (
    FILE,
    FOLLOWING,
    SEARCH,
    Json,
    Request,
    requested,
    taking,
)
from orchestrator.cli.terminal import print_json, print_line, print_markdown
from orchestrator.config import Config
from orchestrator.execution.engine import devices_of
from orchestrator.plan.fit import (
    Available,
    Choice,
    Wanted,
    available,
    best,
    choices,
    chosen,
    fit_text,
    profiles,
    read,
    too_short,
    write,
)
from orchestrator.plan.history import calibration_here
from orchestrator.plan.page import page_of, page_text
from orchestrator.plan.phase2 import followed, foreseen
from orchestrator.plan.resolve import slots_of
from orchestrator.plan.times import times_here


def devices_for(config: Config, count: int | None) -> Devices:
    """This machine's devices, or so many of their kind."""
    devices = devices_of(slots_of(config))
    return devices if count is None else devices.model_copy(update={"count": count})


def plan_phase(config: Config, count: int | None, *, as_json: bool, in_full: bool) -> None:
    """Print what would be spent. Touches nothing."""
    warnings, devices = [*config.tuned.preflight()], devices_for(config, count)
    earlier = followed(Path(config.runs_dir), config, devices.kind)
    if earlier is not None:
        warnings += earlier.objections.values()
    page = page_of(config, devices, None if earlier is None else earlier.succession(config))
    warnings += page.warnings
    if as_json:
        print_json({**page.as_dict(), "warnings": warnings})
        return
    print_markdown(page_text(page, in_full=in_full))
    for warning in warnings:
        print(printable(f"Warning: {warning}."))


@taking(FILE, FOLLOWING, SEARCH)
def plan(
    context: Context,
    count: Annotated[
        int | None,
        Option("--devices", metavar="N", min=1, help="On so many of these devices."),
    ] = None,
    verbose: Annotated[bool, Option("--verbose", help="And what it rests on.")] = False,
    fit: Annotated[bool, Option("--fit", help="What fits into --window.")] = False,
    out: Annotated[
        Path | None,
        Option("--out", metavar="FILE", help="Write what fits into this TOML."),
    ] = None,
    choice: Annotated[
        int | None,
        Option("--choice", metavar="N", min=1, help="Which one; default: the first."),
    ] = None,
    as_json: Json = False,
) -> None:
    """What a search or a campaign would cost, and could tell; all tiers without --tier.

    Writes nothing, but with --out FILE the choice into a configuration.
    """
    fitting = fitting_of(fit, out, choice)
    request = requested(context)
    if request.config.campaign is not None:
        if fitting is not None or count is not None:
            raise ValueError("--fit, --devices: of a search, and the file has a campaign")
        plan_campaign(request)
    elif fitting is not None:
        fit_phase(request, fitting, count)
    else:
        plan_phase(request.config, count, as_json=as_json, in_full=verbose)


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


def fit_phase(request: Request, fitting: Fitting, count: int | None) -> None:
    """Print what fits; write the choice where a file is named, and nothing else."""
    config, root = request.config, Path(request.config.runs_dir)
    devices = devices_for(config, count)
    there = available(config.budget, datetime.now(UTC))
    times = times_here(root, config.tuned, devices, config.evaluation.assume_eval_seconds)
    wanted = Wanted(
        config,
        devices,
        times,
        there,
        foreseen(root, config, devices.kind),
        calibrated=lambda objective: calibration_here(root, objective, devices),
    )
    found = choices(wanted)
    changes = None if fitting.file is None else _written(request, fitting, found, there)
    if request.as_json:
        document = {
            "available_hours": there.hours,
            "fits": best(found) is not None,
            "choices": [choice.as_dict() for choice in found],
            "prior": None if times.prior is None else times.prior.sentence(),
            "profiles": profiles(config.tuned, times, there),
            "applied": changes,
        }
        print_json(document)
        return
    print_markdown(fit_text(found, there))
    if times.prior is not None:
        print_line(printable(f"Note: {times.prior.sentence()}."))
    if changes is not None:
        print_line(printable(changes) if changes else f"{fitting.file} says so already.")


def _written(request: Request, fitting: Fitting, found: list[Choice], there: Available) -> str:
    """Write the choice; what changes in the file. Raises ValueError where nothing fits."""
    from orchestrator.look.page import named_file

    path, choice = fitting.file, best(found)
    assert path is not None, "only where a file is named"
    if fitting.number is not None:
        if fitting.number > len(found):
            raise ValueError(f"--choice: expected 1 to {len(found)}, got {fitting.number}")
        choice = found[fitting.number - 1]
        if not choice.fits:
            raise ValueError(f"--choice {fitting.number}: {choice.what} does not fit")
    if choice is None:
        raise ValueError(f"--out: {too_short(found, there)}")
    if read(named_file("--out", path)) and request.config.file != path:
        raise ValueError(
            f"--out: {path} is there, and this plan knows nothing of what it says: plan with "
            f"{path} too, or name a new file"
        )
    values: dict[str, Any] = {**_given(request), **chosen(choice)}
    assumed = request.config.evaluation.assume_eval_seconds
    if assumed is not None and choice.plan.calibration is not None:
        values["evaluation.assume_eval_seconds"] = choice.plan.calibration.median_seconds
    return write(path, values)


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
    from orchestrator.matrix.campaign import campaign_name
    from orchestrator.matrix.campaign_plan import campaign_plan, runs_document, runs_page

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
