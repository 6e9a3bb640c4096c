"""Calibrations on disk: which one fits, and whose price it is part of."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from math import log
from pathlib import Path
from statistics import median
from typing import Any, Literal, get_args

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from budgets.calibration import measure
from budgets.events import Settled, Status
from budgets.formatting import PROGRAM
from budgets.ledger import LEDGER, LedgerCorruptError, read
from budgets.liveness import Liveness, liveness
from budgets.pace import last_seen, timing
from budgets.plan import Calibration, Caps, Devices, Phase, Plan, Tier
from budgets.rules import Decision, Ruling, ruling_of
from budgets.state import RunState
from budgets.storage import DISK, read_plain
from objectives.api import Objective, ObjectiveSpec
from objectives.registry import kind
from orchestrator.config import Config
from orchestrator.plan.resolve import calibration_name, calibration_plan, family_of
from orchestrator.records.recorded import Result, finished_runs, first_plan, ledgers, recorded_runs

CALIBRATION_SEEDS = 8


def find_calibration(root: Path, objective: Objective, devices: Devices) -> Result | None:
    """The newest finished calibration of the objective on such devices, if there is one.

    The newest is the one begun last, whenever files were copied or an earlier one taken up.
    """
    family = calibration_name(objective, devices)
    finished = finished_runs(root, "calibration", family)
    return max(finished, key=lambda found: _number(found.directory, family), default=None)


def calibration_here(root: Path, objective: Objective, devices: Devices) -> Calibration | None:
    """What was measured of an evaluation on such devices."""
    found = find_calibration(root, objective, devices)
    return None if found is None else measure(found.state)


def calibrations_on(root: Path, objective: Objective, kind: str) -> list[Result]:
    """What `find_calibration` finds for whatever devices of a kind, the last made first.

    By its ledger's own clock: a copied file is younger than what is in it.
    """
    runs = finished_runs(root, "calibration", family_of(objective, kind))
    placed = [(calibration_name(objective, run.state.plan.devices), run) for run in runs]
    placed.sort(key=lambda pair: _number(pair[1].directory, pair[0]))
    newest = dict(placed)  # at each place its last one
    return sorted(newest.values(), key=lambda run: made_at(run.directory), reverse=True)


def made_at(directory: Path) -> datetime:
    """When a run came to its end."""
    return datetime.fromisoformat(read(directory / LEDGER).records[-1].at)


def calibration_again(
    root: Path, config: Config, devices: Devices, repeats: int, reason: str
) -> Plan:
    """The plan of a calibration beside those there are, made for a reason that it keeps.

    It is the same one as long as the reason is the same: unfinished, it is taken up.
    """
    plan = calibration_plan(config, devices, repeats)
    family, reasons = (
        calibration_name(config.tuned, devices),
        (f"calibrated again: {reason.strip()}",),
    )
    newest = 0
    for directory, state in recorded_runs(root, "calibration", family):
        if state.planned.reasons == reasons:
            return plan.model_copy(update={"run_id": directory.name, "reasons": reasons})
        newest = max(newest, _number(directory, family))
    name = f"{plan.run_id}-{newest + 1}" if newest else plan.run_id
    return plan.model_copy(update={"run_id": name, "reasons": reasons})


def _number(directory: Path, family: str) -> int:
    """Which of a family's calibrations it is; the first one's name has no number."""
    _, _, number = directory.name.removeprefix(f"{family}-").partition("-")
    return int(number) if number.isdecimal() else 1


def measured_for(root: Path, found: Result, config: Config) -> Calibration:
    """What a calibration found; with its cost, if it was made for these caps.

    That is so when the process died between the two: no run has borne that cost yet.
    """
    plan = found.state.planned
    asked = calibration_plan(config, plan.devices, CALIBRATION_SEEDS)
    is_capped = asked.caps != Caps(evaluations=asked.caps.evaluations)
    if is_capped and plan.run_id == asked.run_id and not is_borne(root, found.state.head):
        return with_its_cost(found.state)
    return measure(found.state)


def with_its_cost(state: RunState) -> Calibration:
    """What a calibration found, as part of the price of the run that it was made for."""
    accounts = state.accounts
    cost = {"charged_ms": accounts.device_ms, "open_ms": accounts.wall_ms}
    return measure(state).model_copy(update=cost)


def is_borne(root: Path, calibration: str) -> bool:
    """Whether a run has taken the cost of the calibration with this head on its own account."""
    for path in ledgers(root):
        with suppress(LedgerCorruptError, ValueError, OSError):
            plan = first_plan(path)
            made = None if plan is None else plan.calibration
            if made is not None and made.ledger == calibration and made.charged_ms:
                return True
    return False


@dataclass(frozen=True)
class Known:
    """What finished checks have shown about an objective's knobs."""

    alive: tuple[str, ...]
    dead: tuple[str, ...]  # in one check, and alive in none
    neither: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        """What a person who is about to search should hear."""
        if self.dead:
            yield (
                f"Warning: {', '.join(self.dead)} did not move the score when checked: a search "
                "wastes budget there."
            )
        if self.neither:
            some = self.alive or self.dead
            which = f"{', '.join(self.neither)} have not" if some else "no knob has"
            yield (
                f"Note: {which} been shown to move the score yet; `{PROGRAM} check knobs` with "
                "the same options finds out."
            )


