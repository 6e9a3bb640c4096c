"""Earlier measurements: calibrations, checks of knobs, and `history.jsonl`, a line for each run.

The history is written when a run ends for now; the last line of a run counts. A run that has no
line in it loses nothing: only plans read it.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from math import log
from pathlib import Path
from statistics import fmean, median
from typing import Any, Literal, get_args

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from budgets.calibration import measure
from budgets.events import Settled, Status
from budgets.formatting import PROGRAM
from budgets.ledger import LedgerCorruptError
from budgets.liveness import Liveness, liveness
from budgets.pace import last_seen
from budgets.plan import Calibration, Caps, Devices, Phase, Plan
from budgets.state import RunState
from budgets.storage import DISK, read_plain
from objectives.api import Objective, ObjectiveSpec
from objectives.registry import kind
from orchestrator.config import Config
from orchestrator.plan.resolve import calibration_name, calibration_plan, family_of
from orchestrator.records.recorded import Result, finished_runs, first_plan, ledgers, recorded_runs

CALIBRATION_SEEDS = 8

HISTORY = "history.jsonl"

GPU_PEAK, GPU_MEMORY = "gpu_peak_bytes", "gpu_memory_bytes"
"""Metrics of an evaluation on a GPU: what it allocated there at most, and what there is."""

UNMEASURED = 0.7
"""Of a throughput that was measured elsewhere or otherwise: what is counted on."""

BUDGET = ("target_flops", "num_batches", "num_epochs")
"""Settings that say how long to train, and nothing of what. The first that is set decides."""


# Calibrations


def find_calibration(root: Path, objective: Objective, devices: Devices) -> Result | None:
    """Return the newest finished calibration of the objective on such devices, if there is one.

    The newest is the one begun last, whenever files were copied or an earlier one was resumed.
    """
    family = calibration_name(objective, devices)
    finished = finished_runs(root, "calibration", family)
    return max(finished, key=lambda found: _number(found.directory, family), default=None)


def calibration_here(root: Path, objective: Objective, devices: Devices) -> Calibration | None:
    """Return what was measured of an evaluation on such devices."""
    found = find_calibration(root, objective, devices)
    return None if found is None else measure(found.state)


def calibrations_on(root: Path, objective: Objective, kind: str) -> list[Result]:
    """Return the newest calibration on each set of devices of a kind, the latest first.

    By the ledger's own clock: a copied file is younger than what is in it.
    """
    runs = finished_runs(root, "calibration", family_of(objective, kind))
    placed = [(calibration_name(objective, run.state.plan.devices), run) for run in runs]
    placed.sort(key=lambda pair: _number(pair[1].directory, pair[0]))
    newest = dict(placed)
    return sorted(newest.values(), key=lambda run: last_seen(run.state), reverse=True)


def calibration_again(
    root: Path, config: Config, devices: Devices, repeats: int, reason: str
) -> Plan:
    """Return the plan of a calibration beside those there are, made for a reason that it keeps.

    It is the same plan as long as the reason is the same: an unfinished run is resumed.
    """
    plan = calibration_plan(config, devices, repeats)
    family = calibration_name(config.tuned, devices)
    reasons = (f"calibrated again: {reason.strip()}",)
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
    """Return what a calibration found; with its cost, if it was made for these caps.

    That is so when the process died between the two: no run has paid for it yet.
    """
    plan = found.state.planned
    asked = calibration_plan(config, plan.devices, CALIBRATION_SEEDS)
    is_capped = asked.caps != Caps(evaluations=asked.caps.evaluations)
    if is_capped and plan.run_id == asked.run_id and not _is_paid_for(root, found.state.head):
        return with_its_cost(found.state)
    return measure(found.state)


def with_its_cost(state: RunState) -> Calibration:
    """Return what a calibration found, as part of the price of the run that it was made for."""
    accounts = state.accounts
    cost = {"charged_ms": accounts.device_ms, "open_ms": accounts.wall_ms}
    return measure(state).model_copy(update=cost)


def _is_paid_for(root: Path, calibration: str) -> bool:
    """Whether a run has taken the cost of the calibration with this head on its own account."""
    for path in ledgers(root):
        with suppress(LedgerCorruptError, ValueError, OSError):
            plan = first_plan(path)
            made = None if plan is None else plan.calibration
            if made is not None and made.ledger == calibration and made.charged_ms:
                return True
    return False


# Checks of knobs


@dataclass(frozen=True)
class Known:
    """What finished checks have shown about an objective's knobs, by name."""

    alive: tuple[str, ...]
    dead: tuple[str, ...]  # in one check, and alive in none
    neither: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        """Sentences for a person who is about to search."""
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
    """Return what all finished checks of the objective on that kind of device show together."""
    runs = finished_runs(root, "check", family_of(objective, kind))
    found = [f for run in runs if (f := liveness(run.state)) is not None]
    return together([knob.name for knob in objective.space.knobs], found)


