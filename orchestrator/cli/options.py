"""The options of the command line, each named once, and what they amount to."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, BadParameter, Context, Option

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


def _root(path: Path) -> Path:
    """`--runs-dir`: as a shell gives an unset variable, or unprintable, it is nobody's wish."""
    if path == Path() or not str(path).isprintable():
        raise BadParameter(f"expected a directory's name, got {str(path)!r}")
    return path


Root = Annotated[
    Path, Option("--runs-dir", callback=_root, help="Where runs and calibrations live.")
]
Json = Annotated[bool, Option("--json", help="Print one JSON document instead of text.")]
RunName = Annotated[str | None, Argument(help="Run id or directory; default: the latest.")]
GivenRun = Annotated[str, Argument(help="Run id or directory.")]
ObjectiveName = Annotated[str, Option("--objective", help="What to tune.")]
Settings = Annotated[
    list[str] | None, Option("--set", metavar="KEY=VALUE", help="An objective's setting.")
]
ConfigurationFile = Annotated[Path, Argument(metavar="FILE", help="A configuration in TOML.")]
ConfigFile = Annotated[
    Path | None, Option("--config", metavar="FILE", help="TOML; see: init, explain.")
]
Preset = Annotated[str | None, Option("--preset", help="Named training settings.")]
Profile = Annotated[
    str | None, Option("--profile", help="Training settings cut to the memory: fast, balanced, ...")
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
    Option("--warm-start", metavar="RUN", help="Start where that search stood: id or directory."),
]
KnownFile = Annotated[
    Path | None,
    Option("--known", metavar="FILE", help="TOML or JSON with settings to evaluate first."),
]
TierName = Annotated[Tier | None, Option("--tier", help="How much to spend.")]
SearchMethodName = Annotated[
    SearchMethod | None,
    Option("--search-method", help="How candidates are proposed: docs/search.md; default: guided."),
]
ExecutorName = Annotated[
    Literal["ray", "local", "inline"], Option("--executor", help="How evaluations run.")
]
LauncherName = Annotated[
    Literal["fork", "exec"],
    Option("--launcher", help="Fork a warm process, or start a new interpreter."),
]
Address = Annotated[str | None, Option("--address", help="Join this Ray cluster.")]
DeviceName = Annotated[Literal["auto", "cpu", "cuda"], Option("--device")]
Workers = Annotated[
    int | None,
    Option("--workers", min=1, help="Evaluations at once; default: GPUs, or CPUs."),
]
Override = Annotated[
    list[str] | None, Option("--override", metavar="RULE", help="Go on although this rule fired.")
]
Reason = Annotated[str, Option("--reason", help="Why; goes on record.")]
Threads = Annotated[int | None, Option("--threads", min=1, help="CPU threads each.")]
Generations = Annotated[
    int | None, Option("--generations", min=1, help="At most so many; default: what the tier pays.")
]
SeedsPerCandidate = Annotated[
    int | None,
    Option("--seeds-per-candidate", min=1, max=MOST_SEEDS, help="S; default: the tier's."),
]
EvaluationSeed = Annotated[int, Option("--eval-seed", help="Of the evaluations.")]
MaxEvals = Annotated[int | None, Option("--max-evals", min=1, help="Never more evaluations.")]
MaxDeviceHours = Annotated[
    float | None,
    Option("--max-device-hours", "--max-gpu-hours", max=LARGEST, help="Never more device time."),
]
MaxHours = Annotated[
    float | None, Option("--max-hours", max=LARGEST, help="Never open for longer.")
]
MaxCost = Annotated[float | None, Option("--max-cost", max=LARGEST, help="Never more money.")]
Price = Annotated[
    float, Option("--price-per-device-hour", max=LARGEST, help="For --max-cost and reports.")
]
WindowText = Annotated[
    str | None,
    Option("--window", help="Over by then: 12h, 2d, or a moment such as 2026-11-27T18:00."),
]
SafetyMargin = Annotated[
    str, Option("--safety-margin", help="Of --window, for the last report and clean-up.")
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
    Option(
        "--drain-seconds",
        min=0,
        help="After SIGINT or SIGTERM, kill what still runs; default: let it finish.",
    ),
]
MaxConcurrent = Annotated[
    int | None,
    Option("--max-concurrent", min=1, help="Evaluations at once of all that share the slots."),
]
SlotsDir = Annotated[
    Path | None,
    Option("--slots-dir", help="Where they are shared; default: by all of yours on this host."),
]
BackpressureOn = Annotated[
    bool,
    Option("--backpressure/--no-backpressure", help="Fewer at once while more would do less."),
]
AllowNetworkFs = Annotated[
    bool, Option("--allow-network-fs", help="Keep the ledger on a network file system.")
]
AcceptDrift = Annotated[
    bool, Option("--accept-drift", help="Let pass what another processor's last bits change.")
]
LimitSeconds = Annotated[
    float | None,
    Option(
        "--limit-seconds",
        "--timeout-s",
        max=LARGEST,
        help="Kill an evaluation after; default: 6 x the calibrated p90, 60 at least.",
    ),
]
StallSeconds = Annotated[
    float | None,
    Option("--stall-seconds", max=LARGEST, help="Kill it when it says nothing for; default: 120."),
]


