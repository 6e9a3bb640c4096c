"""The evaluation itself, in a process of its own: from the attempt to `measurement.json`.

The one broad `except` of the project is here: whatever an objective raises is a result.
"""

import json
import os
import sys
import sysconfig
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from budgets.events import Status
from objectives import registry
from objectives.api import (
    Context,
    DivergedError,
    Measurement,
    ObjectiveError,
    OutOfMemoryError,
    ProgramFailedError,
    SetupError,
)
from objectives.secrets import redacted
from orchestrator.execution.attempts import MEASUREMENT, METRICS, Report, write_model
from orchestrator.execution.evaluate import Attempt, no_score
from orchestrator.execution.insistence import Insisted

MOST_CHARACTERS, MOST_SETUP_CHARACTERS = 300, 1000


def main(attempt: Attempt, device: str, threads: int) -> int:
    """Evaluate the attempt and write `measurement.json` into its directory.

    Returns 0 also when the evaluation failed: what counts is that it was said how.
    """
    report = evaluate(attempt, device, threads)
    # Not synced: only the supervisor beside us reads it, and what it writes is synced.
    write_model(attempt.directory / MEASUREMENT, report, durable=False)
    return 0


def evaluate(attempt: Attempt, device: str, threads: int) -> Report:
    """Run the objective and name how it ended; raises nothing but Insisted."""
    called_at = None
    try:
        objective = registry.load(attempt.objective)
        context = Context(
            directory=attempt.directory,
            device=device,
            threads=threads,
            heartbeat=heartbeat_into(attempt.directory / METRICS),
            attempt_id=attempt.attempt_id,
            pinned=attempt.pinned,
        )
        called_at = time.monotonic()
        measurement = objective.evaluate(attempt.knobs, attempt.seed, context)
        status, cause = judge(measurement)
        kept = measurement if status is not Status.ERROR else None
    except Insisted:
        raise
    except BaseException as error:  # see the module's first lines
        if not isinstance(error, ProgramFailedError):  # its own last words are what helps
            traceback.print_exc()
        status, cause, kept = classify(error), in_one_line(error), None
    return Report(
        attempt_id=attempt.attempt_id,
        status=status,
        cause=cause,
        measurement=kept,
        called_at=called_at,
    )


def judge(measurement: object) -> tuple[Status, str]:
    """Status and cause of an evaluation that returned."""
    if not isinstance(measurement, Measurement):
        return Status.ERROR, f"expected a Measurement, got {type(measurement).__name__}"
    why = no_score(measurement.score)
    return (Status.NAN, why) if why else (Status.OK, "")


def classify(error: BaseException) -> Status:
    """What an exception says about the evaluation. Knows torch's by name, never imports it."""
    if isinstance(error, DivergedError):
        return Status.NAN
    names = {kind.__name__ for kind in type(error).__mro__}
    if isinstance(error, OutOfMemoryError | MemoryError) or "OutOfMemoryError" in names:
        return Status.OOM
    text = "".join(traceback.format_exception_only(error)).lower()  # whatever its __str__ does
    if isinstance(error, RuntimeError) and (
        "out of memory" in text or "can't allocate memory" in text or "alloc_failed" in text
    ):
        return Status.OOM
    return Status.ERROR


def in_one_line(error: BaseException) -> str:
    """`Kind: message at train.py:12`, the first line of the message alone, secrets left out.

    It is cut where the ledger would grow by it; less of what pauses a run, for it says how to mend.
    CUDA says there what went wrong, and goes on with several lines of advice. Our own kinds go
    without their module, every kind of SetupError by that name: the ledger knows them so.
    """
    lines = "".join(traceback.format_exception_only(error)).strip().splitlines()
    name = type(error).__name__
    said = next((line for line in lines if name in line.partition(":")[0]), name)
    if isinstance(error, ObjectiveError):
        known = "SetupError" if isinstance(error, SetupError) else name
        said = known + "".join(said.partition(": ")[1:])
    said = said.encode("utf-8", "backslashreplace").decode()  # no file holds half a character
    most = MOST_SETUP_CHARACTERS if isinstance(error, SetupError) else MOST_CHARACTERS
    where = "" if isinstance(error, ObjectiveError) else _where_raised(error)
    return redacted(said, os.environ)[: most - len(where)] + where


def _where_raised(error: BaseException) -> str:
    """The innermost line that is the user's: neither ours nor a library's; empty without one."""
    frames = traceback.walk_tb(error.__traceback__)
    lines = [(Path(frame.f_code.co_filename), number) for frame, number in frames]
    own = [(file, number) for file, number in lines if _is_the_users(file)]
    return f" at {own[-1][0].name}:{own[-1][1]}" if own else ""


def _is_the_users(file: Path) -> bool:
    if not file.is_absolute() or {"site-packages", "dist-packages"} & set(file.parts):
        return False  # such as <frozen importlib._bootstrap>
    return not any(map(file.is_relative_to, _NOT_THE_USERS))


_HERE = Path(__file__).parents[2]
_NOT_THE_USERS = (
    *(_HERE / package for package in ("budgets", "objectives", "orchestrator")),
    Path(sysconfig.get_path("stdlib")),
)


def heartbeat_into(path: Path) -> Callable[[Mapping[str, float]], None]:
    """A heartbeat that appends one line of JSON per call.

    On a full disk it only says that the evaluation lives: the next line may be written.
    """
    torn = b""  # what ends a line that the disk took a part of

    def beat(metrics: Mapping[str, float]) -> None:
        nonlocal torn
        said = {"t": time.time(), **{k: float(v) for k, v in metrics.items()}}
        line = torn + json.dumps(said).encode() + b"\n"
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                torn = b"\n" if os.write(descriptor, line) < len(line) else b""
            finally:
                os.close(descriptor)
        except OSError:
            with suppress(OSError):
                os.utime(path)

    return beat


def _run(config: str, device: str = "cpu", threads: str = "1") -> None:
    attempt = Attempt.model_validate_json(Path(config).read_bytes())
    status = main(attempt, device, int(threads))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # a crash while libraries are torn down would discredit a finished result


if __name__ == "__main__":
    _run(*sys.argv[1:])
