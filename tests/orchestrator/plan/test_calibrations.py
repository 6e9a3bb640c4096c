"""Calibrations made again: beside the old ones, for a reason on record, and used from then on."""

import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pytest

from budgets.ledger import LEDGER
from orchestrator.records.recorded import Result, load_state
from orchestrator.verify import verify

if TYPE_CHECKING:
    from tests.conftest import Answer, Command

from tests import ledgers

RunSearch = Callable[..., Result]
Calibrate = Callable[..., "Answer"]

NOISY = {"noise": 0.01}


@pytest.fixture
def calibrate(command: "Command") -> Calibrate:
    """`calibrate` on four seeds of a sphere, with more options."""
    known = ("--objective", "sphere", "--executor", "inline", "--workers", "1", "--set")
    return lambda *more: command("calibrate", *known, "noise=0.01", "--seeds", "4", *more)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "artifacts/cmaes"


def made(root: Path) -> list[str]:
    return sorted(p.name for p in (root / "calibration").iterdir())


def cut(calibration: Path, records: int) -> None:
    """What a kill leaves after so many records; before the first, an empty directory."""
    if records == 0:
        shutil.rmtree(calibration)
        calibration.mkdir()
        return
    ledgers.cut(calibration, records)


def test_again_measures_anew_beside_the_old_and_keeps_the_reason(
    calibrate: Calibrate, root: Path
) -> None:
    calibrate()
    [first] = made(root)
    before = (root / "calibration" / first / LEDGER).read_bytes()

    answer = calibrate("--again", "--reason", "another driver", "--json")

    assert answer.code == 0
    assert made(root) == [first, f"{first}-2"]
    document = orjson.loads(answer.out)
    assert Path(document["directory"]).name == f"{first}-2"
    again = load_state(root / "calibration" / f"{first}-2")
    assert again.planned.reasons == ("calibrated again: another driver",)
    assert again.accounts.evaluations == 4
    assert document["calibration"]["ledger"] == again.head
    assert (root / "calibration" / first / LEDGER).read_bytes() == before
    assert verify(root / "calibration" / f"{first}-2").divergence is None


@pytest.mark.parametrize("how", [(), ("--again", "--reason", "another driver")], ids=" ".join)
def test_it_keeps_within_the_limits_that_are_set(
    how: tuple[str, ...], calibrate: Calibrate, root: Path
) -> None:
    limits = [f"--set=evaluation.{name}" for name in ("limit_seconds=30", "stall_seconds=5")]

    assert calibrate(*how).code == 0
    usual = [load_state(root / "calibration" / name).plan.limits for name in made(root)]
    shutil.rmtree(root)
    assert calibrate(*how, *limits).code == 0
    set_ = [load_state(root / "calibration" / name).plan.limits for name in made(root)]

    assert {(one.wall_seconds, one.stall_seconds) for one in usual} == {(600, 120)}
    assert {(one.wall_seconds, one.stall_seconds) for one in set_} == {(30, 5)}


def test_new_runs_are_planned_with_the_newest_and_old_ones_keep_theirs(
    calibrate: Calibrate, root: Path, run_search: RunSearch
) -> None:
    calibrate()
    old = run_search(root, settings=NOISY)
    calibrate("--again", "--reason", "another driver")
    newest = load_state(root / "calibration" / made(root)[-1])

    repeated, new = run_search(root, settings=NOISY), run_search(root, settings=NOISY, run_id="new")

    assert repeated.state.head == old.state.head
    assert new.state.plan.calibration is not None
    assert new.state.plan.calibration.ledger == newest.head


def test_the_newest_is_that_of_the_highest_number(calibrate: Calibrate, root: Path) -> None:
    for number in range(10):
        calibrate("--again", "--reason", f"reason {number}")
    plain = orjson.loads(calibrate("--json").out)
    [first, *_] = made(root)
    assert set(made(root)) == {first, *(f"{first}-{number}" for number in range(2, 11))}
    assert Path(plain["directory"]).name == f"{first}-10"


