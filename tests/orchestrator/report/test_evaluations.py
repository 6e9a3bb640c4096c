"""Attempts with what a settlement does not say itself: when, where, whose."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from budgets.events import Settled, Status
from budgets.ledger.chain import LEDGER, Record, read
from orchestrator.execution.engine import Engine
from orchestrator.records.recorded import Result
from orchestrator.report.collect import report, report_of
from orchestrator.report.evaluations import UNKNOWN
from orchestrator.report.model import Report


def on_devices(records: Iterable[Record], name: Callable[[Settled], str]) -> list[Record]:
    """The same run on other devices; of its records only the events are read."""
    return [
        record._replace(event=replace(record.event, device=name(record.event)))
        if isinstance(record.event, Settled)
        else record
        for record in records
    ]


def rows(found: Report) -> set[str]:
    return {one.device for one in found.evaluations}


@pytest.fixture(scope="module")
def beside_each_other(
    tmp_path_factory: pytest.TempPathFactory, run_search: Callable[..., Result]
) -> Path:
    """A search of two local processes at once."""
    return run_search(
        tmp_path_factory.mktemp("two"),
        settings={"seconds": 0.02},
        engine=Engine(kind="local", workers=2),
        assumed_seconds=0.1,
    ).directory


def test_on_one_slot_a_cpu_is_one_row(finished_run: Path) -> None:
    assert rows(report(finished_run)) == {"cpu"}


def test_on_two_slots_a_cpu_is_two_rows(beside_each_other: Path) -> None:
    found = report(beside_each_other)

    assert {one.partition(" on ")[0] for one in rows(found)} == {"cpu 1", "cpu 2"}


def test_a_gpu_is_one_row_by_its_own_name(beside_each_other: Path) -> None:
    """Each settlement says which of two it was on."""
    records = read(beside_each_other / LEDGER).records
    slot = {one.place: one.device[-1] for one in report(beside_each_other).evaluations}

    def gpu(end: Settled) -> str:
        place = f"gen_{end.generation:04d}/cand_{end.candidate:04d}/seed_{end.seed}"
        return f"GPU-{slot[f'eval/{place}']} on node"

    found = report_of(beside_each_other, on_devices(records, gpu))

    assert rows(found) == {"GPU-1 on node", "GPU-2 on node"}


def test_an_attempt_that_says_nothing_was_on_the_only_device(finished_run: Path) -> None:
    records = read(finished_run / LEDGER).records

    silent = report_of(
        finished_run, on_devices(records, lambda end: "" if end.candidate == 1 else "cpu")
    )
    two = report_of(
        finished_run, on_devices(records, lambda end: ["", "0", "1"][end.candidate % 3])
    )

    assert rows(silent) == {"cpu"}
    assert rows(two) == {"0", "1", UNKNOWN}


def test_the_ends_are_in_order_and_say_whose_a_failure_is(finished_run: Path) -> None:
    found = report(finished_run)

    assert [one.ended for one in found.evaluations] == sorted(
        one.ended for one in found.evaluations
    )
    (failed,) = [one for one in found.evaluations if one.status is not Status.OK]
    assert failed.whose == "configuration"
    assert failed.score is None
    assert {one.whose for one in found.evaluations if one.status is Status.OK} == {""}


def test_knobs_are_the_decoded_point(finished_run: Path) -> None:
    found = report(finished_run)

    for one in found.evaluations:
        for knob, unit in zip(found.knobs, one.point, strict=True):
            assert one.knobs[knob.name] == pytest.approx(knob.low + unit * (knob.high - knob.low))


def test_a_place_is_the_attempts_own_directory(finished_run: Path) -> None:
    assert all((finished_run / one.place).is_dir() for one in report(finished_run).evaluations)


def test_an_arm_names_a_panels_configuration(confirmed_run: Path) -> None:
    found = report(confirmed_run)

    named = {one.panel: set[str]() for one in found.evaluations}
    for one in found.evaluations:
        named[one.panel].add(one.arm)
    assert named[None] == {""}
    assert named["reference"] >= {"baseline"}
    assert "baseline" in named["rung"]


def test_a_campaigns_condition_is_the_arm_with_its_own_knobs(campaign: Path) -> None:
    found = report(campaign)

    conditions = found.budget.campaign
    assert conditions is not None
    assert {one.arm for one in found.evaluations} == {row.name for row in conditions.rows}


def test_of_several_attempts_the_one_that_decided_is_final(
    run_search: Callable[..., Result], lack: Callable[..., Any], tmp_path: Path
) -> None:
    """One that could not be evaluated for want of its data is owed again."""
    lack("gen_0000/cand_0003/")
    result = run_search(tmp_path, assumed_seconds=1.0)
    assert result.ruling.decision == "pause"
    directory = run_search(tmp_path, assumed_seconds=1.0).directory

    tries = [
        one for one in report(directory).evaluations if (one.generation, one.candidate) == (0, 3)
    ]

    assert [(one.attempt, one.is_final, one.status) for one in tries] == [
        (1, False, Status.LOST),
        (2, True, Status.OK),
    ]
    assert tries[0].whose == "setup"


def test_in_flight_is_what_is_not_settled(run: Path, cut: Callable[..., None]) -> None:
    records = read(run / LEDGER).records
    places = [at for at, record in enumerate(records) if record.event.kind == "reserved"]
    cut(run, places[5] + 1)

    found = report(run)

    (flying,) = found.in_flight
    assert (flying.generation, flying.candidate, flying.attempt) == (0, 5, 1)
    assert flying.began == pytest.approx(records[places[5]].elapsed_ms / 1000)
    assert flying.reserved_seconds > 0
    assert found.generations[0].reserved_device_hours == flying.reserved_seconds / 3600
