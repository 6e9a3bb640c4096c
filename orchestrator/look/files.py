"""What attempts left in a run's directory, read with suspicion: whoever wrote them.

Every file is reached from the run's directory step by step, never over a link, and read up to a
bound. What is no plain file, or says nonsense, is as good as absent.
"""

import math
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, NamedTuple

import orjson

from budgets.events import Settled, Status
from budgets.ledger.head import read_mark
from budgets.plain import printable
from budgets.state import Batch, RunState
from budgets.verdict.finalists import BASELINE, full_ones
from objectives.secrets import redacted, without_values
from orchestrator.execution.attempts import METRICS, STARTED
from orchestrator.look.rows import Curve, LogEnd, Slot
from orchestrator.records.attempts import attempt_place
from orchestrator.records.recorded import ledgers

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

HEARTBEAT_BYTES = 4096
"""Of a file's end: some heartbeats, and more than one of a screenful of metrics."""

MOST_NAME = 80
"""Characters of a device's name."""

LOGS = ("stderr.txt", "stdout.txt")
LOG_LINES, LOG_CHARACTERS, LOG_BYTES = 12, 240, 64 << 10
LONGEST_READ = 2000
"""Characters of a line that are looked at: to look for secrets takes the square of that."""

CURVE_POINTS, CURVE_BYTES = 200, 16 << 20
CURVES_OF_A_CAMPAIGN = 6
"""More curves than can be told apart show nothing."""

STEPS = ("step", "steps", "global_step", "iteration", "iter")
LOSSES = ("loss", "train_loss", "training_loss", "train/loss")
"""What programs call the step that they are at, and a loss; our own: by the first of each."""

UNITS = {"nanochat": "held-out bits per byte"}
"""What an objective's score is, where it has a unit."""


def read_whole(directory: Path, place: str, most_bytes: int) -> bytes:
    """The file at `place` below the run's directory.

    Raises OSError where it is not there, is reached by a link or is no plain file; ValueError where
    it is larger than that.
    """
    with _opened(directory, place) as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise ValueError(f"{place} is larger than {most_bytes} bytes")
    return data


def read_end(directory: Path, place: str, most_bytes: int) -> bytes:
    """The last so many bytes of it, from the beginning of a line. Raises OSError likewise."""
    with _opened(directory, place) as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - most_bytes))
        data = file.read(most_bytes)
    return data if size <= most_bytes else data.partition(b"\n")[2]


@contextmanager
def _opened(directory: Path, place: str) -> Iterator[BinaryIO]:
    """Step by step, so that no part of the way below the run's directory is a link."""
    *folders, name = PurePosixPath(place).parts
    step = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in folders:
            inner = os.open(folder, _FLAGS | os.O_DIRECTORY, dir_fd=step)
            os.close(step)
            step = inner
        descriptor = os.open(name, _FLAGS, dir_fd=step)
    finally:
        os.close(step)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{place} is no plain file")
        yield file