@pytest.mark.parametrize("records", [0, 1, 4, 7])
def test_the_same_command_takes_up_what_a_kill_left(
    calibrate: Calibrate, root: Path, records: int
) -> None:
    calibrate()
    calibrate("--again", "--reason", "another driver")
    [first, second] = made(root)
    cut(root / "calibration" / second, records)

    unfinished = calibrate("--json")
    answer = calibrate("--again", "--reason", "another driver")

    assert Path(orjson.loads(unfinished.out)["directory"]).name == first
    assert answer.code == 0
    assert made(root) == [first, second]
    assert load_state(root / "calibration" / second).concluded is not None
    assert load_state(root / "calibration" / second).accounts.evaluations == 4


def test_the_same_reason_given_later_measures_nothing_and_says_so(
    calibrate: Calibrate, root: Path
) -> None:
    calibrate()
    calibrate("--again", "--reason", "another driver")
    before = made(root)

    answer = calibrate("--again", "--reason", " another driver ")

    assert answer.code == 0
    assert "was made for this reason. Another reason calibrates anew." in answer.out
    assert made(root) == before


def test_where_there_is_none_again_makes_the_first(calibrate: Calibrate, root: Path) -> None:
    assert calibrate("--again", "--reason", "to begin with").code == 0
    [only] = made(root)
    assert load_state(root / "calibration" / only).planned.reasons


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--again",), "--again needs --reason"),
        (("--again", "--reason", "  "), "--again needs --reason"),
        (("--again", "--reason", "two\nlines"), "expected one printable line"),
        (("--reason", "another driver"), "or calibrate --again"),
    ],
)
def test_again_and_its_reason_go_together(
    options: tuple[str, ...], named: str, calibrate: Calibrate, tmp_path: Path
) -> None:
    answer = calibrate(*options)
    assert answer.code == 2
    assert named in answer.err
    assert answer.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_paused_one_goes_on_when_overridden_for_its_own_reason(
    calibrate: Calibrate, root: Path
) -> None:
    again = ("--set", "failure_rate=0.5", "--again", "--reason")
    overridden = ("--override", "crash_rate")
    paused = calibrate(*again, "another driver")
    other = calibrate(*again, "known", *overridden)
    same = calibrate(*again, "another driver", *overridden)

    assert paused.code == 3
    assert other.code == 2
    assert "nothing was calibrated again for the reason 'known'" in other.err
    assert same.code == 0
    assert len(made(root)) == 1


def test_it_ends_with_what_was_measured_and_the_command_that_plans_with_it(
    calibrate: Calibrate, command: "Command", root: Path
) -> None:
    answer = calibrate()

    *shown, files, following = answer.out.splitlines()
    points = "".join(shown[shown.index("") :]).split(" • ")[1:]
    assert [point.split()[:2] for point in points] == [
        ["An", "evaluation"],
        ["It", "trains"],
        ["The", "baseline"],
        ["None", "of"],
    ]
    assert files == f"Files: artifacts/cmaes/calibration/{made(root)[0]}"
    words = shlex.split(following.removeprefix("Next: python -m orchestrator "))
    assert words[:3] == ["plan", "--tier", "target"]
    assert "Measured here" in command(*words).out


PHASE2 = '[search]\nphase = "phase2"\nfrom = "first"\nvariant = "robust"\n'
CAMPAIGN = (
    '[campaign]\nname = "own"\ncell = "search"\ncontrols = false\n[factors]\ndimension = [2, 3]\n'
)


@pytest.mark.parametrize(
    ("file", "planning", "ends"),
    [
        (PHASE2, ["plan", "--tier", "target"], "error: no phase1 run 'first'"),
        (CAMPAIGN, ["plan", "own.toml"], "Campaign own of sphere"),
    ],
    ids=["phase2", "campaign"],
)
def test_the_next_command_plans_what_the_file_describes(
    file: str,
    planning: list[str],
    ends: str,
    calibrate: Calibrate,
    command: "Command",
    tmp_path: Path,
) -> None:
    (tmp_path / "own.toml").write_text(file)
    following = calibrate("own.toml").out.splitlines()[-1]
    words = shlex.split(following.removeprefix("Next: python -m orchestrator "))
    planned = command(*words)
    assert words[: len(planning)] == planning
    assert ends in planned.out + planned.err
