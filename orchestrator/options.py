"""The options of the command line, each named once, and what they amount to."""

import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, BadParameter, Option

from budgets.terms import Phase, SearchMethod, Tier, VariantName, Window
from objectives import registry, secrets
from objectives.api import Objective, ObjectiveSpec
from orchestrator.capacity.terms import Backpressure, Pacing
from orchestrator.check import CHECK_SEEDS, LEAST_SEEDS, CheckRequest
from orchestrator.engine import Engine
from orchestrator.planning.request import (
    RUNG_FACTOR,
    RUNG_SEEDS,
    VERDICT_SEEDS,
    Confirm,
    Follows,
    Request,
)
from orchestrator.planning.window import parse_window
from orchestrator.thresholds import changes
from orchestrator.warm.known import read_known

DEFAULT_ROOT = Path("artifacts/cmaes")
MOST_SEEDS = 1000  # of one point

LARGEST = 1e9
"""Of any number of hours, seconds or money: a larger one is a slip, and no clock counts so far."""


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
FollowedRun = Annotated[
    str, Option("--from", metavar="RUN", help="The phase 1 whose Go it follows: id or directory.")
]
Variant = Annotated[
    VariantName,
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
    bool, Option("--backpressure", help="Fewer at once while more would do less together.")
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


@dataclass(frozen=True)
class Conduct:
    """How a command that evaluates goes about it, whatever it evaluates."""

    root: Path
    engine: Engine
    drain_seconds: float | None
    allow_network_fs: bool
    as_json: bool
    pacing: Pacing = field(default_factory=Pacing)


@dataclass(frozen=True)
class Asked:
    """A phase command's options, parsed."""

    request: Request
    conduct: Conduct
    assumed_seconds: float | None
    overrides: tuple[tuple[str, str], ...]
    accept_drift: bool
    tier_given: bool


def phase_command(act: Callable[[Asked], None], phase: Phase = "phase1") -> Callable[..., None]:
    """One signature for every command about a phase: they cannot drift apart."""

    def command(
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
        if warm_start is not None and phase == "phase2":
            raise ValueError("--warm-start: a phase 2 starts where the run of its --from stood")
        chosen = load_objective(objective, settings)
        request = Request(
            phase=phase,
            tier=tier or "target",
            objective=chosen,
            run_id=run_id,
            search_seed=search_seed,
            evaluation_seed=evaluation_seed,
            method=method,
            sigma0=sigma0,
            population=population,
            max_evals=max_evals,
            max_device_hours=max_device_hours,
            max_hours=max_hours,
            max_cost=max_cost,
            window=window_of(window, safety_margin),
            price_per_device_hour=price,
            limit_seconds=limit_seconds,
            stall_seconds=stall_seconds,
            fork=fork_run,
            confirm=Confirm(confirm_seeds, rung_factor, rung_seeds),
            proxy=proxy,
            thresholds=changes(thresholds, patience, min_improve),
            warm_start=warm_start,
            known=None if known is None else read_known(known, chosen.space),
        )
        engine = Engine(executor, launcher, address, device, workers, threads)
        pacing = Pacing(
            max_concurrent=max_concurrent,
            slots_dir=slots_dir,
            backpressure=Backpressure(enabled=backpressure),
        )
        act(
            Asked(
                request=request,
                conduct=Conduct(root, engine, drain_seconds, allow_network_fs, as_json, pacing),
                assumed_seconds=assumed_seconds,
                overrides=overrides_of(override, reason),
                accept_drift=accept_drift,
                tier_given=tier is not None,
            )
        )

    return command


def following_command(act: Callable[[Asked], None]) -> Callable[..., None]:
    """The same signature for a phase 2, with the run that it follows and how."""

    def command(variant: Variant, run: FollowedRun, **options: Any) -> None:
        def follow(asked: Asked) -> None:
            request = replace(asked.request, follows=Follows(run, variant))
            act(replace(asked, request=request))

        phase_command(follow, "phase2")(**options)

    own = list(inspect.signature(command).parameters.values())[:2]
    others = inspect.signature(phase_command(act)).parameters.values()
    signature = inspect.Signature([*own, *others])
    command.__signature__ = signature  # type: ignore[attr-defined]  # where typer looks
    return command


@dataclass(frozen=True)
class AskedCheck:
    """`space check`'s options, parsed."""

    request: CheckRequest
    conduct: Conduct


def check_command(act: Callable[[AskedCheck], None]) -> Callable[..., None]:
    """The signature of `space check`."""

    def command(
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
        terms = Request(
            phase="check",
            tier="min",
            objective=load_objective(objective, settings),
            evaluation_seed=evaluation_seed,
            max_evals=max_evals,
            max_device_hours=max_device_hours,
            max_hours=max_hours,
            max_cost=max_cost,
            window=window_of(window, safety_margin),
            price_per_device_hour=price,
            limit_seconds=limit_seconds,
            stall_seconds=stall_seconds,
        )
        names = tuple(name.strip() for name in knobs.split(",")) if knobs is not None else ()
        engine = Engine(executor, launcher, address, device, workers, threads)
        conduct = Conduct(root, engine, drain_seconds, allow_network_fs, as_json)
        act(AskedCheck(CheckRequest(terms, seeds, names), conduct))

    return command


def window_of(window: str | None, safety_margin: str) -> Window | None:
    return None if window is None else parse_window(window, safety_margin)


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


def load_objective(name: str, settings: list[str] | None) -> Objective:
    """The objective with its `KEY=VALUE` settings. Raises ValueError, naming what is wrong."""
    parsed: dict[str, Any] = {}
    for setting in settings or ():
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise ValueError(f"--set: expected KEY=VALUE, got {setting!r}")
        if key in parsed:
            raise ValueError(f"--set: {key} is given twice")
        parsed[key] = _json_or_text(key, value)
    return registry.load(ObjectiveSpec(name=name, settings=parsed))


def _json_or_text(key: str, value: str) -> Any:
    """What `value` says as JSON, or itself. Raises ValueError on an object with a key twice."""

    def each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise _TwinKeysError(f"--set: {key} names a key twice: {value}")
        return dict(pairs)

    try:
        return json.loads(value, object_pairs_hook=each_key_once, parse_constant=str)
    except _TwinKeysError:
        raise
    except (ValueError, RecursionError):  # no JSON, or none that anybody means
        return value


class _TwinKeysError(ValueError):
    """JSON that says two things about one key."""
