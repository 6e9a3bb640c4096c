"""`plan`: what would be spent, and what it could tell, without spending it."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from typer import Context, Option

from budgets.formatting import plain, printable
from budgets.plan import Devices
from orchestrator.cli.options import FILE, FOLLOWING, SEARCH, Json, Request, requested, taking
from orchestrator.cli.terminal import print_json, print_line, print_markdown
from orchestrator.config import Config
from orchestrator.execution.engine import devices_of
from orchestrator.plan.phase2 import followed, foreseen
from orchestrator.plan.resolve import slots_of


def devices_for(config: Config, count: int | None) -> Devices:
    """This machine's devices, or so many of their kind."""
    devices = devices_of(slots_of(config))
    return devices if count is None else devices.model_copy(update={"count": count})


def plan_phase(config: Config, count: int | None, *, as_json: bool, in_full: bool) -> None:
    """Print what would be spent. Touches nothing."""
    from orchestrator.plan.page import page_of, page_text

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
    as_json: Json = False,
) -> None:
    """What a search or a campaign would cost, and could tell; all tiers without --tier.

    Writes nothing.
    """
    request = requested(context)
    if request.config.campaign is not None:
        if fit or count is not None:
            raise ValueError("--fit, --devices: of a search, and the file has a campaign")
        plan_campaign(request)
    elif fit:
        fit_phase(request.config, count, as_json=as_json)
    else:
        plan_phase(request.config, count, as_json=as_json, in_full=verbose)


def fit_phase(config: Config, count: int | None, *, as_json: bool) -> None:
    """Print what fits, and the options that ask for it. Touches nothing."""
    from orchestrator.plan.fit import Wanted, available, best, choices, fit_text
    from orchestrator.plan.times import calibration_here, times_here

    root, devices = Path(config.runs_dir), devices_for(config, count)
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
    if as_json:
        document = {
            "available_hours": there.hours,
            "fits": best(found) is not None,
            "choices": [choice.as_dict() for choice in found],
            "prior": None if times.prior is None else times.prior.sentence(),
        }
        print_json(document)
        return
    print_markdown(fit_text(found, there))
    if times.prior is not None:
        print_line(printable(f"Note: {times.prior.sentence()}."))


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
