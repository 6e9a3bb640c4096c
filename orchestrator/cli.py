"""The command line: parse, build, call, print, exit code."""

import io
import signal
import sys
from typing import Annotated, Any, get_args

import typer
from pydantic import ValidationError
from pydantic_core import ErrorDetails
from rich.markdown import Markdown
from typer import Option

from budgets.calibration import eval_seconds, measure, noise
from budgets.chain import LedgerCorruptError
from budgets.fold import ImpossibleEventError
from budgets.ledger import LedgerStorageError
from budgets.lock import LedgerLockedError
from budgets.markdown import amount
from budgets.plain import printable
from budgets.report import budget_report
from budgets.state import RunState
from budgets.storage import FULL
from budgets.terms import Calibration, Tier
from objectives.api import SetupError
from orchestrator import artifacts
from orchestrator.analyze_command import analyze
from orchestrator.calibrations import CALIBRATION_SEEDS, find_calibration
from orchestrator.capacity.sweep import LEAST_EVALUATIONS
from orchestrator.capacity.sweep_command import SweepWorkers, WorkerCounts, sweep_workers
from orchestrator.engine import Engine, devices_of
from orchestrator.execution import processes
from orchestrator.execution.server import EngineError
from orchestrator.explain import explain
from orchestrator.follow import follow, foreseen
from orchestrator.ledger_commands import amend, ledgers, verify
from orchestrator.options import (
    DEFAULT_ROOT,
    MOST_SEEDS,
    Address,
    AllowNetworkFs,
    Asked,
    Conduct,
    DeviceName,
    DrainSeconds,
    ExecutorName,
    Json,
    LauncherName,
    ObjectiveName,
    Override,
    Reason,
    Root,
    RunName,
    Settings,
    Threads,
    Workers,
    following_command,
    load_objective,
    overrides_of,
    phase_command,
)
from orchestrator.planning.page import preview_tiers, to_markdown
from orchestrator.planning.request import Request
from orchestrator.proxy_commands import proxies
from orchestrator.recorded import find_run, load_state
from orchestrator.space_commands import spaces
from orchestrator.terminal import (
    EXIT_CORRUPT,
    EXIT_SIGNAL,
    EXIT_STORAGE,
    conducting,
    console,
    finish,
    print_json,
)
from orchestrator.walk import ReplayError
from orchestrator.warm import start as warm

EXIT_BAD_INPUT = 2
EXIT_LOCKED, EXIT_ENGINE = 5, 7

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="CMA-ES search on a budget that is reserved before it is spent.",
)


def run_phase(asked: Asked) -> None:
    """Search, or go on searching."""
    if not asked.tier_given:
        raise ValueError(
            "--tier: say how much to spend: min, target or max. "
            f"See what each costs with: orchestrator plan {asked.request.phase}"
        )
    with conducting(asked.conduct) as (session, live):
        result = session.search(
            asked.request,
            asked.conduct.engine.slots(),
            asked.assumed_seconds,
            asked.overrides,
            accept_drift=asked.accept_drift,
        )
        finish(result, session.stop, live, asked.conduct.as_json)


def plan_phase(asked: Asked) -> None:
    """Print what would be spent. Touches nothing."""
    devices = devices_of(asked.conduct.engine.slots())
    warnings = asked.request.objective.preflight()
    if asked.assumed_seconds is not None:
        calibration: Calibration | None = Calibration(assumed_seconds=asked.assumed_seconds)
    else:
        found = find_calibration(asked.conduct.root, asked.request.objective, devices)
        calibration = None if found is None else measure(found.state)
    succession, notes = None, tuple[str, ...]()
    if asked.request.follows is not None:
        followed = follow(asked.conduct.root, asked.request, devices.kind)
        succession = foreseen(followed, asked.request)
        warnings = (*warnings, *followed.objections.values())
    if asked.request.warm_start is not None:
        start = warm.find_start(asked.conduct.root, asked.request)
        succession, notes = warm.foreseen(start, asked.request), start.notes
    tiers = (asked.request.tier,) if asked.tier_given else get_args(Tier)
    previews = preview_tiers(asked.request, devices, calibration, tiers, succession)
    if asked.conduct.as_json:
        print_json([p.as_dict() for p in previews])
    else:
        console().print(Markdown(to_markdown(previews)))
        for note in notes:
            print(printable(f"Note: {note}."))
        for warning in warnings:
            print(printable(f"Warning: {warning}."))


