"""Whether a ledger still tells what happened: the first divergence, or none."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from budgets.events import Reserved, Settled
from budgets.ledger import LEDGER, LedgerCorruptError, Record, read, records_lost
from budgets.state import ImpossibleEventError, RunState, fold
from orchestrator.execution.attempts import read_summary
from orchestrator.plan import evaluation_seeds
from orchestrator.run import attempt_id, attempt_place
from orchestrator.search import Search
from orchestrator.walk import ReplayError


@dataclass(frozen=True)
class Verification:
    """What was checked and held, up to the first thing that did not."""

    records: int
    head: str
    held: tuple[str, ...]
    divergence: str | None


class _DivergedError(Exception):
    """The check's own word for what is wrong."""


def verify(directory: Path) -> Verification:
    """Replay the run in `directory`, changing nothing. Raises FileNotFoundError without one."""
    held: list[str] = []
    records: Sequence[Record] = ()
    try:
        records = _chain(directory)
        held.append(f"hash chain: {len(records)} records follow from each other")
        state = fold(records)
        held.append("story: every record can follow the ones before it, no cap is passed")
        held.append(_accounts(records, state))
        held.append(_seeds(state))
        if state.plan.search is not None:
            held.append(_replay(state))
        held.append(_summaries(directory, records))
        held.append(_reports(directory, records))
    except (LedgerCorruptError, ImpossibleEventError, ReplayError, _DivergedError) as error:
        return Verification(len(records), _head(records), tuple(held), str(error))
    return Verification(len(records), _head(records), tuple(held), None)


def _head(records: Sequence[Record]) -> str:
    return records[-1].digest if records else ""


def _chain(directory: Path) -> Sequence[Record]:
    path = directory / LEDGER
    reading = read(path)
    if not reading.records:
        raise _DivergedError(f"{path} holds no whole record")
    if reading.torn:
        raise _DivergedError(
            f"{path}: record {len(reading.records)} at byte {reading.records[-1].end} is "
            f"unfinished ({len(reading.torn)} bytes); the next run sets them aside"
        )
    if lost := records_lost(path, reading.records):
        raise _DivergedError(
            f"{path} lacks {lost} records that head.json has seen: its end at record "
            f"{len(reading.records)} was cut off, or it is an older copy"
        )
    return reading.records


def _accounts(records: Sequence[Record], state: RunState) -> str:
    """Add the accounts up again without the reducer."""
    events = [record.event for record in records]
    reservations = [e for e in events if isinstance(e, Reserved)]
    settlements = [e for e in events if isinstance(e, Settled)]
    closed = {(s.generation, s.candidate, s.seed, s.attempt) for s in settlements}
    added = (
        sum(s.status.final for s in settlements),
        sum(s.charged_ms for s in settlements),
        sum(
            r.reserve_ms
            for r in reservations
            if (r.generation, r.candidate, r.seed, r.attempt) not in closed
        ),
    )
    accounts = state.accounts
    booked = (accounts.evaluations, accounts.device_ms, accounts.reserved_device_ms)
    if added != booked:
        raise _DivergedError(f"the accounts say {booked}, the records add up to {added}")
    return f"accounts: {added[0]} evaluations and {added[1] / 1000:.1f} device-seconds add up"


def _seeds(state: RunState) -> str:
    for generation in state.generations:
        expected = evaluation_seeds(state.plan, generation.number)
        if generation.seeds != expected:
            raise _DivergedError(
                f"generation {generation.number} was evaluated on seeds {generation.seeds}, "
                f"the plan gives {expected}"
            )
    return f"evaluation seeds: {len(state.generations)} generations use the plan's"


def _replay(state: RunState) -> str:
    assert state.plan.search is not None
    search = Search(state.plan.search, state.plan.resolved.population)
    search.replay(state.generations)
    return (
        f"search: {len(state.generations)} asks and {len(state.told)} state digests are what the "
        "plan gives here"
    )


def _summaries(directory: Path, records: Sequence[Record]) -> str:
    """The evaluations' own files, where they still exist, say what the ledger says."""
    reserved: dict[tuple[int, int, int, int], Reserved] = {}
    compared = 0
    for record in records:
        event = record.event
        if isinstance(event, Reserved):
            reserved[event.generation, event.candidate, event.seed, event.attempt] = event
        if not isinstance(event, Settled) or event.score is None:
            continue
        own = reserved[event.generation, event.candidate, event.seed, event.attempt]
        place = directory / "eval" / attempt_place(own)
        outcome = read_summary(place, attempt_id(records[0].digest, own))
        if outcome is None or outcome.measurement is None:
            continue
        compared += 1
        if outcome.measurement.score != event.score:
            raise _DivergedError(
                f"record {record.seq} at byte {record.offset} gives the score {event.score}, "
                f"{place / 'summary.json'} {outcome.measurement.score}"
            )
    return f"scores: {compared} evaluations' own files agree"


def _reports(directory: Path, records: Sequence[Record]) -> str:
    """Every report names the head it was written at: that record must still be there."""
    paths = sorted(directory.glob("reports/gen_*.json"))
    for path in paths:
        report = orjson.loads(path.read_bytes())
        count, head = report["records"], report["head"]
        if count > len(records) or records[count - 1].digest != head:
            raise _DivergedError(f"{path} was written at record {count - 1}, which is not there")
    return f"reports: {len(paths)} name heads of this ledger"
