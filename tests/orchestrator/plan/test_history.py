"""What runs took is kept beside them; the nearest one says what an evaluation takes elsewhere."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from budgets.plan import Devices
from objectives import registry
from objectives.api import Objective, ObjectiveSpec
from orchestrator.plan.history import HISTORY, append, nearest, read_history, scaled_seconds
from orchestrator.records.recorded import Result, load_state

if TYPE_CHECKING:
    from tests.conftest import Answer, Command
    from tests.orchestrator.plan.conftest import MakeEntry

DEVICES = Devices(count=2, kind="cpu", name="some processor", threads=1, memory_bytes=1 << 30)

RunSearch = Callable[..., Result]


def test_a_run_and_its_calibration_leave_a_line_each_once(
    run_search: RunSearch, tmp_path: Path
) -> None:
    for _ in range(2):  # begun, and looked at again
        result = run_search(tmp_path, settings={"noise": 0.01})
    calibration, search = read_history(tmp_path)
    assert (calibration.phase, calibration.attempts) == ("calibration", 8)
    assert (search.run_id, search.attempts, search.timeouts) == ("min-sphere-s1", 16, 0)
    assert (search.head, search.genesis) == (result.state.head, result.state.genesis)
    assert search.settings["noise"] == 0.01
    assert search.evaluation is not None
    assert search.evaluation.samples == 16
    assert set(search.overheads) == {"startup_seconds", "gap_seconds", "generation_seconds"}
    assert all(0 <= seconds < 5 for seconds in search.overheads.values())


def test_the_last_whole_line_of_a_run_counts(tmp_path: Path, make_entry: "MakeEntry") -> None:
    append(tmp_path, make_entry(attempts=3))
    append(tmp_path, make_entry(run_id="other", genesis="o" * 32))
    append(tmp_path, make_entry())
    forged = orjson.loads((tmp_path / HISTORY).read_bytes().splitlines()[0])
    later = {**forged, "genesis": "l" * 32, "colour": "blue"}
    forged["evaluation"] = {**forged["evaluation"], "train_flops": -1e12}
    with (tmp_path / HISTORY).open("ab") as file:
        file.write(orjson.dumps(forged) + b"\n" + orjson.dumps(later) + b"\n")
        file.write(b'{"run_id": "foreign"}\n\xff\xfe\n\n{"version":1,"run_id":"torn')
    append(tmp_path, make_entry(run_id="after", genesis="a" * 32))
    found = [(entry.run_id, entry.attempts) for entry in read_history(tmp_path)]
    assert found == [("other", 16), ("earlier", 16), ("earlier", 3), ("after", 16)]


def test_many_may_append_at_once(tmp_path: Path, make_entry: "MakeEntry") -> None:
    def some(writer: int) -> None:
        for number in range(20):
            append(tmp_path, make_entry(genesis=f"{writer:016d}{number:016d}"))

    writers = [threading.Thread(target=some, args=(n,)) for n in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(read_history(tmp_path)) == 160


@pytest.mark.parametrize("obstacle", ["directory", "link"])
def test_where_no_line_can_be_written_the_run_says_so_and_ends_well(
    run_search: RunSearch, tmp_path: Path, obstacle: str
) -> None:
    if obstacle == "directory":
        (tmp_path / HISTORY).mkdir()
    else:
        (tmp_path / HISTORY).symlink_to(tmp_path / "elsewhere")
    said: list[str] = []
    result = run_search(tmp_path, assumed_seconds=1.0, say=said.append)
    assert result.ruling.decision == "done"
    assert any("history.jsonl does not have this run" in text for text in said)
    assert not (tmp_path / "elsewhere").exists()


# The nearest run


def nanochat(**settings: Any) -> Objective:
    return registry.load(ObjectiveSpec(name="nanochat", settings=settings))


def ran(make_entry: "MakeEntry", objective: Objective, **fields: Any) -> Any:
    """An entry of that objective, its FLOPs those of the formula."""
    flops = objective.flops()
    assert flops is not None
    return make_entry(
        objective="nanochat",
        fingerprint=objective.fingerprint,
        settings=objective.spec.settings,
        evaluation={"train_flops": flops.train, "eval_flops": flops.score},
        **fields,
    )


def test_the_nearest_run_is_taken(make_entry: "MakeEntry") -> None:
    objective = nanochat()
    others = [
        ran(make_entry, nanochat(n_embd=64), run_id="wider"),
        ran(make_entry, nanochat(n_embd=48), run_id="a little wider"),
        ran(make_entry, nanochat(target_flops=6e10), run_id="longer"),
        ran(make_entry, objective, run_id="more devices", devices=4),
        ran(make_entry, objective, run_id="same"),
    ]
    order = []
    while (found := nearest(others, objective, DEVICES)) is not None:
        order.append((found.entry.run_id, found.is_assumed))
        others.remove(found.entry)
    assert order == [
        ("same", False),
        ("more devices", True),
        ("longer", True),
        ("a little wider", True),
        ("wider", True),
    ]


def test_other_flops_take_more_by_all_of_them_and_no_more_start_up(
    make_entry: "MakeEntry",
) -> None:
    before, after = nanochat(target_flops=3e10), nanochat(target_flops=6e10)
    found = nearest([ran(make_entry, before)], after, DEVICES)
    short, long = before.flops(), after.flops()
    assert found is not None
    assert short is not None
    assert long is not None
    factor = long.total / short.total
    assert 1.5 < factor < 2  # scoring costs the same
    assert found.eval_seconds == pytest.approx(1 + 9 * factor / 0.7)
    assert scaled_seconds(10.0, 1.0, 2.0, is_assumed=False) == pytest.approx(19.0)
    assert "x its FLOPs: " in found.sentence()


def test_equal_flops_are_the_same_price_whatever_setting_differs(make_entry: "MakeEntry") -> None:
    found = nearest([ran(make_entry, nanochat())], nanochat(matrix_lr=0.01), DEVICES)
    assert found is not None
    assert (found.factor, found.is_assumed, found.eval_seconds) == (1.0, False, 10.0)


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"device_kind": "cuda"},
        {"device_name": "another"},
        {"threads": 2},
        {"evaluation": None},
        {"objective": "rastrigin"},
        {"settings": {"seconds": 1.0}, "fingerprint": "o" * 64},  # nobody counts its FLOPs
    ],
)
def test_what_says_nothing_of_it_is_no_prior(
    make_entry: "MakeEntry", elsewhere: dict[str, Any]
) -> None:
    objective = registry.load(ObjectiveSpec(name="sphere", settings={"seconds": 2.0}))
    entry = make_entry(**{"fingerprint": objective.fingerprint, **elsewhere})
    assert nearest([entry], objective, DEVICES) is None
    assert nearest([], objective, DEVICES) is None


def test_a_checkout_of_nanochat_says_nothing_of_our_own(make_entry: "MakeEntry") -> None:
    entry = make_entry(objective="nanochat", settings={"checkout": "/x"})
    assert nearest([entry], nanochat(), DEVICES) is None
    assert nearest([make_entry(objective="nanochat")], nanochat(), DEVICES) is not None


# Calibrations made again


@pytest.fixture
def calibrate(command: "Command") -> Callable[..., "Answer"]:
    """`calibrate` on four seeds of a sphere, with more options."""
    known = ("--objective", "sphere", "--executor", "inline", "--workers", "1", "--set")
    return lambda *more: command("calibrate", *known, "noise=0.01", "--seeds", "4", *more)


def made(folder: Path) -> list[str]:
    return sorted(p.name for p in (folder / "artifacts/cmaes/calibration").iterdir())


def test_the_newest_calibration_is_planned_with_and_old_runs_keep_theirs(
    calibrate: Callable[..., "Answer"], tmp_path: Path, run_search: RunSearch
) -> None:
    root = tmp_path / "artifacts/cmaes"
    noisy = {"noise": 0.01}
    calibrate()
    [first] = made(tmp_path)
    old = run_search(root, settings=noisy)
    for number in range(10):
        calibrate("--again", "--reason", f"reason {number}")
    assert set(made(tmp_path)) == {first, *(f"{first}-{number}" for number in range(2, 12))}
    newest = load_state(root / "calibration" / f"{first}-11")
    assert newest.planned.reasons == ("calibrated again: reason 9",)

    repeated, new = run_search(root, settings=noisy), run_search(root, settings=noisy, run_id="new")

    assert repeated.state.head == old.state.head
    assert new.state.plan.calibration is not None
    assert new.state.plan.calibration.ledger == newest.head
    assert "was made for this reason" in calibrate("--again", "--reason", " reason 3 ").out
    assert len(made(tmp_path)) == 11


def test_a_paused_one_goes_on_when_overridden_for_its_own_reason(
    calibrate: Callable[..., "Answer"], tmp_path: Path
) -> None:
    again = ("--set", "failure_rate=0.5", "--again", "--reason")
    overridden = ("--override", "crash_rate")
    paused = calibrate(*again, "another driver")
    other = calibrate(*again, "known", *overridden)
    same = calibrate(*again, "another driver", *overridden)
    assert (paused.code, other.code, same.code) == (3, 2, 0)
    assert "nothing was calibrated again for the reason 'known'" in other.err
    assert len(made(tmp_path)) == 1
