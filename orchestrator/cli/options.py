"""The options of the command line, each named once, and what they amount to."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, BadParameter, Context, Option

from budgets.rules.triggers import RULES
from budgets.terms import SearchMethod, Tier, VariantName
from objectives import secrets
from objectives.api import Objective
from orchestrator.checks.space import CHECK_SEEDS, LEAST_SEEDS, CheckRequest
from orchestrator.config.asked import FLAGS, Asked, Conduct, asked_of, conduct_of, request_of
from orchestrator.config.resolve import Given, Resolved, resolve
from orchestrator.config.sections import LARGEST, MOST_SEEDS
from orchestrator.config.thresholds import read_changes
from orchestrator.planning.request import RUNG_FACTOR, RUNG_SEEDS, VERDICT_SEEDS, Request

Flags = Mapping[str, tuple[Any, str]]
"""Values by dotted key, each with the name of its flag."""

DEFAULT_ROOT = Path("artifacts/cmaes")


def _of(panel: str) -> Callable[..., Any]:
    """Options that `--help` shows together below that title."""
    return partial(Option, rich_help_panel=panel)


_tuned, _searching, _judging = _of("What is tuned"), _of("Search"), _of("Verdict")
_spending, _ruling = _of("Budget"), _of("Rules")
_evaluating, _running = _of("Evaluations"), _of("Machine")


def _root(path: Path) -> Path:
    """`--runs-dir`: as a shell gives an unset variable, or unprintable, it is nobody's wish."""
    if path == Path() or not str(path).isprintable():
        raise BadParameter(f"expected a directory's name, got {str(path)!r}")
    return path


def amount(value: float | None) -> float | None:
    """A larger one is a slip; below zero the model it goes into has its say."""
    if value is not None and value > LARGEST:
        raise BadParameter(f"expected at most {LARGEST:g}")
    return value


