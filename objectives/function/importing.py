"""Imports a user's module to say whether it can be an objective: a process of its own.

An argument names the file for the answer, so that whatever the module prints is none; stdin has the
question. An error that nobody expects is an answer too.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from pydantic import BaseModel

from objectives.api import SetupError
from objectives.function.calling import imported, own_modules, require_signature, surroundings
from objectives.function.module import Module, Named

LIMIT_SECONDS = 180.0
"""Importing torch took 13 s on a loaded machine."""


class Question(BaseModel):
    """Which function, where, and with what it would be called."""

    named: Named
    module: Module
    directory: Path
    fixed: dict[str, Any]


def try_import(question: Question) -> list[Path]:
    """The files of the user's that importing it reads, as another process finds.

    Raises SetupError, with what Python says, where it cannot be imported or be called so.
    """
    with tempfile.TemporaryDirectory(prefix="import-") as scratch:
        place = Path(scratch)
        answer = _ask(question, place)
    if "failed" in answer:
        raise SetupError(str(answer["failed"]))
    return [Path(file) for file in answer["files"]]


def _ask(question: Question, place: Path) -> dict[str, Any]:
    (place / "question").write_text(question.model_dump_json(), encoding="utf-8")
    command = (sys.executable, "-P", "-m", __name__, str(place / "answer"))
    what = f"importing {question.named.module} from {question.module.file}"
    with open(place / "question", "rb") as stdin, open(place / "said", "w+b") as said:
        process = subprocess.Popen(
            command, stdin=stdin, stdout=said, stderr=said, process_group=0, env=_environment()
        )
        try:
            status = process.wait(LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            raise SetupError(
                f"{what} took longer than {LIMIT_SECONDS:g} s: what takes long belongs into the "
                "function"
            ) from None
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if (place / "answer").exists():
            found: dict[str, Any] = json.loads((place / "answer").read_bytes())
            return found
        said.seek(0)
        lines = said.read()[-2000:].decode(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    raise SetupError(
        f"{what} ended Python with status {status}{last and f': {last}'}. What a program does "
        "belongs below: if __name__ == '__main__'"
    )


def _environment() -> dict[str, str]:
    """Ours, and the place that this very package is in."""
    root = str(Path(__file__).parents[2])
    known = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{known}" if known else root}


def main(answer: str) -> None:
    """Answer the question on stdin."""
    file = Path(answer)
    question = Question.model_validate_json(sys.stdin.buffer.read())

    def unexpected(
        _: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        file.write_text(json.dumps({"failed": _in_words(question, error, trace)}))

    sys.excepthook = unexpected
    file.write_text(json.dumps({"files": _files(question, file.parent)}))


def _files(question: Question, scratch: Path) -> list[str]:
    named, module = question.named, question.module
    with surroundings(question.directory, module, "", scratch):
        require_signature(named, imported(named, module), question.fixed)
        own = own_modules(module.folders(question.directory))
    return sorted(str(one.__file__) for one in own.values())


def _in_words(question: Question, error: BaseException, trace: TracebackType | None) -> str:
    """What Python says last, and of the user's own files the line that it speaks of."""
    said = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
    if isinstance(error, SetupError):
        return str(error)
    frames = [f for f in traceback.extract_tb(trace) if f.filename != __file__]
    own = [f for f in frames if Path(f.filename).is_relative_to(question.directory)]
    where = f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""
    return f"cannot import {question.named.module}: {said}{where}"


if __name__ == "__main__":
    main(sys.argv[1])