def known_knobs(root: Path, objective: Objective, kind: str) -> Known:
    """All finished checks of the objective on that kind of device, taken together."""
    runs = finished_runs(root, "check", family_of(objective, kind))
    found = [f for run in runs if (f := liveness(run.state)) is not None]
    return together([knob.name for knob in objective.space.knobs], found)


def together(names: Sequence[str], found: Sequence[Liveness]) -> Known:
    """What several checks have shown about the knobs of these names."""
    alive = {name for f in found for name in f.names("alive")}
    dead = {name for f in found for name in f.names("dead")} - alive
    return Known(
        alive=tuple(n for n in names if n in alive),
        dead=tuple(n for n in names if n in dead),
        neither=tuple(n for n in names if n not in alive | dead),
    )


HISTORY = "history.jsonl"

GPU_PEAK, GPU_MEMORY = "gpu_peak_bytes", "gpu_memory_bytes"
"""Metrics of an evaluation on a GPU: what it allocated there at most, and what there is."""

_Estimate = Field(default=None, alias="optimization/estimated_hours")
_Actual = Field(default=None, alias="optimization/actual_hours")
_Accuracy = Field(default=None, alias="optimization/time_accuracy")


class Typical(BaseModel):
    """A healthy evaluation of the objective as it is: medians, and the peak of memory."""

    model_config = ConfigDict(frozen=True)

    samples: int = Field(ge=1)
    seconds: float = Field(gt=0)
    startup_seconds: float = Field(ge=0)
    cpu_seconds: float = Field(ge=0)
    steps: float = 0.0
    tokens: float = 0.0
    train_flops: float = Field(default=0.0, ge=0)
    eval_flops: float = Field(default=0.0, ge=0)
    tokens_per_second: float | None = None  # of training
    peak_memory_bytes: int = 0  # on the GPU where it ran on one that says so, otherwise resident
    memory_bytes: int = 0  # that there was for it


class Entry(BaseModel):
    """A run as the history keeps it. Fields that a later version adds are passed over."""

    model_config = ConfigDict(frozen=True, populate_by_name=True, allow_inf_nan=False)

    version: int = 1
    run_id: str
    phase: Phase
    tier: Tier | None
    genesis: str  # digest of the ledger's first record: names the run
    head: str  # of the ledger
    ended_at: datetime  # moment of the last record
    decision: Decision  # continue: it was interrupted
    objective: str
    fingerprint: str
    settings: dict[str, Any]
    micro_batch_size: int | None
    device_kind: str
    device_name: str
    threads: int
    devices: int  # evaluations at once
    evaluations: int  # done
    evaluations_planned: int  # with those beside the search
    evaluation: Typical | None  # None: no healthy one
    startup_seconds: float  # of a session, until its first evaluation could begin
    idle_device_hours: float
    estimated_hours: float | None = _Estimate  # by its plan, for what it has done
    actual_hours: float | None = _Actual
    accuracy: float | None = _Accuracy  # estimated / actual * 100
    estimated_device_hours: float | None = None
    actual_device_hours: float | None = None


