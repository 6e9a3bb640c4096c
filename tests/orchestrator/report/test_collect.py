"""A run's directory as its report, whatever became of the run."""

import shutil
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from budgets.fold import fold
from budgets.ledger.chain import LEDGER, Record, read
from budgets.ledger.head import LedgerRolledBackError
from budgets.state import RunState
from orchestrator.records.recorded import Result
from orchestrator.report.collect import report, report_of
from orchestrator.report.model import Beside, GenerationView, Report
from orchestrator.simulation.reference import Reference
from orchestrator.simulation.scenarios import SCENARIOS
from orchestrator.simulation.world import World

GOLDEN = sorted((Path(__file__).parents[2] / "golden").glob("schema_*"))


def check(found: Report, state: RunState) -> None:
    """What must hold of any report, whatever its run went through."""
    hours_add_up(found, state)
    ends = [one for one in found.evaluations if one.is_final]
    assert len(ends) == state.accounts.evaluations + state.accounts.apart
    assert len(found.in_flight) == len(state.open_tries())
    assert [one.ended for one in found.evaluations] == sorted(
        one.ended for one in found.evaluations
    )
    nothing_overlaps(found)
    for one in found.evaluations:
        session = found.identity.sessions[one.session]
        assert session.began <= one.began <= one.ended <= session.ended
    sessions = found.identity.sessions
    assert all(a.ended == b.began for a, b in pairwise(sessions))
    assert [view.number for view in found.generations] == list(range(state.asked))


def hours_add_up(found: Report, state: RunState) -> None:
    parts: list[GenerationView | Beside] = [*found.generations, *found.beside]
    budget = found.budget
    assert sum(part.wasted_device_hours for part in parts) == pytest.approx(budget.wasted_hours)
    assert sum(part.idle_device_hours for part in parts) == pytest.approx(budget.idle_hours)
    charged = sum(one.charged_seconds for one in found.evaluations)
    charged += sum(late.charged_ms for late in state.late) / 1000
    used = sum(part.useful_device_hours + part.wasted_device_hours for part in parts)
    assert 3600 * used == pytest.approx(charged)
    for part in parts:
        assert part.useful_device_hours >= 0
        assert part.wasted_device_hours >= 0
        assert part.idle_device_hours >= 0


def nothing_overlaps(found: Report) -> None:
    free: dict[str, float] = {}
    for one in sorted(found.evaluations, key=lambda one: (one.began, one.ended)):
        assert free.get(one.device, 0.0) <= one.began, one.place
        free[one.device] = one.ended


def collected(directory: Path) -> tuple[Report, RunState]:
    records = read(directory / LEDGER).records
    return report(directory), fold(records)


@pytest.mark.parametrize("directory", GOLDEN, ids=lambda path: path.name)
def test_a_golden_ledger_gives_a_report(directory: Path) -> None:
    found, state = collected(directory)

    check(found, state)
    assert found.budget.run_id == found.identity.run_id


@pytest.fixture(scope="module")
def references() -> dict[str, Reference]:
    return {}


@pytest.fixture
def told(place: Path, references: dict[str, Reference]) -> Callable[[int], Path]:
    """The directory of the run that the story of a seed is about, told to its end."""

    def tell(seed: int) -> Path:
        story = World(place, SCENARIOS, references=references).story(seed)
        story.tell()
        return story.judge.directory

    return tell


@pytest.mark.parametrize("seed", range(2 * len(SCENARIOS)))
def test_whatever_a_run_went_through_its_report_adds_up(
    told: Callable[[int], Path], seed: int
) -> None:
    check(*collected(told(seed)))


def prefixes(records: tuple[Record, ...], step: int) -> Iterator[tuple[Record, ...]]:
    yield from (records[:count] for count in range(1, len(records) + 1, step))


