"""`plan`: what would be spent, and what it could tell, without spending it."""

from pathlib import Path
from typing import Annotated, get_args

from typer import Context, Option

from budgets.plain import printable
from budgets.terms import Tier
from orchestrator.cli.fit import fit_phase, fitting_of
from orchestrator.cli.given import asked_for_any, numbers_of
from orchestrator.cli.options import FILE, FOLLOWING, SEARCH, Json, taking
from orchestrator.cli.plan_campaign import plan_campaign
from orchestrator.cli.terminal import print_json, print_markdown
from orchestrator.config import Config
from orchestrator.execution.engine import devices_of
from orchestrator.planning.engine import slots_of
from orchestrator.warm_start import warm_start_of


def plan_phase(config: Config, counts: tuple[int, ...], *, as_json: bool, in_full: bool) -> None:
    """Print what would be spent, also on so many devices. Touches nothing."""
    from orchestrator.planning.page import circumstances, page_of
    from orchestrator.planning.page_text import to_markdown

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
    print_markdown(to_markdown(page, in_full=in_full))
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
    asked = asked_for_any(context, as_json=as_json)
    if asked.config.campaign is not None:
        if fitting is not None or also_on:
            raise ValueError("--fit, --devices: of a search, and the file has a campaign")
        plan_campaign(asked)
    elif fitting is not None:
        fit_phase(asked, fitting)
    else:
        plan_phase(asked.config, also_on, as_json=as_json, in_full=verbose)
