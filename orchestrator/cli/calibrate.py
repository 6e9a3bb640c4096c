"""`calibrate`: the baseline measured, before anything is searched."""

from pathlib import Path
from typing import Annotated, Any

from typer import Context, Option

from budgets.calibration import eval_seconds, measure, noise
from budgets.formatting import command, plain, printable
from budgets.pace import last_seen
from budgets.plan import Calibration
from objectives.registry import kind
from orchestrator.cli.conducting import conducting, finish
from orchestrator.cli.options import (
    FILE,
    MACHINE,
    PLACE,
    TUNED,
    Json,
    Override,
    Reason,
    overrides_of,
    resolved_of,
    taking,
)
from orchestrator.cli.terminal import print_json, print_line, print_markdown
from orchestrator.config import MOST_SEEDS, Config
from orchestrator.execution.engine import devices_of
from orchestrator.matrix import calibrate as measuring
from orchestrator.plan.history import CALIBRATION_SEEDS, find_calibration
from orchestrator.plan.resolve import Overrides, slots_of
from orchestrator.plan.times import calibration_lines
from orchestrator.records.planned import spec_of
from orchestrator.records.recorded import Result


@taking(FILE, PLACE, TUNED, MACHINE)
def calibrate(
    context: Context,
    seeds: Annotated[
        int,
        Option(
            "--seeds",
            metavar="N",
            min=1,
            max=MOST_SEEDS,
            help="Evaluations of the baseline.",
        ),
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
    config = resolved_of(context).without_caps()
    overrides = overrides_of(override, reason, again=again)
    why = reason if again else None
    known = find_calibration(Path(config.runs_dir), config.tuned, devices_of(slots_of(config)))
    done = _measured(config, seeds, overrides, why, as_json=as_json)
    if as_json:
        print_json(_as_dict(done))
        return
    _show(done, _next(config))
    if known is not None and known.directory == done.directory:
        repeated = command("calibrate", *config.layers.words())
        made = f"{last_seen(done.state):%Y-%m-%d %H:%M} UTC"
        print_line(f"Nothing was measured now: these figures are of {made}.")
        print_line(f'To measure again: {repeated} --again --reason "WHY"')


def _measured(
    config: Config, repeats: int, overrides: Overrides, reason: str | None, *, as_json: bool
) -> Result:
    """Calibrate, again for a `reason`. Leaves where it is not done."""
    wanted = (config, slots_of(config), repeats, overrides)
    with conducting(config, as_json=as_json) as (session, live):
        if reason is None:
            result = measuring.calibrate(session, *wanted)
        else:
            result = measuring.calibrate_again(session, *wanted, reason)
        if result.ruling.decision != "done":
            finish(result, session.stop, live, as_json)
    return result


def _next(resolved: Config) -> tuple[str, ...]:
    """The words of the command that plans the same with what was measured."""
    words = resolved.layers.words()
    tier = () if resolved.campaign is not None else ("--tier", "target")
    return ("plan", *tier, *words)


def _show(result: Result, following: tuple[str, ...]) -> None:
    """What was measured, and the next command, of these words."""
    plan = result.state.plan
    name, on = kind(spec_of(plan)), f"{plan.devices.count} x {plan.devices.name}"
    measured = (f"- {line}" for line in calibration_lines(measure(result.state)))
    print_markdown("\n".join((f"# The baseline of {plain(name)} on {plain(on)}", "", *measured)))
    print_line(printable(f"\nFiles: {result.directory}"))
    print_line(f"Next: {command(*following)}")


def _as_dict(result: Result) -> dict[str, Any]:
    calibration: Calibration = measure(result.state)
    measured = {
        "median_seconds": calibration.median_seconds,
        "p90_seconds": calibration.p90_seconds,
        "evals_per_hour": 3600 / calibration.median_seconds,
        "mean_score": calibration.mean_score,
        "sd_score": calibration.sd_score,
        "noise": noise(calibration),
        "eval_seconds": eval_seconds(calibration),
    }
    return {
        "directory": str(result.directory),
        "calibration": {**calibration.model_dump(mode="json"), **measured},
    }
