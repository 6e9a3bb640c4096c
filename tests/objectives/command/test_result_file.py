"""A JSON result, read with suspicion: whatever is wrong with it is named."""

import json
import math
import os
import socket
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from objectives.command.result_file import MOST_BYTES, ResultRefusedError, read, value_at

NAME = PurePosixPath("result.json")


def result(directory: Path, name: PurePosixPath = NAME, start_ns: int = 0) -> Any:
    return read(directory, name, "mine", start_ns)


def test_a_result_is_read(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text('{"a": {"b": 0.5}, "attempt_id": "mine"} \n')
    document = result(tmp_path)
    assert value_at(document, "a.b", NAME) == 0.5


def test_a_result_may_lie_in_a_folder_of_the_evaluation(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/result.json").write_text('{"a": 1}')
    assert result(tmp_path, PurePosixPath("out/result.json")) == {"a": 1}


@pytest.mark.parametrize("name", ["result.json", "out/result.json", "file/result.json"])
def test_no_result_is_none(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert result(tmp_path, PurePosixPath(name)) is None


def deep(levels: int) -> str:
    return '{"a": ' + "[" * (levels - 1) + "]" * (levels - 1) + "}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "is cut: Expecting value"),
        ('{"score": 0.', "is cut"),
        ('{"score": 0.5', "is cut: Expecting ',' delimiter"),
        ('{"score": 0.5, "na', "is cut: Unterminated string"),
        ('{"a": {"score": 0.5}', "is cut"),
        ("score: 0.5}", "is no JSON"),
        ('{"score": 0.5,}', "is no JSON"),
        ('{"score": 0.5} {"score": 0.6}', "is no JSON: Extra data"),
        ("[0.5]", "expected a JSON object, got a list"),
        ("0.5", "expected a JSON object, got a number"),
        ('"0.5"', "expected a JSON object, got text"),
        ("null", "expected a JSON object, got null"),
        ('{"score": 1, "b": 2, "score": 3}', "says 'score' twice"),
        ('{"a": {"b": 1, "b": 1}}', "says 'b' twice"),
        ('{"attempt_id": "yours", "score": 1}', "is of another attempt: its attempt_id is 'yours'"),
        ('{"attempt_id": null, "score": 1}', "is of another attempt"),
        ('{"attempt_id": 3, "score": 1}', "is of another attempt"),
        (deep(33), "is deep: expected 32 levels at most"),
        (deep(200_000), "is deep: expected 32 levels at most"),
        ('{"score": ' + "1" * 5000 + "}", "is no JSON: Exceeds the limit"),
        (json.dumps({"a": "x" * MOST_BYTES}), f"is huge: {MOST_BYTES + 9} bytes"),
    ],
    ids=lambda value: value[:30],
)
def test_what_is_no_result_is_refused_by_name(text: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(text)
    with pytest.raises(ResultRefusedError) as raised:
        result(tmp_path)
    assert expected in str(raised.value)
    assert str(raised.value).startswith("result.json")
    assert len(str(raised.value)) < 300


def test_so_many_levels_are_read(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(deep(32))
    assert result(tmp_path) is not None


def test_the_largest_result_is_read(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(json.dumps({"a": "x" * (MOST_BYTES - 9)}))
    assert (tmp_path / "result.json").stat().st_size == MOST_BYTES
    assert result(tmp_path) is not None


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(ResultRefusedError, match="is no text in UTF-8"):
        result(tmp_path)


def link(path: Path) -> None:
    (path.parent.parent / "theirs.json").write_text('{"score": 0.1}')
    path.symlink_to(path.parent.parent / "theirs.json")


def listen(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(path.parent)  # the whole path may be too long for a socket's
        try:
            server.bind(path.name)
        finally:
            os.chdir(here)


MAKERS: dict[str, Callable[[Path], object]] = {
    "link": link,
    "pipe": os.mkfifo,
    "directory": os.mkdir,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "socket": listen,
}


@pytest.mark.parametrize("kind", MAKERS)
def test_what_is_no_regular_file_is_refused(kind: str, tmp_path: Path) -> None:
    directory = tmp_path / "evaluation"
    directory.mkdir()
    MAKERS[kind](directory / "result.json")
    with pytest.raises(ResultRefusedError, match=r"result\.json is no regular file"):
        result(directory)


def test_a_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "evaluation").mkdir()
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/result.json").write_text('{"score": 0.1}')
    (tmp_path / "evaluation/out").symlink_to(tmp_path / "theirs")
    with pytest.raises(ResultRefusedError, match=r"out/result\.json lies behind a link"):
        result(tmp_path / "evaluation", PurePosixPath("out/result.json"))


def test_a_file_that_cannot_be_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbid(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", forbid)  # whoever tests as root may read everything
    with pytest.raises(ResultRefusedError, match="can be read: Permission denied"):
        result(tmp_path)


def test_an_older_file_is_not_this_evaluations(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text('{"score": 0.1}')
    written_ns = path.stat().st_mtime_ns
    assert result(tmp_path, start_ns=written_ns) == {"score": 0.1}
    with pytest.raises(ResultRefusedError, match="is older than the evaluation"):
        result(tmp_path, start_ns=written_ns + 1)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('"0.5"', "a.b is typed wrongly: expected a number, got text '0.5'"),
        ("true", "expected a number, got a truth value True"),
        ("null", "expected a number, got null. Some writers make null of NaN"),
        ("[0.5]", "expected a number, got a list"),
        ("{}", "expected a number, got an object"),
        ("1" + "0" * 400, "a.b is larger than any float"),
    ],
)
def test_what_is_no_number_is_refused(value: str, expected: str) -> None:
    with pytest.raises(ResultRefusedError) as raised:
        value_at(json.loads(f'{{"a": {{"b": {value}}}}}'), "a.b", NAME)
    assert expected in str(raised.value)


@pytest.mark.parametrize("key", ["b", "a.c", "a.b.c", "a.b.c.d", ".", "a."])
def test_a_key_that_is_not_there_is_none(key: str) -> None:
    assert value_at({"a": {"b": 1}}, key, NAME) is None


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_not_finite_are_numbers(text: str, tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(f'{{"score": {text}}}')
    value = value_at(result(tmp_path), "score", NAME)
    assert value is not None
    assert not math.isfinite(value)


def test_a_whole_number_is_a_number() -> None:
    assert value_at({"a": 3}, "a", NAME) == 3.0
