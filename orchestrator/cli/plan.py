"""`plan`: what would be spent, and what it could tell, without spending it."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from typer import Context, Option

from budgets.formatting import plain, printable
from budgets.plan import Devices
from orchestrator.cli.options import Json, Override, Reason, overrides_of, requested
from orchestrator.cli.terminal import print_json, print_line, print_markdown
from orchestrator.config import Config
from orchestrator.plan.resolve import slots_of


def plan(
    context: Context,
    count: Annotated[
        int | None,
        Option("--devices", metavar="N", min=1, help="On so many of these devices."),
    ] = None,
    verbose: Annotated[bool, Option("--verbose", help="And what it rests on.")] = False,
    fit: Annotated[bool, Option("--fit", help="What fits into --window.")] = False,
    override: Override = None,
    reason: Reason = "",
    as_json: Json = False,
) -> None:
    """What a search or a campaign would cost, and could tell; all tiers without --tier.

    Writes nothing.
    """
    config = requested(context)
    overrides_of(override, reason)
    if config.campaign is not None:
        if fit or count is not None:
            raise ValueError("--fit, --devices: of a search, and the file has a campaign")
        _plan_campaign(config, as_json=as_json)
    elif fit:
        _fit(config, _devices(config, count), as_json=as_json)
    else:
        _plan_search(config, _devices(config, count), as_json=as_json, in_full=verbose)


def _devices(config: Config, count: int | None) -> Devices:
    """Return this machine's devices, or so many of their kind."""
    from orchestrator.execution.engine import devices_of

    devices = devices_of(slots_of(config))
    return devices if count is None else devices.model_copy(update={"count": count})


def _plan_search(config: Config, devices: Devices, *, as_json: bool, in_full: bool) -> None:
    from orchestrator.plan.page import page_of, page_text
    from orchestrator.plan.phase2 import followed

    warnings = [*config.tuned.preflight()]
    earlier = followed(Path(config.runs_dir), config, devices.kind)
    if earlier is not None:
        warnings += earlier.objections.values()
    page = page_of(config, devices, None if earlier is None else earlier.succession(config))
    if as_json:
        print_json({**page.as_dict(), "warnings": warnings})
        return
    print_markdown(page_text(page, in_full=in_full))
    _warn(warnings)


def _plan_campaign(config: Config, *, as_json: bool) -> None:
    from orchestrator.matrix.campaign import terms_of
    from orchestrator.matrix.campaign_plan import campaign_plan, runs_document, runs_page

    warnings, terms = config.tuned.preflight(), terms_of(config)
    document, lines = campaign_plan(config, terms, datetime.now(UTC))
    if as_json:
        print_json({**runs_document(terms), **document})
        return
    title = f"# Campaign {plain(terms.name)} of {config.objective}"
    print_markdown("\n".join([title, "", *runs_page(terms), "", *lines]))
    _warn(warnings)


def _warn(warnings: Iterable[str]) -> None:
    for warning in warnings:
        print_line(printable(f"Warning: {warning}."))


def _fit(config: Config, devices: Devices, *, as_json: bool) -> None:
    """Print what fits into the window, and the options that ask for it."""
    from orchestrator.plan.fit import Wanted, available, best, choices, fit_text
    from orchestrator.plan.phase2 import foreseen
    from orchestrator.plan.times import times_here

    root, hours = Path(config.runs_dir), available(config, datetime.now(UTC))
    times = times_here(root, config.tuned, devices, config.evaluation.assume_eval_seconds)
    wanted = Wanted(config, devices, times, hours, foreseen(root, config, devices.kind))
    found = choices(wanted)
    if as_json:
        document = {
            "available_hours": hours,
            "fits": best(found) is not None,
            "choices": [choice.as_dict() for choice in found],
            "prior": times.prior,
        }
        print_json(document)
        return
    print_markdown(fit_text(found, hours))
    if times.prior is not None:
        print_line(printable(f"Note: {times.prior}."))
