"""What evaluates: `phase1`, `phase2`, `run`, `calibrate`, and `check knobs|proxy|workers|memory`.

Each is a run of its own, with a ledger; the same command takes it up again.
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from typer import Context, Option

from budgets.formatting import command
from budgets.pace import last_seen
from budgets.plan import Calibration
from budgets.proxy import LEAST_CANDIDATES
from budgets.state import RunState
from orchestrator.cli.options import (
    BESIDE,
    FILE,
    FOLLOWING,
    MACHINE,
    PLACE,
    SEARCH,
    TUNED,
    Json,
    Override,
    Reason,
    Request,
    names_of,
    numbers_of,
    overrides_of,
    requested,
    resolved_of,
    taking,
)
from orchestrator.cli.program import examples, group
from orchestrator.cli.session import conducting, finish
from orchestrator.cli.terminal import print_json, print_markdown
from orchestrator.config import MOST_SEEDS, TRAINING, Config
from orchestrator.execution.engine import devices_of
from orchestrator.matrix import calibrate as measuring
from orchestrator.matrix import workers as sweeping
from orchestrator.matrix.campaign import Staggered, campaign_matrix, terms_of
from orchestrator.matrix.checks import CHECK_SEEDS, LEAST_SEEDS, knob_check, near, proxy_check
from orchestrator.matrix.matrix import Matrix, carry_out
from orchestrator.matrix.memory import memory_of, with_micro_batch
from orchestrator.matrix.search import Searching
from orchestrator.plan.resolve import slots_of
from orchestrator.plan.times import CALIBRATION_SEEDS, find_calibration
from orchestrator.records.manifest import source_of
from orchestrator.records.recorded import find_run, load_state, objective_of
from orchestrator.scalability import fit

Again = Annotated[
    bool, Option("--again", help="Measure again, beside what there is; needs --reason.")
]


def _seeds(least: int, about: str) -> object:
    return Option("--seeds", metavar="N", min=least, max=MOST_SEEDS, help=about)


@taking(FILE, SEARCH)
def phase1(context: Context, as_json: Json = False) -> None:
    """Search for better knobs within a budget; the same command resumes.

    Writes a run, RUNS_DIR/phase1/ID: its ledger, reports, and the files of each evaluation.
    """
    _search(requested(context, "phase1"))


@taking(FILE, FOLLOWING, SEARCH)
def phase2(context: Context, as_json: Json = False) -> None:
    """Search on from a phase 1's Go, on more seeds or more knobs; the same command resumes.

    Writes a run, RUNS_DIR/phase2/ID.
    """
    _search(requested(context, "phase2"))


@taking(FILE, FOLLOWING, SEARCH)
def run(context: Context, as_json: Json = False) -> None:
    """Run what a file describes, a search or a campaign; the same command resumes.

    Writes a run below RUNS_DIR.
    """
    request = requested(context)
    if request.config.campaign is None:
        _search(request)
    else:
        _campaign(request)


def _search(request: Request) -> None:
    """Search, or go on searching."""
    config = request.config
    if config.search.tier is None:
        in_file = f', or tier = "min" below [search] in {config.file}' if config.file else ""
        same = config.layers.words("search.from", "search.variant")
        raise ValueError(
            f"--tier: say how much to spend: min, target or max{in_file}. See what each costs "
            f"with: {command('plan', *same)}"
        )
    with conducting(config, as_json=request.as_json) as (session, live):
        wanted = Searching(config, slots_of(config), request.overrides)
        finish(wanted.carry_out(session), session.stop, live, as_json=request.as_json)


def _campaign(request: Request) -> None:
    """Carry out the campaign that a configuration describes, or go on with it."""
    if request.overrides:
        raise ValueError(
            f"--override {request.overrides[0][0]}: a condition that fails pauses nothing, so no "
            "rule that can be overridden holds up a campaign"
        )
    config, campaign = request.config, terms_of(request.config)
    slots = slots_of(config)
    slots = replace(slots, count=campaign.workers(slots.count))
    assumed = config.evaluation.assume_eval_seconds
    word = None if assumed is None else Calibration(assumed_seconds=assumed)
    with conducting(config, as_json=request.as_json) as (session, live):
        session.source = None if config.file is None else source_of(config.file)
        pace = Staggered(campaign.stagger_seconds, session.clock.monotonic)
        result = carry_out(campaign_matrix(config, campaign), session, slots, pace, word)
        finish(result, session.stop, live, as_json=request.as_json)


@taking(FILE, PLACE, TUNED, MACHINE)
def calibrate(
    context: Context,
    seeds: Annotated[int, _seeds(1, "Evaluations of the baseline.")] = CALIBRATION_SEEDS,
    again: Again = False,
    override: Override = None,
    reason: Reason = "",
    as_json: Json = False,
) -> None:
    """Measure the baseline: time, memory, FLOPs, and the score's spread over seeds.

    Writes a run, RUNS_DIR/calibration/ID.
    """
    config = resolved_of(context).without_caps()
    overrides = overrides_of(override, reason, again=again)
    slots = slots_of(config)
    known = find_calibration(Path(config.runs_dir), config.tuned, devices_of(slots))
    with conducting(config, as_json=as_json) as (session, live):
        if again:
            result = measuring.calibrate_again(session, config, slots, seeds, overrides, reason)
        else:
            result = measuring.calibrate(session, config, slots, seeds, overrides)
        if known is not None and known.directory == result.directory:
            made, words = f"{last_seen(known.state):%Y-%m-%d %H:%M} UTC", config.layers.words()
            live.say(f"Nothing was measured now: these figures are of {made}. To measure again:")
            live.say(f'{command("calibrate", *words)} --again --reason "WHY"')
        finish(result, session.stop, live, as_json=as_json)


checks = group(
    "What to search, how short, on how many workers: measured first.", "check knobs", "check proxy"
)


@checks.command(
    epilog=examples("check knobs", "check knobs --set space=optimizer --knobs momentum")
)
@taking(FILE, TUNED, BESIDE)
def knobs(
    context: Context,
    seeds: Annotated[int, _seeds(LEAST_SEEDS, "Evaluations of every point.")] = CHECK_SEEDS,
    names: Annotated[
        str | None, Option("--knobs", metavar="A,B", help="Only these; default: all.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Test whether each knob moves the score, in units of the noise.

    Writes a run, RUNS_DIR/check/ID.
    """
    config = resolved_of(context)
    _check(knob_check(config, seeds, names_of(names)), as_json=as_json)


