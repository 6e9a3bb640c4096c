"""`phase1`, `phase2`, `run` and `calibrate`: each carries out a run, and the same resumes it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from typer import Context, Option

from budgets.formatting import command
from budgets.pace import last_seen
from budgets.plan import Calibration
from orchestrator.cli.options import (
    Json,
    Override,
    Reason,
    overrides_of,
    requested,
    resolved,
)
from orchestrator.cli.session import conducting, finish
from orchestrator.config import MOST_SEEDS, Config
from orchestrator.execution.engine import devices_of
from orchestrator.matrix.campaign import Staggered, campaign_matrix, terms_of
from orchestrator.matrix.matrix import calibrate as measure
from orchestrator.matrix.matrix import carry_out, carry_out_search
from orchestrator.plan.resolve import slots_of
from orchestrator.plan.times import CALIBRATION_SEEDS, find_calibration


def search(
    context: Context,
    override: Override = None,
    reason: Reason = "",
    as_json: Json = False,
) -> None:
    """`phase1`, `phase2`, and `run` of whatever a file describes.

    Writes a run, RUNS_DIR/PHASE/ID: its ledger, reports, and the files of each evaluation.
    """
    phase = None if context.info_name == "run" else context.info_name
    config = requested(context, phase)
    overrides = overrides_of(override, reason)
    if config.campaign is None:
        _search(config, overrides, as_json=as_json)
    else:
        _campaign(config, overrides, as_json=as_json)


def _search(config: Config, overrides: Sequence[tuple[str, str]], *, as_json: bool) -> None:
    if config.search.tier is None:
        in_file = f', or tier = "min" below [search] in {config.file}' if config.file else ""
        same = config.layers.words("search.from", "search.variant")
        raise ValueError(
            f"--tier: say how much to spend: min, target or max{in_file}. See what each costs "
            f"with: {command('plan', *same)}"
        )
    with conducting(config, as_json=as_json) as (session, live):
        result = carry_out_search(session, config, slots_of(config), overrides)
        finish(result, session.stop, live, as_json=as_json)


def _campaign(config: Config, overrides: Sequence[tuple[str, str]], *, as_json: bool) -> None:
    if overrides:
        raise ValueError(
            f"--override {overrides[0][0]}: a condition that fails pauses nothing, so no rule that "
            "can be overridden holds up a campaign"
        )
    campaign, slots = terms_of(config), slots_of(config)
    slots = replace(slots, count=campaign.workers(slots.count))
    assumed = config.evaluation.assume_eval_seconds
    word = None if assumed is None else Calibration(assumed_seconds=assumed)
    with conducting(config, as_json=as_json) as (session, live):
        pace = Staggered(campaign.stagger_seconds, session.clock.monotonic)
        result = carry_out(campaign_matrix(config, campaign), session, slots, pace, word)
        finish(result, session.stop, live, as_json=as_json)


def calibrate(
    context: Context,
    seeds: Annotated[
        int,
        Option("--seeds", metavar="N", min=1, max=MOST_SEEDS, help="Evaluations of the baseline."),
    ] = CALIBRATION_SEEDS,
    again: Annotated[
        bool, Option("--again", help="Measure again, beside what there is; needs --reason.")
    ] = False,
    override: Override = None,
    reason: Reason = "",
    as_json: Json = False,
) -> None:
    """Measure the baseline: time, memory, FLOPs, and the score's spread over seeds.

    Writes a run, RUNS_DIR/calibration/ID.
    """
    config = resolved(context).without_caps()
    overrides = overrides_of(override, reason, again=again)
    slots = slots_of(config)
    known = find_calibration(Path(config.runs_dir), config.tuned, devices_of(slots))
    with conducting(config, as_json=as_json) as (session, live):
        result = measure(session, config, slots, seeds, overrides, again=reason if again else "")
        if known is not None and known.directory == result.directory:
            made, words = f"{last_seen(known.state):%Y-%m-%d %H:%M} UTC", config.layers.words()
            live.say(f"Nothing was measured now: these figures are of {made}. To measure again:")
            live.say(f'{command("calibrate", *words)} --again --reason "WHY"')
        finish(result, session.stop, live, as_json=as_json)