def together(names: Sequence[str], found: Sequence[Liveness]) -> Known:
    """Return what several checks show about the knobs of these names."""
    alive = {name for f in found for name in f.names("alive")}
    dead = {name for f in found for name in f.names("dead")} - alive
    return Known(
        alive=tuple(n for n in names if n in alive),
        dead=tuple(n for n in names if n in dead),
        neither=tuple(n for n in names if n not in alive | dead),
    )


# The history of runs


class Typical(BaseModel):
    """A healthy evaluation of the objective as it is: medians, and the peak of memory."""

    model_config = ConfigDict(frozen=True)

    samples: int = Field(ge=1)
    seconds: float = Field(gt=0)
    startup_seconds: float = Field(ge=0)
    train_flops: float = Field(default=0.0, ge=0)
    eval_flops: float = Field(default=0.0, ge=0)
    peak_memory_bytes: int = 0  # on the GPU where it ran on one that says so, otherwise resident
    memory_bytes: int = 0  # that there was for it

    @property
    def flops(self) -> float:
        return self.train_flops + self.eval_flops


class Entry(BaseModel):
    """A run as the history keeps it. Fields that a later version adds are ignored."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    version: int = 2
    run_id: str
    phase: Phase
    genesis: str  # digest of the ledger's first record: names the run
    head: str  # of the ledger
    ended_at: datetime  # moment of the last record
    objective: str
    fingerprint: str
    settings: dict[str, Any]
    device_kind: str
    device_name: str
    threads: int
    devices: int  # evaluations at once
    attempts: int  # that ended
    timeouts: int  # ... at their limit
    evaluation: Typical | None  # None: no healthy one
    overheads: dict[str, float]  # that it measured, by field of `times.Overheads`

    @property
    def micro_batch_size(self) -> int | None:
        size = self.settings.get("micro_batch_size")
        return size if isinstance(size, int) else None


def entry_of(state: RunState) -> Entry:
    """Return a run's line of the history."""
    plan, ends = state.plan, list(state.ends())
    return Entry(
        run_id=plan.run_id,
        phase=plan.phase,
        genesis=state.genesis,
        head=state.head,
        ended_at=last_seen(state),
        objective=plan.objective["name"],
        fingerprint=plan.objective_fingerprint,
        settings=dict(plan.objective.get("settings", {})),
        device_kind=plan.devices.kind,
        device_name=plan.devices.name,
        threads=plan.devices.threads,
        devices=plan.devices.count,
        attempts=len(ends),
        timeouts=sum(end.status is Status.TIMEOUT for end in ends),
        evaluation=_typical(state),
        overheads=measured_overheads(state),
    )


def _typical(state: RunState) -> Typical | None:
    healthy = list(_of_the_objective(state))
    if not healthy:
        return None
    on_gpu = [r.metrics[GPU_PEAK] for r in healthy if GPU_PEAK in r.metrics]
    there = [r.metrics[GPU_MEMORY] for r in healthy if GPU_MEMORY in r.metrics]
    memory = min(there, default=state.plan.devices.memory_bytes)
    return Typical(
        samples=len(healthy),
        seconds=median(r.seconds for r in healthy),
        startup_seconds=median(r.startup_seconds for r in healthy),
        train_flops=median(r.train_flops for r in healthy),
        eval_flops=median(r.eval_flops for r in healthy),
        peak_memory_bytes=int(max(on_gpu or (r.peak_memory_bytes for r in healthy))),
        memory_bytes=int(memory),
    )


def _of_the_objective(state: RunState) -> Iterator[Settled]:
    """Healthy results of evaluations that changed none of its settings."""
    for generation in state.generations:
        for result in generation.results():
            is_plain = not generation.configurations[result.candidate].settings
            if is_plain and result.status is Status.OK and result.seconds > 0:
                yield result