ConfirmSeeds = Annotated[
    int | None,
    Option(
        "--confirm-seeds",
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
    Option(
        "--rung",
        min=0,
        max=LARGEST,
        help=(
            "Times the FLOPs, on which a gain must persist; 0: not tried; "
            f"default: {RUNG_FACTOR:g}."
        ),
    ),
]
RungSeeds = Annotated[
    int | None,
    Option("--rung-seeds", min=0, max=MOST_SEEDS, help=f"Of the rung; default: {RUNG_SEEDS}."),
]
ThresholdsFile = Annotated[
    Path | None,
    Option("--thresholds", metavar="FILE", help="TOML with other limits; see: explain."),
]
Patience = Annotated[
    int | None,
    Option("--patience", min=1, help="Stop after so many generations without improvement."),
]
MinImprove = Annotated[
    float | None,
    Option("--min-improve", min=0, help="Less, of the baseline's score, is none."),
]


def _phase_options(
    config: ConfigFile = None,
    preset: Preset = None,
    profile: Profile = None,
    tier: TierName = None,
    objective: ObjectiveName = "nanochat",
    settings: Settings = None,
    run_id: Annotated[
        str | None, Option("--run-id", help="Its name; default: tier, objective, seed.")
    ] = None,
    root: Root = DEFAULT_ROOT,
    search_seed: Annotated[int, Option("--seed", "--search-seed", help="Of the search.")] = 1,
    evaluation_seed: EvaluationSeed = 123,
    method: SearchMethodName = None,
    sigma0: Annotated[
        float | None,
        Option(
            "--sigma0",
            "--sigma",
            help=(
                "First step, of each knob's range; default: 0.15 (plain: 0.2), or the followed "
                "run's."
            ),
        ),
    ] = None,
    population: Annotated[
        int | None, Option("--population", "--popsize", help="P; default: 2 x devices.")
    ] = None,
    generations: Generations = None,
    seeds_per_candidate: SeedsPerCandidate = None,
    warm_start: WarmStart = None,
    known: KnownFile = None,
    proxy: Annotated[
        float | None,
        Option(
            "--proxy",
            metavar="FRACTION",
            help="Evaluate shorter, by this much, while both are shown to agree.",
        ),
    ] = None,
    max_evals: MaxEvals = None,
    max_device_hours: MaxDeviceHours = None,
    max_hours: MaxHours = None,
    max_cost: MaxCost = None,
    window: WindowText = None,
    safety_margin: SafetyMargin = "30m",
    price: Price = 0.0,
    limit_seconds: LimitSeconds = None,
    stall_seconds: StallSeconds = None,
    assumed_seconds: Annotated[
        float | None,
        Option(
            "--assume-eval-seconds",
            max=LARGEST,
            help="Do not calibrate: an evaluation takes this long.",
        ),
    ] = None,
    override: Override = None,
    reason: Reason = "",
    confirm_seeds: ConfirmSeeds = None,
    rung_factor: RungFactor = None,
    rung_seeds: RungSeeds = None,
    thresholds: ThresholdsFile = None,
    patience: Patience = None,
    min_improve: MinImprove = None,
    accept_drift: AcceptDrift = False,
    track: Track = None,
    fork_run: Annotated[
        bool,
        Option("--fork-run", help="Begin another run whose parent is the one of that name."),
    ] = False,
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
    allow_network_fs: AllowNetworkFs = False,
    as_json: Json = False,
) -> None:
    """What every command about a phase takes; `_parsed` reads them."""


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
        Option("--seeds", min=LEAST_SEEDS, max=MOST_SEEDS, help="Evaluations of every point."),
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
    if not reason.isprintable() or secrets.redacted(reason, {}) != reason:
        raise ValueError(
            f"--reason goes on record: expected one printable line without secrets, got {reason!r}"
        )
    return tuple((rule, reason) for rule in rules or ())
