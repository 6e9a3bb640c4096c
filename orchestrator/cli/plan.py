"""`plan`: what would be spent, and what it could tell, without spending it."""

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

from typer import Context, Option

from budgets.plain import printable
from budgets.terms import Tier
from orchestrator.cli.fit import fit_phase, fitting_of
from orchestrator.cli.given import asked_for_any, numbers_of
from orchestrator.cli.options import FILE, FOLLOWING, SEARCH, Json, taking
from orchestrator.cli.plan_campaign import plan_campaign
from orchestrator.cli.terminal import print_json, print_markdown
from orchestrator.execution.engine import devices_of
from orchestrator.planning.circumstances import circumstances
from orchestrator.planning.configured import Asked
from orchestrator.warm.succession import predecessor

if TYPE_CHECKING:
    from orchestrator.planning.page import Circumstances


@dataclass(frozen=True)
class Wanted:
    """What a page shall have beside the tiers."""

    counts: tuple[int, ...] = ()
    power: bool = False


def plan_phase(asked: Asked, wanted: Wanted) -> None:
    """Print what would be spent. Touches nothing."""
    from orchestrator.planning.page import page_of, with_power  # imports numpy
    from orchestrator.planning.page_text import to_markdown

    warnings = list(asked.request.objective.preflight())
    under, notes, more = _circumstances(asked)
    warnings += more
    tiers = (asked.request.tier,) if asked.tier_given else get_args(Tier)
    page = page_of(asked.request, under, tiers, wanted.counts)
    if wanted.power:
        page = with_power(page, under.known, time.monotonic, _progress)
        print("\r\033[K" if sys.stderr.isatty() else "", end="", file=sys.stderr)
    if asked.conduct.as_json:
        print_json({**page.as_dict(), "notes": notes, "warnings": warnings})
        return
    print_markdown(to_markdown(page))
    for note in notes:
        print(printable(f"Note: {note}."))
    for warning in warnings:
        print(printable(f"Warning: {warning}."))


def _circumstances(asked: Asked) -> "tuple[Circumstances, tuple[str, ...], tuple[str, ...]]":
    """What the plan is made under; notes and warnings about that."""
    root, request = asked.conduct.root, asked.request
    devices = devices_of(asked.conduct.engine.slots())
    earlier = predecessor(root, request, devices.kind)
    succession = None if earlier is None else earlier.foreseen(request)
    under, unread = circumstances(
        root, request.objective, devices, asked.assumed_seconds, succession
    )
    if earlier is None:
        return under, (), unread
    return under, earlier.notes, (*earlier.objections.values(), *unread)


def _progress(tier: Tier, done: int, of: int) -> None:
    """One line that is written over; elsewhere than on a terminal one for each tier."""
    if sys.stderr.isatty():
        text = f"\r\033[KSimulating searches of tier {tier}: {done} of {of} landscapes"
        print(text, end="", file=sys.stderr, flush=True)
    elif done == 1:
        print(f"Simulating searches of tier {tier} ...", file=sys.stderr)


@taking(FILE, FOLLOWING, SEARCH)
def plan(
    context: Context,
    counts: Annotated[
        str | None,
        Option("--devices", metavar="1,4,8", help="Compare these numbers of devices."),
    ] = None,
    power: Annotated[
        bool,
        Option(
            "--power",
            help="Simulate searches: with what probability is a gain found? Some 30 s a tier.",
        ),
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
    wanted = Wanted(() if counts is None else numbers_of("--devices", counts), power)
    fitting = fitting_of(fit, out, choice)
    if fitting is not None and wanted != Wanted():
        raise ValueError("--fit has a page of its own: plan without it for --devices or --power")
    asked = asked_for_any(context, as_json=as_json)
    if asked.resolved.campaign is not None:
        if fitting is not None or wanted != Wanted():
            raise ValueError("--fit, --devices, --power: of a search, and the file has a campaign")
        plan_campaign(asked)
    elif fitting is not None:
        fit_phase(asked, fitting)
    else:
        plan_phase(asked, wanted)
