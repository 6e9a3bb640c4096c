"""Failures by cause, with the last lines of a log as they may be shown."""

import time
from pathlib import Path

import pytest

from orchestrator.records.recorded import load_state
from orchestrator.report.failures import (
    MOST_CHARACTERS,
    MOST_LINES,
    failures,
    last_lines,
    look_into,
)


def test_failures_are_grouped_as_the_budget_report_groups_them(run: Path) -> None:
    from budgets.report.failures import failures as known

    state = load_state(run)
    expected = known(state)
    (group,) = failures(run, state)

    assert expected is not None
    (kind,) = expected.kinds
    assert (group.whose, group.what) == (kind.whose, kind.what)
    assert (group.attempts, group.final) == (kind.attempts, kind.final) == (1, 1)
    assert (run / group.places[0]).is_dir()
    assert group.example == kind.example


def test_the_log_is_the_end_of_what_went_to_stderr(run: Path) -> None:
    (place,) = failures(run, load_state(run))[0].places
    (run / place / "stdout.txt").write_text("said\n")
    (run / place / "stderr.txt").write_text("first\n\nlast\n\n")

    (group,) = failures(run, load_state(run))

    assert group.log == ("first", "last")
    assert group.log_from == f"{place}/stderr.txt"


def test_where_to_look_is_a_path_and_how_its_log_ends(run: Path) -> None:
    state = load_state(run)
    (place,) = failures(run, state)[0].places
    said = '  File "train.py", line 4, in f\n    x = knobs["lr"]\n  ~~~^^^\nKeyError: \'lr\'\n'
    (run / place / "stderr.txt").write_text("Traceback\n  x\n" + said)

    assert look_into(run, state, is_held_up=False) == (
        f"Look into it: {run / place}/stderr.txt",
        '    File "train.py", line 4, in f',
        '      x = knobs["lr"]',
        "  KeyError: 'lr'",
    )


def test_where_stderr_is_silent_stdout_is_shown(run: Path) -> None:
    (place,) = failures(run, load_state(run))[0].places
    (run / place / "stdout.txt").write_text("said\n")
    (run / place / "stderr.txt").write_text("\n")

    (group,) = failures(run, load_state(run))

    assert group.log == ("said",)
    assert group.log_from == f"{place}/stdout.txt"


def test_a_log_that_is_a_link_is_not_followed(run: Path, tmp_path: Path) -> None:
    (place,) = failures(run, load_state(run))[0].places
    secret = tmp_path / "secret"
    secret.write_text("another person's\n")
    for name in ("stderr.txt", "stdout.txt"):
        (run / place / name).unlink(missing_ok=True)
        (run / place / name).symlink_to(secret)

    (group,) = failures(run, load_state(run))

    assert group.log == ()
    assert group.log_from == ""


def test_a_run_before_second_tries_has_its_failures_too() -> None:
    directory = Path(__file__).parents[2] / "golden/schema_1"

    groups = failures(directory, load_state(directory))

    assert groups
    assert all(group.log == () for group in groups)


def test_no_more_lines_are_shown_than_there_is_room_for() -> None:
    lines = last_lines("".join(f"line {n}\n" for n in range(40)).encode())

    assert lines == tuple(f"line {n}" for n in range(40 - MOST_LINES, 40))


def test_a_progress_bar_is_a_line_at_a_time() -> None:
    assert last_lines(b"\r 10%\r 20%\nRuntimeError\n") == (" 10%", " 20%", "RuntimeError")


def test_what_steers_a_terminal_is_shown_as_nothing_that_does() -> None:
    (line,) = last_lines(b"\x1b[2J\x07\xff<script>\n")

    assert line.isprintable()
    assert line.endswith("<script>")


def test_secrets_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "first line\nsecond line")
    lines = last_lines(
        b"HF_TOKEN=abcdef connecting to https://me:pass@host/\nfirst line\nsecond line\nend\n"
    )

    text = "\n".join(lines)
    assert "abcdef" not in text
    assert "me:pass" not in text
    assert "second" not in text
    assert lines[-1] == "end"


def test_half_a_secret_is_none_either() -> None:
    """What is cut from a long line may be the beginning of one."""
    (line,) = last_lines(b"x " * 990 + b"HF_TOKEN=" + b"s" * 5000 + b"\n")

    assert "sss" not in line
    assert len(line) <= MOST_CHARACTERS


def test_a_line_made_to_be_slow_is_read_in_time() -> None:
    began = time.process_time()

    last_lines(b"KEY" * 20_000 + b"\n")

    assert time.process_time() - began < 2