@checks.command(
    epilog=examples(
        "check proxy --fraction 0.25", "check proxy --run min-nanochat-s1 --candidates 12"
    )
)
@taking(FILE, TUNED, BESIDE)
def proxy(
    context: Context,
    around: Annotated[
        str | None,
        Option("--run", metavar="RUN", help="Around what it recommends; default: the baseline."),
    ] = None,
    fraction: Annotated[
        float, Option("--fraction", metavar="SHARE", help="Of an evaluation's FLOPs.")
    ] = 0.25,
    candidates: Annotated[
        int,
        Option(
            "--candidates", metavar="N", min=LEAST_CANDIDATES, max=MOST_SEEDS, help="To compare."
        ),
    ] = LEAST_CANDIDATES,
    seeds: Annotated[int, _seeds(1, "Evaluations of each, either way.")] = 1,
    as_json: Json = False,
) -> None:
    """Whether a shorter evaluation ranks candidates as the full one does.

    Writes a run, RUNS_DIR/check/ID.
    """
    config, centre = resolved_of(context), None
    if around is not None:
        tuned = ("objective", "preset", "profile", TRAINING)
        if any(key.partition(".")[0] in tuned for key in config.sources):
            raise ValueError(
                "--run has its own objective: say no other one, and none of its settings"
            )
        state = load_state(find_run(around, Path(config.runs_dir)))
        config, centre = config.with_objective(objective_of(state.plan)), near(state)
    _check(proxy_check(config, fraction, candidates, seeds, centre), as_json=as_json)


def _check(wanted: Matrix, *, as_json: bool) -> None:
    """Evaluate what the check asks for, or go on with it."""
    with conducting(wanted.config, as_json=as_json) as (session, live):
        result = carry_out(wanted, session, slots_of(wanted.config))
        finish(result, session.stop, live, as_json=as_json)


@checks.command(epilog=examples("check workers", "check workers --counts 1,2"))
@taking(FILE, PLACE, TUNED, MACHINE)
def workers(
    context: Context,
    counts: Annotated[
        str | None,
        Option("--counts", metavar="1,2,4", help="Numbers of workers; default: 1, 2, 4 ..."),
    ] = None,
    seeds: Annotated[int, _seeds(1, "Evaluations at each, at least.")] = sweeping.LEAST_EVALUATIONS,
    again: Again = False,
    override: Override = None,
    reason: Reason = "",
    as_json: Json = False,
) -> None:
    """How many workers to use: the throughput of the baseline on 1, 2, 4 ... of them.

    Writes runs, RUNS_DIR/calibration/ID.
    """
    config = resolved_of(context).without_caps()
    overrides = overrides_of(override, reason, again=again)
    slots, why = slots_of(config), reason if again else ""
    most = min(slots.count, config.backend.max_concurrent or slots.count)
    levels = sweeping.worker_counts(most)
    levels = levels if counts is None else numbers_of("--counts", counts, most)
    sweep = sweeping.Sweep(config, slots, levels, seeds, why, overrides)
    found = []
    with conducting(config, as_json=as_json) as (session, live):
        for result in sweep.carry_out(session):
            if result.ruling.decision != "done":
                finish(result, session.stop, live, as_json=as_json)
            found.append(sweeping.swept(result.state, result.directory))
    fitted = fit([one.level for one in found])
    document = sweeping.as_document(found, fitted, slots.count)
    if as_json:
        print_json(document)
    else:
        name = f"{config.objective} on {slots.device_name}"
        print_markdown(sweeping.to_markdown(name, document))


@checks.command(epilog=examples("check memory --set micro_batch_size=4"))
@taking(FILE, PLACE, TUNED, MACHINE)
def memory(
    context: Context,
    sizes: Annotated[str, Option("--sizes", metavar="1,4", help="Micro-batches to try.")] = "1,4",
    seeds: Annotated[int, _seeds(1, "Evaluations at each.")] = 2,
    as_json: Json = False,
) -> None:
    """The peak of memory by micro-batch, and the largest one that is safe.

    Writes runs, RUNS_DIR/calibration/memory-ID.
    """
    config = resolved_of(context).without_caps()
    slots, states = slots_of(config), dict[int, RunState]()
    sized: dict[int, Config] = {
        size: config.with_objective(with_micro_batch(config.tuned, size))
        for size in numbers_of("--sizes", sizes)
    }
    with conducting(config, as_json=as_json) as (session, live):
        for size, own in sized.items():
            result = measuring.calibrate(session, own, slots, seeds, prefix="memory-")
            if result.ruling.decision != "done":
                finish(result, session.stop, live, as_json=as_json)
            states[size] = result.state
    found = memory_of(config.tuned, states)
    if as_json:
        print_json(found.as_dict())
    else:
        print_markdown(found.to_markdown())
