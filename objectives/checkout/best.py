"""The checkpoint with the lowest score so far, of all evaluations that share a directory."""

import fcntl
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from objectives.api import SetupError
from objectives.files import replace

BEST, LOCK = "best.json", ".lock"
HOLDERS = ("checkpoint-a", "checkpoint-b")
"""One of them is the best; the other takes the next, and is gone when that is."""


def keep_if_best(place: Path, checkpoint: Path, facts: Mapping[str, Any]) -> bool:
    """Whether `checkpoint` has the lowest `facts["score"]` so far: it is moved to `place` then.

    `best.json` there names the directory that holds it, and the facts; the one before is deleted.
    Raises SetupError where nothing can be kept.
    """
    try:
        place.mkdir(parents=True, exist_ok=True)
        with _locked(place):
            before = _read(place / BEST)
            if before is not None and before["score"] <= facts["score"]:
                return False
            old = HOLDERS[0] if before is None else before["checkpoint"]
            new = HOLDERS[old == HOLDERS[0]]
            shutil.rmtree(place / new, ignore_errors=True)  # of somebody who was killed at it
            shutil.move(checkpoint, place / new)
            replace(place / BEST, json.dumps({**facts, "checkpoint": new}, indent=2).encode())
            shutil.rmtree(place / old, ignore_errors=True)
            return True
    except OSError as error:
        raise SetupError(
            f"checkpoints: cannot keep the best in {place}: {error.strerror or error}"
        ) from error


@contextmanager
def _locked(place: Path) -> Iterator[None]:
    with (place / LOCK).open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _read(path: Path) -> dict[str, Any] | None:
    """None where nothing is kept, or nothing whole."""
    try:
        found = json.loads(path.read_bytes())
        named = found["checkpoint"] in HOLDERS and (path.parent / found["checkpoint"]).is_dir()
        whole = named and isinstance(found["score"], float)
    except (FileNotFoundError, ValueError, TypeError, LookupError):
        return None
    return found if whole else None