Root = Annotated[
    Path,
    Option("--runs-dir", callback=_root, metavar="DIR", help="Where runs and calibrations live."),
]
Json = Annotated[bool, Option("--json", help="Print one JSON document instead of text.")]
RunName = Annotated[
    str | None, Argument(metavar="RUN", help="Run id or directory; default: the latest.")
]
GivenRun = Annotated[str, Argument(metavar="RUN", help="Run id or directory.")]
ObjectiveName = Annotated[str, _tuned("--objective", metavar="NAME", help="What to tune.")]
Settings = Annotated[
    list[str] | None,
    _tuned("--set", metavar="KEY=VALUE", help="A setting of what is tuned. Repeatable."),
]
ConfigurationFile = Annotated[Path, Argument(metavar="FILE", help="A configuration in TOML.")]
ConfigFile = Annotated[
    Path | None,
    Option("--config", metavar="FILE", help="A configuration in TOML; see: init, explain."),
]
Preset = Annotated[str | None, _tuned("--preset", metavar="NAME", help="Named training settings.")]
Profile = Annotated[
    str | None,
    _tuned("--profile", metavar="NAME", help="Settings cut to the memory: fast, balanced, ..."),
]
FollowedRun = Annotated[
    str | None,
    Option("--from", metavar="RUN", help="The phase 1 whose Go it follows: id or directory."),
]
Variant = Annotated[
    VariantName | None,
    Option("--variant", help="The same knobs on 3 seeds each, or more knobs on one."),
]
WarmStart = Annotated[
    str | None,
    _searching(
        "--warm-start", metavar="RUN", help="Start where that search stood: id or directory."
    ),
]
KnownFile = Annotated[
    Path | None,
    _searching("--known", metavar="FILE", help="TOML or JSON with settings to evaluate first."),
]
TierName = Annotated[Tier | None, Option("--tier", help="How much to spend.")]
SearchMethodName = Annotated[
    SearchMethod | None,
    _searching(
        "--search-method",
        metavar="NAME",
        help="How candidates are proposed: guided (default), mirrored-orthogonal or plain.",
    ),
]
ExecutorName = Annotated[
    Literal["ray", "local", "inline"],
    _running("--executor", metavar="NAME", help="What runs evaluations: ray, local or inline."),
]
LauncherName = Annotated[
    Literal["fork", "exec"],
    _running("--launcher", help="Fork a warm process, or start a new interpreter."),
]
Address = Annotated[
    str | None, _running("--address", metavar="HOST:PORT", help="Join this Ray cluster.")
]
DeviceName = Annotated[
    Literal["auto", "cpu", "cuda"], _running("--device", help="What evaluations run on.")
]
Workers = Annotated[
    int | None,
    _running("--workers", metavar="N", min=1, help="Evaluations at once; default: GPUs, or CPUs."),
]
Override = Annotated[
    list[str] | None, _ruling("--override", metavar="RULE", help="Go on although this rule fired.")
]
Reason = Annotated[str, _ruling("--reason", metavar="TEXT", help="Why; goes on record.")]
Threads = Annotated[
    int | None, _running("--threads", metavar="N", min=1, help="CPU threads of an evaluation.")
]
Generations = Annotated[
    int | None,
    _searching(
        "--generations", metavar="N", min=1, help="At most so many; default: what the tier pays."
    ),
]
SeedsPerCandidate = Annotated[
    int | None,
    _searching(
        "--seeds-per-candidate", metavar="N", min=1, max=MOST_SEEDS, help="Default: the tier's."
    ),
]
EvaluationSeed = Annotated[
    int, _evaluating("--eval-seed", metavar="SEED", help="Where their seeds begin.")
]
MaxEvals = Annotated[
    int | None, _spending("--max-evals", metavar="N", min=1, help="Never more evaluations.")
]
MaxDeviceHours = Annotated[
    float | None,
    _spending(
        "--max-device-hours",
        "--max-gpu-hours",
        metavar="HOURS",
        callback=amount,
        help="Never more device time.",
    ),
]
MaxHours = Annotated[
    float | None,
    _spending("--max-hours", metavar="HOURS", callback=amount, help="Never open for longer."),
]
MaxCost = Annotated[
    float | None,
    _spending("--max-cost", metavar="MONEY", callback=amount, help="Never more money."),
]
Price = Annotated[
    float,
    _spending(
        "--price-per-device-hour",
        metavar="MONEY",
        callback=amount,
        help="For --max-cost and reports.",
    ),
]
WindowText = Annotated[
    str | None,
    _spending(
        "--window",
        metavar="TIME",
        help="Over by then: 12h, 2d, or a moment such as 2026-11-27T18:00.",
    ),
]
SafetyMargin = Annotated[
    str,
    _spending(
        "--safety-margin",
        metavar="TIME",
        help="Of --window, kept for the last report and clean-up.",
    ),
]
Track = Annotated[
    list[str] | None,
    Option(
        "--track",
        metavar="NAME",
        help="Tell a tracker too: tensorboard, wandb, mlflow. Repeatable.",
    ),
]
DrainSeconds = Annotated[
    float | None,
    _running(
        "--drain-seconds",
        metavar="SECONDS",
        min=0,
        help="After SIGINT or SIGTERM, kill what still runs; default: let it finish.",
    ),
]
MaxConcurrent = Annotated[
    int | None,
    _running(
        "--max-concurrent",
        metavar="N",
        min=1,
        help="Evaluations at once, of all runs that share the slots.",
    ),
]
SlotsDir = Annotated[
    Path | None,
    _running(
        "--slots-dir",
        metavar="DIR",
        help="Where slots are shared; default: by all your runs on this host.",
    ),
]
BackpressureOn = Annotated[
    bool,
    _running(
        "--backpressure/--no-backpressure",
        show_default=False,
        help="Fewer at once while more would do less.",
    ),
]
AllowNetworkFs = Annotated[
    bool, Option("--allow-network-fs", help="Keep the ledger on a network file system.")
]
AcceptDrift = Annotated[
    bool, _ruling("--accept-drift", help="Let pass what another processor's last bits change.")
]
LimitSeconds = Annotated[
    float | None,
    _evaluating(
        "--limit-seconds",
        "--timeout-s",
        metavar="SECONDS",
        callback=amount,
        help="Kill one that takes longer; default: 6 x the calibrated p90, 60 at least.",
    ),
]
StallSeconds = Annotated[
    float | None,
    _evaluating(
        "--stall-seconds",
        metavar="SECONDS",
        callback=amount,
        help="Kill one that is silent for longer; default: 120.",
    ),
]