def measured_overheads(state: RunState) -> dict[str, float]:
    """Return the seconds that no evaluation took, as far as the run measured them.

    `startup_seconds`: of the first session, until its first evaluation could begin. `gap_seconds`:
    of a device, around each evaluation. `generation_seconds`: from a generation's last evaluation
    to the next one's first, on average, for a model takes longer the more it knows.
    """
    found: dict[str, float] = {}
    if state.starts_ms:
        found["startup_seconds"] = state.starts_ms[min(state.starts_ms)] / 1000
    gaps, spans = list[float](), list[tuple[tuple[int, int], tuple[int, int]]]()
    for generation in state.generations:
        begun, ended = [], []
        for tries in generation.attempts.values():
            for attempt in tries:
                end, at = attempt.settled, attempt.settled_at
                begun.append((attempt.session, attempt.reserved_ms))
                if end is not None and at is not None and at.session == attempt.session:
                    ended.append((at.session, at.ms))
                    gaps.append((at.ms - attempt.reserved_ms) / 1000 - end.seconds)
        if begun and ended:
            spans.append((min(begun), max(ended)))
    waits = [
        (begin - end) / 1000
        for (_, (session, end)), ((later, begin), _) in pairwise(spans)
        if session == later
    ]
    if gaps:
        found["gap_seconds"] = max(0.0, median(gaps))
    if waits:
        found["generation_seconds"] = max(0.0, fmean(waits))
    return found


def read_history(root: Path) -> tuple[Entry, ...]:
    """Return each run's last line, in the order of the file; none where there is no file.

    Lines that are torn or not of this form are left out. Raises ValueError where the file is a
    link or no plain file.
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


def append(root: Path, entry: Entry) -> None:
    """Add a line in one write, also beside other processes that do. Raises OSError, ValueError."""
    path = root / HISTORY
    handle = DISK.open(path)
    with closing(os.fdopen(handle, "rb", closefd=True)) as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise ValueError(f"{path} is no plain file: expected one. Move it away")
        is_torn = found.st_size > 0 and os.pread(handle, 1, found.st_size - 1) != b"\n"
        data = b"\n" * is_torn + orjson.dumps(entry.model_dump(mode="json")) + b"\n"
        if os.write(file.fileno(), data) < len(data):
            raise OSError(f"{path} takes no more: a line was cut short")


def keep(root: Path, state: RunState, say: Callable[[str], None]) -> None:
    """Keep what the run took, unless that is known. What goes wrong is said and stops nothing."""
    try:
        if not _knows(root, state.head):
            append(root, entry_of(state))
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


# The nearest earlier run


Nearness = Literal["the same objective", "the same model", "the same kind of objective"]
_NEAREST_FIRST: tuple[Nearness, ...] = get_args(Nearness)


@dataclass(frozen=True)
class Prior:
    """An earlier run, and what it says of an evaluation here."""

    entry: Entry
    evaluation: Typical  # there
    nearness: Nearness
    factor: float  # FLOPs of an evaluation here over one there, training and scoring
    is_assumed: bool  # other FLOPs, or another number of devices

    @property
    def eval_seconds(self) -> float:
        """Start-up as it was, the rest by the FLOPs; 0.7 of an assumed throughput counts."""
        there = self.evaluation
        return scaled_seconds(
            there.seconds, there.startup_seconds, self.factor, is_assumed=self.is_assumed
        )

    def sentence(self) -> str:
        """The prior by name, with its figures, the factor and what comes of it."""
        entry, there = self.entry, self.evaluation
        work = f", {there.flops:.3g} FLOPs" if there.flops else ""
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
    """Return the run that says most of an evaluation of `objective` on such devices, if any does.

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
    """None where it says nothing: another objective, or one whose FLOPs nobody counts.

    Equal FLOPs are the same price, whatever setting differs.
    """
    there = entry.evaluation
    spec = ObjectiveSpec(name=entry.objective, settings=entry.settings)
    if there is None or kind(spec) != kind(objective.spec):
        return None
    same_number = entry.devices == devices.count <= there.samples  # else they were not all busy
    if entry.fingerprint == objective.fingerprint:
        return Prior(entry, there, "the same objective", 1.0, is_assumed=not same_number)
    here = objective.flops()
    if here is None or not here.total or not there.flops:
        return None
    is_model = _model(entry.settings) == _model(objective.spec.settings)
    nearness: Nearness = "the same model" if is_model else "the same kind of objective"
    factor = here.total / there.flops
    return Prior(entry, there, nearness, factor, is_assumed=not (factor == 1 and same_number))


def _model(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in BUDGET}
