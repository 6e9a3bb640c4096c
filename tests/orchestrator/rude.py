"""Evaluations that misuse the process they run in, in front of the real one.

As a program's entry, `main` does to its process what a careless training script may do.
"""

import os
import random
import signal
import sys
from pathlib import Path
from typing import NoReturn

from budgets.events import Status
from objectives import registry
from objectives.api import Measurement, ObjectiveSpec, SetupError
from orchestrator.execution import trainer
from orchestrator.execution.api import Attempt
from orchestrator.execution.files import MEASUREMENT, Report, write_model


def main(attempt: Attempt, device: str, threads: int) -> int:
    misuse()
    return trainer.main(attempt, device, threads)


def misuse() -> None:
    """Everything that is the process's and not the evaluation's."""
    if "numpy" in sys.modules:  # to import it here would take longer than the evaluation
        sys.modules["numpy"].random.seed(0)
    random.seed(0)
    os.chdir("/")
    os.umask(0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.environ["OMP_NUM_THREADS"] = "64"
    sys.argv = ["rude"]


def leave(attempt: Attempt, _device: str, _threads: int) -> int:
    sys.exit(0)


def killed(attempt: Attempt, device: str, threads: int) -> int:
    """As somebody outside does: the supervisor learns of it by the evaluation's end."""
    if "gen_0000/cand_0003" in str(attempt.directory):
        os.kill(os.getpid(), signal.SIGKILL)
    return trainer.main(attempt, device, threads)


def killed_once(attempt: Attempt, device: str, threads: int) -> int:
    is_again = "." in attempt.directory.name
    return (trainer.main if is_again else killed)(attempt, device, threads)


def literal(attempt: Attempt, _device: str, _threads: int) -> int:
    """Notes what reached it, as it reached it."""
    received = attempt.directory / "received.txt"
    received.write_text(attempt.objective.settings["value"], encoding="utf-8", newline="")
    done = Report(
        attempt_id=attempt.attempt_id, status=Status.OK, measurement=Measurement(score=1.0)
    )
    write_model(attempt.directory / MEASUREMENT, done, durable=False)
    return 0


if __name__ == "__main__":  # exec'd: a program of its own
    config, device, threads = sys.argv[1:]
    literal(Attempt.model_validate_json(Path(config).read_bytes()), device, int(threads))


def unready(attempt: Attempt, device: str, threads: int) -> int:
    """Finds nothing to evaluate while there is a file `missing` beside the runs."""
    if any((parent / "missing").exists() for parent in attempt.directory.parents):
        registry.load = _no_text
    return trainer.main(attempt, device, threads)


def _no_text(spec: ObjectiveSpec) -> NoReturn:
    raise SetupError("the text is gone: put it back")