ConfirmSeeds = Annotated[
    int | None,
    _judging(
        "--confirm-seeds",
        metavar="N",
        min=0,
        max=MOST_SEEDS,
        help=(
            "Fresh ones on which the winner meets the baseline; 0: no comparison, so no Go; "
            f"default: {VERDICT_SEEDS}."
        ),
    ),
]
RungFactor = Annotated[
    float | None,
    _judging(
        "--rung",
        metavar="TIMES",
        min=0,
        callback=amount,
        help=(
            "Times the FLOPs, on which a gain must persist; 0: not tried; "
            f"default: {RUNG_FACTOR:g}."
        ),
    ),
]
RungSeeds = Annotated[
    int | None,
    _judging(
        "--rung-seeds",
        metavar="N",
        min=0,
        max=MOST_SEEDS,
        help=f"Seeds of the rung; default: {RUNG_SEEDS}.",
    ),
]
ThresholdsFile = Annotated[
    Path | None,
    _ruling("--thresholds", metavar="FILE", help="TOML with other limits; see: explain."),
]
Patience = Annotated[
    int | None,
    _searching(
        "--patience", metavar="N", min=1, help="Stop after so many generations without improvement."
    ),
]
MinImprove = Annotated[
    float | None,
    _searching(
        "--min-improve",
        metavar="SHARE",
        min=0,
        help="Less than this share of the baseline's score is no improvement.",
    ),
]


def _phase_options(
    config: ConfigFile = None,
    preset: Preset = None,
    profile: Profile = None,
    tier: TierName = None,
    objective: ObjectiveName = "nanochat",
    settings: Settings = None,
    run_id: Annotated[
        str | None,
        Option("--run-id", metavar="ID", help="Its name; default: tier, objective, seed."),
    ] = None,
    root: Root = DEFAULT_ROOT,
    fork_run: Annotated[
        bool,
        Option("--fork-run", help="Begin another run whose parent is the one of that name."),
    ] = False,
    track: Track = None,
    allow_network_fs: AllowNetworkFs = False,
    search_seed: Annotated[
        int, _searching("--seed", "--search-seed", metavar="SEED", help="Seed of the search.")
    ] = 1,
    method: SearchMethodName = None,
    sigma0: Annotated[
        float | None,
        _searching(
            "--sigma0",
            "--sigma",
            metavar="SHARE",
            help="First step, of each knob's range; default: 0.15 (plain: 0.2), or the followed "
            "run's.",
        ),
    ] = None,
    population: Annotated[
        int | None,
        _searching(
            "--population",
            "--popsize",
            metavar="N",
            help="Candidates a generation; default: 2 x devices.",
        ),
    ] = None,
    generations: Generations = None,
    seeds_per_candidate: SeedsPerCandidate = None,
    warm_start: WarmStart = None,
    known: KnownFile = None,
    proxy: Annotated[
        float | None,
        _searching(
            "--proxy",
            metavar="SHARE",
            help="Evaluate shorter, by this much, while both are shown to agree.",
        ),
    ] = None,
    patience: Patience = None,
    min_improve: MinImprove = None,
    max_evals: MaxEvals = None,
    max_device_hours: MaxDeviceHours = None,
    max_hours: MaxHours = None,
    max_cost: MaxCost = None,
    window: WindowText = None,
    safety_margin: SafetyMargin = "30m",
    price: Price = 0.0,
    confirm_seeds: ConfirmSeeds = None,
    rung_factor: RungFactor = None,
    rung_seeds: RungSeeds = None,
    thresholds: ThresholdsFile = None,
    override: Override = None,
    reason: Reason = "",
    accept_drift: AcceptDrift = False,
    evaluation_seed: EvaluationSeed = 123,
    limit_seconds: LimitSeconds = None,
    stall_seconds: StallSeconds = None,
    assumed_seconds: Annotated[
        float | None,
        _evaluating(
            "--assume-eval-seconds",
            metavar="SECONDS",
            callback=amount,
            help="Do not calibrate: an evaluation takes this long.",
        ),
    ] = None,
    executor: ExecutorName = "ray",
    launcher: LauncherName = "fork",
    address: Address = None,
    device: DeviceName = "auto",
    workers: Workers = None,
    threads: Threads = None,
    max_concurrent: MaxConcurrent = None,
    slots_dir: SlotsDir = None,
    backpressure: BackpressureOn = False,
    drain_seconds: DrainSeconds = None,
    as_json: Json = False,
) -> None:
    """What every command about a phase takes."""