@pytest.mark.parametrize("seed", [2, 10, 12])
def test_a_run_has_a_report_after_each_of_its_records(
    told: Callable[[int], Path], seed: int
) -> None:
    directory = told(seed)

    for records in prefixes(read(directory / LEDGER).records, 5):
        check(report_of(directory, records), fold(records))


def test_the_same_run_gives_the_same_report_and_nothing_is_written(confirmed_run: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in confirmed_run.rglob("*")}

    first, second = report(confirmed_run), report(confirmed_run)

    assert first.model_dump_json() == second.model_dump_json()
    assert Report.model_validate_json(first.model_dump_json()) == first
    assert {path: path.stat().st_mtime_ns for path in confirmed_run.rglob("*")} == before


def test_a_run_without_its_attempts_files_still_has_a_report(
    confirmed_run: Path, tmp_path: Path
) -> None:
    shutil.copy(confirmed_run / LEDGER, tmp_path / LEDGER)

    found, state = collected(tmp_path)

    check(found, state)
    assert found.curves == ()
    assert "left" in found.no_curves


def test_a_torn_end_is_not_read(run: Path, cut: Callable[..., None]) -> None:
    cut(run, 20, torn_bytes=30)

    found = report(run)

    assert found.identity.records == 20
    assert not found.identity.is_over


def test_records_that_are_missed_are_an_error(run: Path, cut: Callable[..., None]) -> None:
    cut(run, 20, keep_head=True)

    with pytest.raises(LedgerRolledBackError):
        report(run)


def test_no_ledger_is_an_error_in_words(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no whole record yet"):
        report(tmp_path)


def test_before_anything_is_settled_there_is_little_to_say(
    finished_run: Path, tmp_path: Path
) -> None:
    records = read(finished_run / LEDGER).records

    planned, opened = report_of(tmp_path, records[:1]), report_of(tmp_path, records[:3])

    assert planned.identity.sessions == ()
    assert planned.beside[0].idle_device_hours == 0
    assert opened.generations[0].best is None
    assert opened.no_distribution == "no generation is told yet"
    assert opened.no_curves == "no evaluation is over yet"
    assert opened.marginals == ()
    assert [knob.recommended for knob in opened.knobs] == [None] * 10
    assert opened.noise is not None  # of the calibration


def test_a_run_of_failures_alone_has_a_report(
    run_search: Callable[..., Result], tmp_path: Path
) -> None:
    directory = run_search(tmp_path, settings={"failure_rate": 1.0}, assumed_seconds=1.0).directory

    found, state = collected(directory)

    check(found, state)
    assert found.answer.mood == "trouble"
    assert found.generations[0].mean is None
    assert found.generations[0].failed == len(found.evaluations)
    assert [group.attempts for group in found.failures] == [len(found.evaluations)]
    assert found.noise is None


def test_a_check_has_a_report(run_check: Callable[..., Result], tmp_path: Path) -> None:
    directory = run_check(tmp_path, settings={"noise": 0.1}).directory

    found, state = collected(directory)

    check(found, state)
    assert found.no_distribution == "a check run searches nothing"
    assert found.generations[0].luck_so_far is None
    assert found.budget.check is not None


def test_a_calibration_has_a_report_with_the_noise_it_measured(finished_run: Path) -> None:
    (directory,) = (finished_run.parents[1] / "calibration").iterdir()

    found, state = collected(directory)

    check(found, state)
    assert found.identity.phase == "calibration"
    assert found.noise == report(finished_run).noise


def test_where_the_best_is_known_knobs_say_what_is_recommended(confirmed_run: Path) -> None:
    found = report(confirmed_run)

    assert found.budget.recommendation is not None
    for knob, unit in zip(found.knobs, found.budget.recommendation, strict=True):
        assert knob.recommended_unit == unit
        assert knob.recommended == pytest.approx(knob.low + unit * (knob.high - knob.low))
        assert knob.baseline_unit == (knob.baseline - knob.low) / (knob.high - knob.low)