def _objects(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """JSON objects, one a line; a line that is torn, or anything else, is passed over."""
    for line in lines:
        try:
            found = orjson.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            yield found


def _finite(value: object) -> float | None:
    """The number, if it is one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


# How far an attempt in flight is


def with_heartbeat(directory: Path, row: Slot) -> Slot:
    """The slot with what its attempt says of itself; `starting` while nobody has taken it on."""
    if row.doing == "idle":
        return row
    place = f"eval/{row.place}"
    started = next(_objects(reversed(_end_lines(directory, f"{place}/{STARTED}"))), None)
    if started is None:
        return replace(row, doing="starting")
    device, beat = started.get("device"), dict[str, float]()
    for said in _objects(reversed(_end_lines(directory, f"{place}/{METRICS}")[:-1])):
        for name in ("step", "loss", "progress"):
            if name not in beat and (number := _finite(said.get(name))) is not None:
                beat[name] = number
    progress = beat.get("progress")
    if progress is not None and not 0 <= progress <= 1:
        progress = None
    step = beat.get("step")
    if progress is None and step is not None and row.expected_steps:
        progress = min(1.0, max(0.0, step / row.expected_steps))
    return replace(
        row,
        device=device[:MOST_NAME] if isinstance(device, str) and device else row.device,
        step=step,
        loss=beat.get("loss"),
        progress=progress,
    )


def _end_lines(directory: Path, place: str) -> list[bytes]:
    try:
        return read_end(directory, place, HEARTBEAT_BYTES).split(b"\n")
    except OSError:
        return []


# How a failure ended


def log_end(directory: Path, places: Iterable[str]) -> LogEnd:
    """The last lines of the first log with anything in it, of the attempts in those directories."""
    for place in places:
        for name in LOGS:
            try:
                data = read_end(directory, f"{place}/{name}", LOG_BYTES)
            except OSError:
                continue
            if lines := last_lines(data):
                return LogEnd(place=f"{place}/{name}", lines=lines)
    return LogEnd(place="", lines=())


def last_lines(data: bytes) -> tuple[str, ...]:
    """The last lines of a log as they may be shown: without secrets, none too long."""
    text = without_values(data.decode(errors="replace"), os.environ)
    lines = [line.rstrip() for line in text.replace("\r", "\n").split("\n")]
    said = [line for line in lines if line][-LOG_LINES:]
    return tuple(_shown(line) for line in said)


def _shown(line: str) -> str:
    """As much of it as there is room for. A word that is cut may be half a secret: left out."""
    if len(line) > LONGEST_READ:
        line = line[:LONGEST_READ].rpartition(" ")[0]
    line = printable(redacted(line, os.environ).expandtabs(4))
    return line if len(line) <= LOG_CHARACTERS else f"{line[: LOG_CHARACTERS - 3]}..."


# Loss curves


class _Source(NamedTuple):
    """An evaluation that may have left a curve."""

    name: str
    seed: int
    directory: Path  # of the run
    place: str  # of the evaluation in it


def scored_by(state: RunState) -> str:
    """The key under which a program says its score, if it says it so."""
    score = state.plan.objective["settings"].get("score")
    line = score.get("line") if isinstance(score, dict) else None
    return line if isinstance(line, str) else ""


def measured_in(state: RunState) -> str:
    """What is measured, with its unit: a program says it by a name of its own."""
    return UNITS.get(state.plan.objective["name"]) or scored_by(state) or "score"


def curves(directory: Path, state: RunState) -> tuple[Curve, ...]:
    """Losses over the steps of the best evaluation and of what it is compared with."""
    score, found = scored_by(state), list[Curve]()
    for sources in _wanted(directory, state):
        read = (_read_curve(source, score) for source in sources)
        found += islice(filter(None, read), 1)
    return tuple(found)


def _read_curve(source: _Source, score: str) -> Curve | None:
    """The evaluation's curve; None where it left none that can be read."""
    try:
        data = read_whole(source.directory, f"{source.place}/{METRICS}", CURVE_BYTES)
    except (OSError, ValueError):
        return None
    beats = list(_objects(data.splitlines()))
    for loss in (*LOSSES, score):
        points = list(_points(beats, loss))
        if len(points) > 1:
            steps, values = zip(*_fewer(points), strict=True)
            quantity = "train loss" if loss in LOSSES else loss
            return Curve(
                name=source.name, seed=source.seed, quantity=quantity, steps=steps, values=values
            )
    return None


def _points(beats: Iterable[dict[str, Any]], loss: str) -> Iterator[tuple[float, float]]:
    """Step and loss wherever both are said, as long as the steps rise."""
    last = -math.inf
    for said in beats:
        step = next((s for name in STEPS if (s := _finite(said.get(name))) is not None), None)
        value = _finite(said.get(loss))
        if step is not None and value is not None and step > last:
            last = step
            yield step, value


def _fewer(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The first, the last, and evenly between them as many as a plot can show."""
    last = len(points) - 1
    count = min(len(points), CURVE_POINTS)
    return [points[round(place * last / (count - 1))] for place in range(count)]


def _wanted(directory: Path, state: RunState) -> Iterator[Iterator[_Source]]:
    """For each curve that is wanted the evaluations that may have it, one as good as another."""
    if state.plan.campaign is not None:
        yield from _of_conditions(directory, state)
        return
    yield _of_baseline(directory, state)
    winner, decided = state.panel("winner"), state.decided
    if winner is not None:
        is_go = decided is not None and decided.grade != "no_go"
        name = "recommended" if is_go else "winner"
        yield _healthy(directory, winner, name, 0, winner.scores_by_seed(0))
    results = [end for generation in full_ones(state) for end in generation.results()]
    healthy = [(end.score, place) for place, end in enumerate(results) if end.score is not None]
    if healthy:
        best = results[min(healthy)[1]]
        yield iter([_Source("best of the search", best.seed, directory, _place(best))])


def _of_baseline(directory: Path, state: RunState) -> Iterator[_Source]:
    """On a seed of the winner's if it has one, of the comparison, or where it was calibrated.

    Of a check its first candidate, which around a recommendation is that.
    """
    reference, winner = state.panel("reference"), state.panel("winner")
    if reference is not None:
        seeds = [*(winner.scores_by_seed(0) if winner else ()), *reference.scores_by_seed(0)]
        yield from _healthy(directory, reference, BASELINE, 0, seeds)
    for generation in state.generations if state.plan.search is None else ():
        name = BASELINE if state.plan.parent is None else "recommended"
        yield from _healthy(directory, generation, name, 0, generation.seeds)
    yield from _of_calibration(directory, state)


def _place(end: Settled) -> str:
    return f"eval/{attempt_place(end)}"


def _healthy(
    directory: Path, batch: Batch, name: str, candidate: int, seeds: Iterable[int]
) -> Iterator[_Source]:
    for seed in seeds:
        end = batch.result(candidate, seed)
        if end is not None and end.status is Status.OK:
            yield _Source(name, seed, directory, _place(end))


def _of_calibration(directory: Path, state: RunState) -> Iterator[_Source]:
    """The baseline where the run's calibration measured it: in a directory beside the run's."""
    calibration = state.plan.calibration
    if calibration is None or not calibration.ledger:
        return
    for place in sorted(ledgers(directory.absolute().parent.parent, "calibration")):
        mark = read_mark(place)
        if mark is not None and mark.digest == calibration.ledger:
            for sample in calibration.samples:
                at = f"eval/gen_0000/cand_0000/seed_{sample.seed}"
                yield _Source(BASELINE, sample.seed, place.parent, at)


def _of_conditions(directory: Path, state: RunState) -> Iterator[Iterator[_Source]]:
    """The controls, then the conditions with the best mean scores."""
    for generation in state.generations[:1]:
        conditions, scores = generation.conditions, enumerate(generation.scores())
        known = [
            (not conditions[place].control, score, place)
            for place, score in scores
            if score is not None
        ]
        for _, _, place in sorted(known)[:CURVES_OF_A_CAMPAIGN]:
            seeds = generation.seeds
            yield _healthy(directory, generation, conditions[place].name, place, seeds)