def _following_options(run: FollowedRun = None, variant: Variant = None) -> None:
    """What only a phase 2 takes besides, or a file says."""


def phase_command(
    act: Callable[[Asked], None], phase: Literal["phase1", "phase2"]
) -> Callable[..., None]:
    """One signature for every command about a phase: they cannot drift apart."""

    def command(context: Context, **options: Any) -> None:
        asked = _asked(context, options, {"search.phase": (phase, phase)})
        if asked.resolved.campaign is not None:
            raise ValueError(
                f"{asked.resolved.file} describes a campaign, not a search: orchestrator run FILE"
            )
        act(asked)

    own = (_following_options,) if phase == "phase2" else ()
    return _taking(command, *own, _phase_options)


def file_command(act: Callable[[Asked], None]) -> Callable[..., None]:
    """The same signature for what a file describes, whichever phase or campaign it is."""

    def command(context: Context, file: ConfigurationFile, **options: Any) -> None:
        if options["config"] is not None:
            raise ValueError(f"--config: the file is {file}, give it once")
        act(_asked(context, {**options, "config": file}, {}))

    return _taking(command, _following_options, _phase_options)


def _taking(command: Callable[..., None], *options: Callable[..., None]) -> Callable[..., None]:
    """The command with its own parameters, then those of each of `options`."""
    own = [p for p in inspect.signature(command).parameters.values() if p.name != "options"]
    others = [p for taken in options for p in inspect.signature(taken).parameters.values()]
    signature = inspect.Signature([*own, *others])
    command.__signature__ = signature  # type: ignore[attr-defined]  # where typer looks
    return command


def _asked(context: Context, options: Mapping[str, Any], flags: Flags) -> Asked:
    return asked_of(
        resolved_of(context, options, flags),
        overrides=overrides_of(options["override"], options["reason"]),
        accept_drift=options["accept_drift"],
        fork=options["fork_run"],
        as_json=options["as_json"],
    )


def resolved_of(
    context: Context, options: Mapping[str, Any], flags: Flags | None = None
) -> Resolved:
    """The file with everything that is said beside it. Raises ValueError on what cannot be.

    Only options that were really given count: the others leave the file its say.
    """
    given = {**(flags or {}), **limits_given(options.get("thresholds"))}
    for name, key in FLAGS.items():
        if name in options and _is_given(context, name):
            value = options[name]
            given[key] = (str(value) if isinstance(value, Path) else value, _flag(context, name))
    return resolve(
        Given(
            file=options.get("config"),
            preset=options.get("preset"),
            profile=options.get("profile"),
            assignments=options.get("settings") or (),
            flags=given,
        )
    )