app.command("phase1", help="Search; the same command resumes.")(phase_command(run_phase))
app.command("phase2", help="Search on from a phase 1's Go; the same command resumes.")(
    following_command(run_phase)
)
plans = typer.Typer(help="What would be spent, without spending it.", no_args_is_help=True)
plans.command("phase1", help="What a phase 1 search would cost; all tiers without --tier.")(
    phase_command(plan_phase)
)
plans.command("phase2", help="What a phase 2 search would cost; all tiers without --tier.")(
    following_command(plan_phase)
)
app.add_typer(plans, name="plan")
app.add_typer(spaces, name="space")
app.add_typer(proxies, name="proxy")
app.add_typer(ledgers, name="ledger")
app.command()(verify)
app.command()(amend)
app.command()(analyze)
app.command()(explain)


@app.command()
def calibrate(
    objective: ObjectiveName = "nanochat",
    settings: Settings = None,
    root: Root = DEFAULT_ROOT,
    repeats: Annotated[
        int | None,
        Option(
            "--repeats",
            min=1,
            max=MOST_SEEDS,
            help=f"Seeds; default: {CALIBRATION_SEEDS}, of a sweep {LEAST_EVALUATIONS} a level.",
        ),
    ] = None,
    sweep: SweepWorkers = False,
    counts: WorkerCounts = None,
    executor: ExecutorName = "ray",
    launcher: LauncherName = "fork",
    address: Address = None,
    device: DeviceName = "auto",
    workers: Workers = None,
    threads: Threads = None,
    drain_seconds: DrainSeconds = None,
    allow_network_fs: AllowNetworkFs = False,
    again: Annotated[
        bool, Option("--again", help="Measure anew beside what there is; needs --reason.")
    ] = False,
    override: Override = None,
    reason: Reason = "",
    as_json: Json = False,
) -> None:
    """Measure the baseline: time, memory, FLOPs, and the score's spread over seeds."""
    chosen = load_objective(objective, settings)
    engine = Engine(executor, launcher, address, device, workers, threads)
    how = Conduct(root, engine, drain_seconds, allow_network_fs, as_json)
    slots, overrides = engine.slots(), overrides_of(override, reason, again=again)
    if counts is not None and not sweep:
        raise ValueError("--worker-counts: expected --sweep-workers beside it, got it alone")
    if sweep:
        sweep_workers(how, chosen, counts, repeats, reason if again else "")
        return
    repeats = CALIBRATION_SEEDS if repeats is None else repeats
    with conducting(how) as (session, live):
        if again:
            result = session.calibrate_again(chosen, slots, repeats, overrides, reason)
        else:
            result = session.calibrate(chosen, slots, repeats, overrides)
        if result.verdict.decision != "done":
            finish(result, session.stop, live, as_json)
        calibration = measure(result.state)
        previews = preview_tiers(
            Request("phase1", "target", chosen), devices_of(slots), calibration
        )
    if as_json:
        measured = {
            "median_seconds": calibration.median_seconds,
            "p90_seconds": calibration.p90_seconds,
            "evals_per_hour": 3600 / calibration.median_seconds,
            "mean_score": calibration.mean_score,
            "sd_score": calibration.sd_score,
            "noise": noise(calibration),
            "eval_seconds": eval_seconds(calibration),
        }
        print_json(
            {
                "directory": str(result.directory),
                "calibration": {**calibration.model_dump(mode="json"), **measured},
                "tiers": [p.as_dict() for p in previews],
            }
        )
    else:
        console().print(Markdown(to_markdown(previews)))


@app.command()
def status(run: RunName = None, root: Root = DEFAULT_ROOT, as_json: Json = False) -> None:
    """How a run stands, also while another process runs it."""
    directory = find_run(run, root)
    state = load_state(directory)
    running = _is_running(state)
    report = budget_report(state)
    if as_json:
        document = {"directory": str(directory), "running": running, **report.model_dump()}
        print_json(document)
        return
    whose = f"running (pid {state.opened[-1].owner.pid})" if running else "not running"
    print(printable(f"{directory}: {whose}"))
    print(printable(report.sentence))
    for balance in report.balances:
        if balance.counts:
            free = "" if balance.free is None else " free"
            print(
                f"  {balance.currency:13s} {amount(balance, balance.spent)} spent, "
                f"{amount(balance, balance.reserved)} reserved, "
                f"{amount(balance, balance.free)}{free}"
            )
    if report.decision == "continue" and not running:
        print("Repeat the command that began it to go on.")