def entry_of(state: RunState, ruling: Ruling | None = None) -> Entry:
    """The run as it stands, with this ruling or the one that its records allow."""
    from budgets.pace import idle_hours

    plan, took = state.plan, timing(state)
    settings = dict(plan.objective.get("settings", {}))
    starts = list(state.starts_ms.values())
    micro = settings.get("micro_batch_size")
    return Entry(
        run_id=plan.run_id,
        phase=plan.phase,
        tier=plan.tier,
        genesis=state.genesis,
        head=state.head,
        ended_at=last_seen(state),
        decision=(ruling or ruling_of(state)).decision,
        objective=plan.objective["name"],
        fingerprint=plan.objective_fingerprint,
        settings=settings,
        micro_batch_size=micro if isinstance(micro, int) else None,
        device_kind=plan.devices.kind,
        device_name=plan.devices.name,
        threads=plan.devices.threads,
        devices=plan.devices.count,
        evaluations=state.accounts.evaluations + state.accounts.apart,
        evaluations_planned=plan.resolved.evaluations + plan.apart,
        evaluation=_typical(state),
        startup_seconds=median(starts) / 1000 if starts else 0.0,
        idle_device_hours=idle_hours(state),
        estimated_hours=None if took is None else took.estimated_hours,
        actual_hours=None if took is None else took.actual_hours,
        accuracy=None if took is None else took.accuracy,
        estimated_device_hours=None if took is None else took.estimated_device_hours,
        actual_device_hours=None if took is None else took.actual_device_hours,
    )


def _typical(state: RunState) -> Typical | None:
    healthy = list(_of_the_objective(state))
    if not healthy:
        return None
    on_gpu = [r.metrics[GPU_PEAK] for r in healthy if GPU_PEAK in r.metrics]
    there = [r.metrics[GPU_MEMORY] for r in healthy if GPU_MEMORY in r.metrics]
    rates = [r.tokens / r.train_seconds for r in healthy if r.tokens and r.train_seconds]
    memory = state.plan.devices.memory_bytes if not there else min(there)
    return Typical(
        samples=len(healthy),
        seconds=median(r.seconds for r in healthy),
        startup_seconds=median(r.startup_seconds for r in healthy),
        cpu_seconds=median(r.cpu_seconds for r in healthy),
        steps=median(r.steps for r in healthy),
        tokens=median(r.tokens for r in healthy),
        train_flops=median(r.train_flops for r in healthy),
        eval_flops=median(r.eval_flops for r in healthy),
        tokens_per_second=median(rates) if rates else None,
        peak_memory_bytes=int(max(on_gpu or (r.peak_memory_bytes for r in healthy))),
        memory_bytes=int(memory),
    )


def _of_the_objective(state: RunState) -> Iterator[Settled]:
    """Healthy results of evaluations that changed none of its settings."""
    for generation in state.generations:
        for result in generation.results():
            is_plain = not generation.settings(result.candidate)
            if is_plain and result.status is Status.OK and result.seconds > 0:
                yield result


def read_history(root: Path) -> tuple[Entry, ...]:
    """Each run's last line, in the order of the file; none where there is no file.

    Lines that are torn or somebody else's are left out. Raises ValueError where the file is a link
    or no plain file.
    """
    try:
        data = read_plain(root / HISTORY)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    latest: dict[str, Entry] = {}
    for line in filter(None, data.split(b"\n")):
        with suppress(ValidationError):
            entry = Entry.model_validate_json(line)
            latest.pop(entry.genesis, None)  # so that the order is that of last lines
            latest[entry.genesis] = entry
    return tuple(latest.values())


def append(root: Path, entries: Sequence[Entry]) -> None:
    """Add their lines by one write each, also beside others that do. Raises OSError, ValueError."""
    path = root / HISTORY
    handle = DISK.open(path)
    with closing(os.fdopen(handle, "rb", closefd=True)) as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise ValueError(f"{path} is no plain file: expected one. Move it away")
        is_torn = found.st_size > 0 and os.pread(handle, 1, found.st_size - 1) != b"\n"
        for number, entry in enumerate(entries):
            data = orjson.dumps(entry.model_dump(mode="json", by_alias=True)) + b"\n"
            data = b"\n" + data if is_torn and number == 0 else data
            if os.write(file.fileno(), data) < len(data):
                raise OSError(f"{path} takes no more: a line was cut short")


def keep(root: Path, state: RunState, ruling: Ruling, say: Callable[[str], None]) -> None:
    """Keep what the run took, unless that is known; what goes wrong is said and stops nothing."""
    try:
        if not _knows(root, state.head):
            append(root, [entry_of(state, ruling)])
    except (OSError, ValueError) as error:
        say(f"Warning: {root / HISTORY} does not have this run: {error}.")


def _knows(root: Path, head: str) -> bool:
    try:
        return f'"head":"{head}"'.encode() in read_plain(root / HISTORY)
    except FileNotFoundError:
        return False