def limits_given(file: Path | None) -> Flags:
    """What `--thresholds FILE` says. Raises ValueError on what is no threshold."""
    changed = {} if file is None else read_changes(file)
    return {f"thresholds.{name}": (v, f"--thresholds {file}") for name, v in changed.items()}


def _is_given(context: Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _flag(context: Context, name: str) -> str:
    return next((p.opts[0] for p in context.command.params if p.name == name), name)


@dataclass(frozen=True)
class AskedCheck:
    """`space check`'s options, parsed."""

    request: CheckRequest
    conduct: Conduct


def _check_options(
    config: ConfigFile = None,
    objective: ObjectiveName = "nanochat",
    settings: Settings = None,
    root: Root = DEFAULT_ROOT,
    seeds: Annotated[
        int,
        Option(
            "--seeds",
            metavar="N",
            min=LEAST_SEEDS,
            max=MOST_SEEDS,
            help="Evaluations of every point.",
        ),
    ] = CHECK_SEEDS,
    knobs: Annotated[
        str | None, Option("--knobs", metavar="A,B", help="Only these; default: all.")
    ] = None,
    evaluation_seed: EvaluationSeed = 123,
    max_evals: MaxEvals = None,
    max_device_hours: MaxDeviceHours = None,
    max_hours: MaxHours = None,
    max_cost: MaxCost = None,
    window: WindowText = None,
    safety_margin: SafetyMargin = "30m",
    price: Price = 0.0,
    limit_seconds: LimitSeconds = None,
    stall_seconds: StallSeconds = None,
    executor: ExecutorName = "ray",
    launcher: LauncherName = "fork",
    address: Address = None,
    device: DeviceName = "auto",
    workers: Workers = None,
    threads: Threads = None,
    drain_seconds: DrainSeconds = None,
    allow_network_fs: AllowNetworkFs = False,
    as_json: Json = False,
) -> None:
    """What `space check` takes."""


def check_command(act: Callable[[AskedCheck], None]) -> Callable[..., None]:
    """The signature of `space check`."""

    def command(context: Context, **options: Any) -> None:
        resolved = resolved_of(context, options)
        knobs = options["knobs"]
        names = tuple(name.strip() for name in knobs.split(",")) if knobs is not None else ()
        conduct = conduct_of(resolved, as_json=options["as_json"])
        act(AskedCheck(CheckRequest(terms_of(resolved), options["seeds"], names), conduct))

    return _taking(command, _check_options)


def terms_of(resolved: Resolved) -> Request:
    """On what terms something is evaluated beside any search."""
    return replace(request_of(resolved), phase="check", tier="min")


def load_objective(name: str, settings: list[str] | None) -> Objective:
    """The objective with its `KEY=VALUE` settings. Raises ValueError, naming what is wrong."""
    given = Given(assignments=settings or (), flags={"objective": (name, "--objective")})
    return resolve(given).objective


def overrides_of(
    rules: list[str] | None, reason: str, *, again: bool = False
) -> tuple[tuple[str, str], ...]:
    """Each rule with the reason, which may also be that of calibrating `again`.

    Raises ValueError on one without the other.
    """
    if rules and not reason.strip():
        raise ValueError("--override needs --reason: why may the run go on?")
    if again and not reason.strip():
        raise ValueError("--again needs --reason: why is the calibration there is not enough?")
    if reason and not (rules or again):
        raise ValueError(
            "--reason goes on record with --override (which rule may the run pass?) or calibrate "
            "--again"
        )
    for_record(reason)
    for rule in rules or ():
        if rule not in RULES:
            raise ValueError(f"--override {rule}: expected one of {', '.join(RULES)}")
    return tuple((rule, reason) for rule in rules or ())


def for_record(reason: str) -> str:
    """The reason as it is. Raises ValueError on what no ledger should keep."""
    if not reason.isprintable() or secrets.redacted(reason, {}) != reason:
        raise ValueError(
            f"--reason goes on record: expected one printable line without secrets, got {reason!r}"
        )
    return reason
