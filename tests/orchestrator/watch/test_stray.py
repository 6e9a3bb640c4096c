"""What others print while a picture is on the terminal is said line by line."""

import io
import sys

import pytest

from orchestrator.watch.stray import Stray, caught


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_whole_lines_are_said_and_the_rest_waits() -> None:
    said: list[str] = []
    stray = Stray(Tty(), said.append)
    assert stray.write("one\ntw") == 6
    assert said == ["one"]
    stray.write("o\n")
    stray.flush()
    assert said == ["one", "two"]


def test_what_has_no_end_is_said_in_the_end() -> None:
    said: list[str] = []
    stray = Stray(Tty(), said.append)
    stray.write("no end")
    stray.finish()
    stray.finish()
    assert said == ["no end"]


def test_bytes_are_said_too() -> None:
    said: list[str] = []
    stray = Stray(Tty(), said.append)
    stray.buffer.write(b"caf\xc3\xa9 \xff\n")
    stray.buffer.flush()
    assert said == ["café �"]


def test_colours_are_left_out() -> None:
    said: list[str] = []
    Stray(Tty(), said.append).write("\x1b[31mred\x1b[0m\n")
    assert said == ["red"]


def test_all_else_is_the_stream_it_stands_for() -> None:
    stream = Tty()
    stray = Stray(stream, print)
    assert stray.isatty()
    assert stray.getvalue == stream.getvalue


def test_what_is_printed_is_said_and_streams_are_given_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out, err, said = Tty(), Tty(), list[str]()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    with caught(said.append):
        sys.stderr.write("take care\n")
        sys.stdout.write("by hand\n")
        sys.stdout.write("unfinished")
    assert said == ["take care", "by hand", "unfinished"]
    assert (sys.stdout, sys.stderr) == (out, err)
    assert out.getvalue() == err.getvalue() == ""


def test_what_goes_into_a_file_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    out, said = io.StringIO(), list[str]()
    monkeypatch.setattr(sys, "stdout", out)
    with caught(said.append):
        assert sys.stdout is out


def test_a_stream_that_is_not_there_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with caught(print):
        assert sys.stdout is None