def on_such(entry: Entry, devices: Devices) -> bool:
    """Whether it ran on that kind of device, by name and with as many threads."""
    mine = (devices.kind, devices.name, devices.threads)
    return (entry.device_kind, entry.device_name, entry.threads) == mine


UNMEASURED = 0.7
"""Of a throughput that was measured elsewhere or otherwise: what is counted on."""

BUDGET = ("target_flops", "num_batches", "num_epochs")
"""Settings that say how long to train, and nothing of what. The first that is set decides."""

Nearness = Literal["the same objective", "the same model", "the same kind of objective"]
_NEAREST_FIRST: tuple[Nearness, ...] = get_args(Nearness)


@dataclass(frozen=True)
class Prior:
    """An earlier run, and what it says of an evaluation here."""

    entry: Entry
    nearness: Nearness
    factor: float  # FLOPs of an evaluation here over one there, training and scoring
    is_assumed: bool  # scaled, or measured with another number of devices

    @property
    def eval_seconds(self) -> float:
        """Start-up as it was, the rest by the FLOPs; an assumed throughput counts 0.7 of it."""
        there = self.entry.evaluation
        assert there is not None, "a run without a healthy evaluation is no prior"
        return scaled_seconds(
            there.seconds, there.startup_seconds, self.factor, is_assumed=self.is_assumed
        )

    def calibration(self) -> Calibration:
        """To plan with until something is measured here."""
        return Calibration(assumed_seconds=self.eval_seconds)

    def sentence(self) -> str:
        """The prior by name, with its figures, the factor and what comes of it."""
        entry, there = self.entry, self.entry.evaluation
        assert there is not None
        flops = there.train_flops + there.eval_flops
        work = f", {flops:.3g} FLOPs" if flops else ""
        scaled = "" if self.factor == 1 else f", {self.factor:.3g} x its FLOPs"
        how = "assumed, throughput x 0.7" if self.is_assumed else "measured"
        return (
            f"times from {entry.phase} {entry.run_id} of {entry.ended_at:%Y-%m-%d} on "
            f"{entry.devices} x {entry.device_name} ({self.nearness}; median "
            f"{there.seconds:.3g} s of {there.samples}, start-up {there.startup_seconds:.2g} s"
            f"{work}){scaled}: {self.eval_seconds:.3g} s an evaluation, {how}"
        )


def scaled_seconds(
    seconds: float, startup_seconds: float, factor: float, *, is_assumed: bool
) -> float:
    """startup + (seconds - startup) * factor, the latter over 0.7 where it is not measured."""
    work = max(0.0, seconds - startup_seconds) * factor
    return startup_seconds + (work / UNMEASURED if is_assumed else work)


def nearest(history: Iterable[Entry], objective: Objective, devices: Devices) -> Prior | None:
    """The run that says most of an evaluation of `objective` on such devices, if any does.

    The same objective before the same model trained for longer or shorter, that before any other
    of its name; the nearest in FLOPs before the newest. Never one on another kind of device.
    """
    found = [
        prior
        for entry in history
        if on_such(entry, devices) and (prior := _as_prior(entry, objective, devices)) is not None
    ]
    return min(found, key=lambda prior: _distance(prior, devices), default=None)


def _distance(prior: Prior, devices: Devices) -> tuple[int, bool, float, float]:
    return (
        _NEAREST_FIRST.index(prior.nearness),
        prior.entry.devices != devices.count,
        abs(log(prior.factor)),
        -prior.entry.ended_at.timestamp(),
    )


def _as_prior(entry: Entry, objective: Objective, devices: Devices) -> Prior | None:
    """None where it says nothing: another objective, or one whose FLOPs nobody counts."""
    there = entry.evaluation
    spec = ObjectiveSpec(name=entry.objective, settings=entry.settings)
    if there is None or kind(spec) != kind(objective.spec):
        return None
    same_number = entry.devices == devices.count <= there.samples  # else they were not all busy
    if entry.fingerprint == objective.fingerprint:
        return Prior(entry, "the same objective", 1.0, is_assumed=not same_number)
    here, flops_there = objective.flops(), there.train_flops + there.eval_flops
    if here is None or not here.total or not flops_there:
        return None
    is_model = _model(entry.settings) == _model(objective.spec.settings)
    nearness: Nearness = "the same model" if is_model else "the same kind of objective"
    return Prior(entry, nearness, here.total / flops_there, is_assumed=True)


def _model(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in BUDGET}
