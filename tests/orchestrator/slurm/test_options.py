"""Values of `[slurm]`: what fits, and what gets nowhere near a script."""

import pytest
from pydantic import ValidationError

from orchestrator.slurm.options import SlurmOptions, clock_text, seconds_of

HOSTILE = (
    "; rm -rf ~",
    "$(reboot)",
    "`reboot`",
    "a\nb",
    "a\n#SBATCH --wrap=x",
    "-x",
    "--wrap=x",
    "a b",
    "a'b",
    'a"b',
    "a\\b",
    "a#b",
    "${HOME}",
    "a\x00b",
    "a\u202eb",
    "",
)


@pytest.mark.parametrize(
    "key", ["partition", "account", "qos", "constraint", "gpu_type", "mem", "time"]
)
def test_a_hostile_value_is_refused(key: str) -> None:
    for value in HOSTILE:
        with pytest.raises(ValidationError, match=key):
            SlurmOptions.model_validate({key: value})


@pytest.mark.parametrize(
    "line",
    [
        *(h for h in HOSTILE if h not in ("a b", "${HOME}")),
        "source a; rm b",
        "source a && rm b",
        "source a | sh",
        "echo a > b",
        "export A=$(id)",
        "export A=`id`",
        "eval $((1))",
        "source a  b",
        "$HOME/x",
        "export A='b c'",
        "ls *",
        "a & b",
        "{ a",
    ],
)
def test_a_setup_line_that_is_more_than_one_plain_command_is_refused(line: str) -> None:
    with pytest.raises(ValidationError, match="plain command"):
        SlurmOptions.model_validate({"setup": [line]})


@pytest.mark.parametrize(
    "line",
    [
        "source .venv/bin/activate",
        "source ~/venv/bin/activate",
        "module load cuda/12.4 gcc",
        "export PATH=$HOME/bin:${PATH}",
        "ulimit -n 4096",
    ],
)
def test_an_ordinary_setup_line_is_taken(line: str) -> None:
    assert SlurmOptions.model_validate({"setup": [line]}).setup == (line,)


@pytest.mark.parametrize("line", [*HOSTILE[:5], "--comment=a b", "--mail-user=$(id)", "mail"])
def test_a_hostile_directive_is_refused(line: str) -> None:
    with pytest.raises(ValidationError, match="extra"):
        SlurmOptions.model_validate({"extra": [line]})


@pytest.mark.parametrize("name", ["wrap", "output", "time", "signal", "array", "dependency"])
def test_a_directive_that_is_the_exports_own_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="export's own"):
        SlurmOptions.model_validate({"extra": [f"--{name}=1"]})


@pytest.mark.parametrize(
    "line",
    ["--mail-type=FAIL,END", "--mail-user=a.b@c.org", "--hint=nomultithread", "--exclude=n[1-3]"],
)
def test_an_ordinary_directive_is_taken(line: str) -> None:
    assert SlurmOptions.model_validate({"extra": [line]}).extra == (line,)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("12:00:00", "12:00:00"),
        ("2-03:04:05", "2-03:04:05"),
        ("90m", "01:30:00"),
        ("36h", "1-12:00:00"),
        ("2d", "2-00:00:00"),
    ],
)
def test_a_time_limit_is_kept_as_slurm_writes_it(given: str, kept: str) -> None:
    assert SlurmOptions(time=given).time == kept


@pytest.mark.parametrize("given", ["30", "1:30", "1:60:00", "0h", "10000d", "12 h", "-1h"])
def test_a_time_limit_that_could_mean_two_things_or_nothing_is_refused(given: str) -> None:
    with pytest.raises(ValidationError, match="time"):
        SlurmOptions(time=given)


def test_a_clock_reads_what_it_writes() -> None:
    for seconds in (60, 3599, 86399, 86400, 90061):
        assert seconds_of(clock_text(seconds)) == seconds


@pytest.mark.parametrize(
    ("key", "value"),
    [("gpus", 2), ("nodes", 0), ("lead_seconds", 70000), ("max_requeues", -1), ("nodes", "2")],
)
def test_a_number_out_of_range_is_refused(key: str, value: object) -> None:
    with pytest.raises(ValidationError, match=key):
        SlurmOptions.model_validate({key: value})


def test_an_unknown_key_is_refused() -> None:
    with pytest.raises(ValidationError, match="partitoin"):
        SlurmOptions.model_validate({"partitoin": "gpu"})