@app.command()
def report(
    run: RunName = None,
    root: Root = DEFAULT_ROOT,
    rebuild: Annotated[
        bool, Option("--rebuild", help="Also write the run's report files again.")
    ] = False,
    as_json: Json = False,
) -> None:
    """The budget report of a run as it stands."""
    directory = find_run(run, root)
    state = load_state(directory)
    if rebuild:
        artifacts.rebuild(directory)
    if as_json:
        print_json(budget_report(state).model_dump())
    else:
        console().print(Markdown(artifacts.markdown(state)))


def _is_running(state: RunState) -> bool:
    if state.concluded is not None or not state.opened:
        return False
    owner = state.opened[-1].owner
    return owner.boot_id == processes.boot_id() and not processes.owner_is_gone(owner)


_ParserError: type[Exception] = typer.BadParameter.__mro__[1]
"""What the parser raises on a command line it does not understand; typer exports subclasses."""

_EXIT_BY_ERROR: dict[type[Exception], int] = {
    ValueError: EXIT_BAD_INPUT,
    _ParserError: EXIT_BAD_INPUT,
    SetupError: EXIT_BAD_INPUT,
    LedgerLockedError: EXIT_LOCKED,
    LedgerCorruptError: EXIT_CORRUPT,
    ImpossibleEventError: EXIT_CORRUPT,
    ReplayError: EXIT_CORRUPT,
    EngineError: EXIT_ENGINE,
    LedgerStorageError: EXIT_STORAGE,
    OSError: EXIT_STORAGE,
}


def main() -> None:
    """The entry point: one clear line for every error, and its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal's charset stops no run
    try:
        sys.exit(app(standalone_mode=False) or 0)
    except tuple(_EXIT_BY_ERROR) as error:
        code = next(code for kind, code in _EXIT_BY_ERROR.items() if isinstance(error, kind))
        if message := printable(_in_words(error)):
            if "--json" in sys.argv:
                print_json({"error": message, "exit_code": code})
            print(f"error: {message}", file=sys.stderr)
        sys.exit(code)
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        sys.exit(EXIT_SIGNAL + signal.SIGINT)


_FLAGS = {
    "assumed_seconds": "--assume-eval-seconds",
    "cost": "--max-cost",
    "device_hours": "--max-device-hours",
    "evaluation_seed": "--eval-seed",
    "hours": "--max-hours",
    "patience_generations": "--patience",
    "patience_improve": "--min-improve",
    "price_per_device_hour": "--price-per-device-hour",
    "seed": "--seed",
    "sigma0": "--sigma0",
    "stall_seconds": "--stall-seconds",
    "wall_seconds": "--limit-seconds",
}
"""Where a plan's fields come from, for messages about them."""


def _in_words(error: Exception) -> str:
    """One line; of a model's complaints each with its option and what came."""
    if isinstance(error, OSError) and error.errno in FULL:
        return f"{error}. Make room and repeat the command; nothing paid is lost"
    if isinstance(error, _ParserError):
        return _of_parser(error)
    if isinstance(error, OSError) and error.filename is not None:
        path = error.filename2 or error.filename
        return f"cannot use {path}: {error.strerror}. Move it away, or name another --runs-dir"
    if not isinstance(error, ValidationError):
        return str(error)
    return "; ".join(_complaint(details) for details in error.errors())


def _of_parser(error: Any) -> str:
    if type(error).__name__ == "NoArgsIsHelpError":
        return ""  # the help has been shown: there is no more to say
    message = " ".join(error.format_message().split()).replace("Value error, ", "").rstrip(".")
    came = _value_of(getattr(error, "param", None))
    command = error.ctx.command_path if error.ctx else "orchestrator"
    got = "" if came is None or repr(came) in message else f", got {came!r}"
    return f"{message}{got}. See: {command} --help"


def _value_of(option: Any) -> str | None:
    """What the command line gave an option, as far as it can be told."""
    words = sys.argv[1:]
    for name in getattr(option, "opts", ()):
        for word, following in zip(words, [*words[1:], None], strict=True):
            if word == name:
                return following
            if word.startswith(f"{name}="):
                return word.removeprefix(f"{name}=")
    return None


def _complaint(details: ErrorDetails) -> str:
    message = details["msg"].removeprefix("Value error, ")
    if not details["loc"]:
        return message
    field = str(details["loc"][-1])
    return f"{_FLAGS.get(field, field)}: {message}, got {details['input']!r}"
