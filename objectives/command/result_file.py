"""A JSON file that a program leaves as its result, read with suspicion."""

import json
import os
import stat
from pathlib import Path, PurePosixPath
from typing import Any

from objectives.api import ObjectiveError
from objectives.settings import TwinKeysError, each_key_once

MOST_BYTES = 1_000_000
MOST_LEVELS = 32


class ResultRefusedError(ObjectiveError):
    """The program's result is not what a result is."""


def read(
    directory: Path, name: PurePosixPath, attempt_id: str, not_before_ns: int
) -> dict[str, Any] | None:
    """The JSON object in that file of an evaluation's directory; None if there is none.

    Raises ResultRefusedError, saying why, on a link, a pipe or a device, on one that is too large,
    too deep, cut, older than the evaluation (`not_before_ns`, by the clock of its file system) or
    of another attempt.
    """
    data = _bytes_of(directory, name, not_before_ns)
    if data is None:
        return None
    document = _parsed(data, name)
    if not isinstance(document, dict):
        raise ResultRefusedError(f"{name}: expected a JSON object, got {type_of(document)}")
    if _levels(document) > MOST_LEVELS:
        raise ResultRefusedError(f"{name} is deep: expected {MOST_LEVELS} levels at most")
    whose = document.get("attempt_id", attempt_id)
    if whose != attempt_id:
        raise ResultRefusedError(
            f"{name} is of another attempt: its attempt_id is {str(whose)[:80]!r}, and this is "
            f"{attempt_id!r}"
        )
    return document


def value_at(document: dict[str, Any], key: str, name: PurePosixPath) -> float | None:
    """The number at `a.b.c`, NaN and infinity too; None if there is nothing.

    Raises ResultRefusedError on what is there and no number.
    """
    found: Any = document
    for part in key.split("."):
        if not isinstance(found, dict) or part not in found:
            return None
        found = found[part]
    if isinstance(found, bool) or not isinstance(found, int | float):
        hint = ". Some writers make null of NaN" if found is None else ""
        raise ResultRefusedError(f"{name}: {key} is typed wrongly: {_unlike_a_number(found)}{hint}")
    try:
        return float(found)
    except OverflowError:
        raise ResultRefusedError(f"{name}: {key} is larger than any float") from None


def type_of(value: Any) -> str:
    """As JSON calls it."""
    names = {dict: "an object", list: "a list", str: "text", bool: "a truth value"}
    return "null" if value is None else names.get(type(value), "a number")


def _unlike_a_number(value: Any) -> str:
    shown = f" {value!r:.80}" if isinstance(value, str | bool) else ""
    return f"expected a number, got {type_of(value)}{shown}"


def _bytes_of(directory: Path, name: PurePosixPath, not_before_ns: int) -> bytes | None:
    path = directory / name
    if path.parent.resolve() != directory.resolve() / name.parent:
        raise ResultRefusedError(f"{name} lies behind a link: expected it in {directory}")
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:  # of a link ELOOP, of a socket ENXIO
        raise ResultRefusedError(
            f"{name} is no regular file that can be read: {error.strerror}"
        ) from None
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode):
        os.close(descriptor)
        raise ResultRefusedError(f"{name} is no regular file")
    with os.fdopen(descriptor, "rb") as file:
        if facts.st_mtime_ns < not_before_ns:
            raise ResultRefusedError(f"{name} is older than the evaluation: it is not its result")
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ResultRefusedError(
            f"{name} is huge: {facts.st_size} bytes, and a result has {MOST_BYTES} at most"
        )
    return data


def _parsed(data: bytes, name: PurePosixPath) -> Any:
    try:
        text = data.decode()
        return json.loads(text, object_pairs_hook=each_key_once)
    except TwinKeysError as error:
        raise ResultRefusedError(f"{name} says {str(error)[:80]!r} twice") from None
    except UnicodeDecodeError as error:
        raise ResultRefusedError(f"{name} is no text in UTF-8: {error.reason}") from None
    except RecursionError:
        raise ResultRefusedError(f"{name} is deep: expected {MOST_LEVELS} levels at most") from None
    except json.JSONDecodeError as error:
        whole = text.rstrip()
        how = "is no JSON" if whole.endswith("}") and error.pos < len(whole) else "is cut"
        raise ResultRefusedError(f"{name} {how}: {error}") from None
    except ValueError as error:  # a number of thousands of digits
        raise ResultRefusedError(f"{name} is no JSON: {error}") from None


def _levels(document: Any) -> int:
    """How deep objects and lists lie in each other."""
    count, level = 0, [document]
    while level := [value for value in level if isinstance(value, dict | list)]:
        count += 1
        inner = (v.values() if isinstance(v, dict) else v for v in level)
        level = [one for values in inner for one in values]
        if count > MOST_LEVELS:
            break
    return count
