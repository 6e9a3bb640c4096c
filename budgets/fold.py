"""How records change what a run is: `state = fold(records)`.

`apply` refuses events that cannot follow what came before, so folding a ledger also proves that it
tells one consistent story: every reservation settled once, no cap passed, no generation told twice.
It alone changes a state, in place (copying made opening a long ledger several times as slow), and
checks everything before it changes anything.
"""

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from typing import assert_never

from budgets.accounts import MS_PER_HOUR, Accounts, Calendar
from budgets.causes import is_setup, was_given_up
from budgets.events import (
    Amended,
    Concluded,
    Decided,
    Event,
    Fired,
    GenerationAsked,
    GenerationTold,
    Late,
    Opened,
    Overridden,
    PanelAsked,
    Planned,
    Reserved,
    Salvaged,
    Settled,
    Status,
    Withdrawn,
)
from budgets.formatting import counted
from budgets.ledger.chain import Record
from budgets.proxy.certificate import paired_panel
from budgets.state import Batch, Generation, Moment, Panel, RunState, Try
from budgets.terms import Window

CLOCK_JUMP_MS = 5000
"""What two clocks may drift apart within a generation without anybody being told."""


BATCH = 512
"""Records read before they are applied: a processor that does one thing at a time does both in
three quarters of the time."""


class ImpossibleEventError(Exception):
    """An event that cannot follow the records before it."""

    def __init__(self, record: Record, why: str) -> None:
        place = f"record {record.seq} at byte {record.offset}"
        super().__init__(f"{place} ({record.event.kind}) cannot follow what precedes it: {why}")
        self.record = record
        self.why = why


def begin(record: Record) -> RunState:
    """The state after a ledger's first record."""
    if not isinstance(record.event, Planned):
        raise ImpossibleEventError(record, "a ledger begins with its plan")
    plan = record.event.plan
    try:
        began_ms = _ms(record.at)
    except ValueError as error:
        raise ImpossibleEventError(record, str(error)) from error
    if plan.calibration is not None:  # made for this very run, its time is the run's
        began_ms -= plan.calibration.open_ms
    accounts = Accounts(
        plan.caps,
        plan.price_per_device_hour,
        apart_cap=plan.apart,
        calendar=_calendar(plan.caps.window, began_ms, began_ms),
    )
    for paid in (plan.calibration, plan.parent):  # what led to the run is part of its price
        if paid is not None:
            sessions_ms = (*accounts.sessions_ms, *filter(None, (paid.open_ms,)))
            accounts = accounts._replace(device_ms=plan.paid_before_ms, sessions_ms=sessions_ms)
    return RunState(plan, plan, record.digest, began_ms, record.digest, 1, accounts)


def _ms(at: str) -> int:
    return round(1000 * datetime.fromisoformat(at).timestamp())


def _calendar(window: Window | None, began_ms: int, now_ms: int) -> Calendar | None:
    """The deadline that a window of a run planned at `began_ms` means."""
    if window is None:
        return None
    if window.until is not None:
        end_ms = 1000 * window.until.timestamp()
    else:
        end_ms = began_ms + (window.hours or 0.0) * MS_PER_HOUR
    return Calendar(end_ms - 1000 * window.margin_seconds, now_ms, now_ms)


def fold(records: Iterable[Record]) -> RunState:
    """The state after all of `records`. Raises ImpossibleEventError, naming the first bad one.

    Raises ValueError when there is none.
    """
    iterator = iter(records)
    first = next(iterator, None)
    if first is None:
        raise ValueError("the ledger holds no whole record yet: begin the run with its own command")
    state = begin(first)
    with _collector_paused():
        while batch := list(islice(iterator, BATCH)):
            for record in batch:
                apply(state, record)
    return state


@contextmanager
def _collector_paused() -> Iterator[None]:
    """A state has no cycles: looking for them again and again doubles the time of a long fold."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def apply(state: RunState, record: Record) -> None:
    """Advance `state` by one record. Raises ImpossibleEventError and leaves it as it was."""
    before, event = state.accounts, record.event
    try:
        if before.calendar is not None:
            state.accounts = _on_the_calendar(before, record)
        if state.concluded is None and isinstance(event, Reserved):  # almost every record is
            _reserved(state, event, record.elapsed_ms)
        elif state.concluded is None and isinstance(event, Settled):  # one of these two
            _settled(state, event, record.elapsed_ms)
        else:
            _apply(state, event, record)
    except ValueError as error:
        state.accounts = before
        raise ImpossibleEventError(record, str(error)) from error
    state.head, state.records = record.digest, record.seq + 1


def ticked(accounts: Accounts, record: Record) -> Accounts:
    """The accounts at the moment of the record, by both clocks, before what it says."""
    if accounts.calendar is not None:
        accounts = _on_the_calendar(accounts, record)
    return accounts.tick(record.elapsed_ms)


def _on_the_calendar(accounts: Accounts, record: Record) -> Accounts:
    assert accounts.calendar is not None
    calendar, at_ms = accounts.calendar, _ms(record.at)
    if isinstance(record.event, Opened):
        calendar = calendar.open_session(at_ms)
    return accounts._replace(calendar=calendar.tick(at_ms, record.elapsed_ms))


def _apply(state: RunState, event: Event, record: Record) -> None:
    if state.concluded is not None and not isinstance(event, Amended | Salvaged):
        raise ValueError("the run is concluded")
    if isinstance(event, Opened):
        state.accounts = state.accounts.open_session()
    state.accounts, at_ms = state.accounts.tick(record.elapsed_ms), _ms(record.at)
    _rarer(state, event, at_ms, Moment(max(0, len(state.opened) - 1), record.elapsed_ms))
    if isinstance(event, Opened | GenerationTold | Concluded):
        _compare_clocks(state, event, at_ms - record.elapsed_ms)


def _rarer(  # noqa: PLR0912 - one a word
    state: RunState, event: Event, at_ms: int, moment: Moment
) -> None:
    match event:
        case GenerationAsked():
            _asked(state, event, moment)
        case PanelAsked():
            _panel_asked(state, event, moment)
        case GenerationTold():
            _told(state, event, moment)
        case Opened():
            state.opened.append(event)
            state.opened_ms.append(at_ms)
            state.setup_failed = None
        case Fired():
            _fired(state, event)
        case Decided():
            _decided(state, event)
        case Overridden():
            state.overridden.append(event)
        case Withdrawn():
            state.withdrawn.append(event)
        case Salvaged():
            state.salvaged.append(event)
        case Late():
            _late(state, event)
        case Amended():
            _amended(state, event, at_ms)
        case Concluded():
            if state.accounts.holds:
                raise ValueError("attempts are still open")
            state.concluded = event
        case Planned():
            raise ValueError("a run has one plan")
        case Reserved() | Settled():  # pragma: no cover - `apply` has dealt with these
            raise AssertionError
        case _:
            assert_never(event)


def _compare_clocks(state: RunState, event: Event, offset_ms: int) -> None:
    """Note a wall's clock that was set, or a machine that slept: what people read jumps then."""
    jump_ms = offset_ms - state.wall_offset_ms
    if not isinstance(event, Opened) and abs(jump_ms) > CLOCK_JUMP_MS:
        state.clock_jumps_ms.append(jump_ms)
    state.wall_offset_ms = offset_ms


def _asked(state: RunState, event: GenerationAsked, moment: Moment) -> None:
    if state.current is not None:
        raise ValueError(f"generation {state.current.number} is not told yet")
    if event.generation != state.asked:
        raise ValueError(f"expected generation {state.asked}, got {event.generation}")
    resolved = state.plan.resolved
    if event.generation >= resolved.generations:
        raise ValueError(f"the plan has {resolved.generations} generations")
    shape = (len(event.points), len(event.seeds))
    if shape != (resolved.population, resolved.seeds_per_candidate):
        raise ValueError(
            f"{shape[0]} points on {shape[1]} seeds, the plan has {resolved.population} on "
            f"{resolved.seeds_per_candidate}"
        )
    _require_search(state)
    if event.distances and len(event.distances) != len(event.points):
        raise ValueError(f"{len(event.points)} points have {len(event.distances)} distances")
    campaign = state.plan.campaign
    if campaign is not None and event.seeds != campaign.seeds:
        raise ValueError(f"seeds {event.seeds}, the campaign has {campaign.seeds}")
    state.current = Generation(
        event.generation,
        event.points,
        seeds=event.seeds,
        distances=event.distances,
        conditions=() if campaign is None else campaign.conditions,
        asked_at=moment,
    )


def _require_search(state: RunState) -> None:
    if state.decided is not None or ("finalists", 0) in state.panels:
        raise ValueError("the search is over")


def _require_undecided(state: RunState) -> None:
    if state.decided is not None:
        raise ValueError("the search is decided")


def _panel_asked(state: RunState, event: PanelAsked, moment: Moment) -> None:
    _require_undecided(state)
    expected = sum(name == event.panel for name, _ in state.panels)
    if event.number != expected:
        raise ValueError(f"expected {event.panel} panel {expected}, got {event.number}")
    if event.panel == "proxy":
        _check_paired(state, event)
    if len(event.arms) != len(event.seeds):
        raise ValueError(f"{len(event.arms)} arms, and seeds for {len(event.seeds)}")
    if any(not own or len(set(own)) < len(own) for own in event.seeds):
        raise ValueError(f"every arm needs seeds, each once, got {event.seeds}")
    state.panels[event.panel, event.number] = Panel(
        event.number,
        tuple(arm.point for arm in event.arms),
        name=event.panel,
        arms=event.arms,
        seeds=event.seeds,
        asked_at=moment,
    )


def _check_paired(state: RunState, event: PanelAsked) -> None:
    current, proxy = state.current, state.plan.proxy
    if proxy is None or current is None:
        raise ValueError("there is no generation to be evaluated short too")
    if event != paired_panel(current, proxy):
        raise ValueError(f"it is not generation {current.number} evaluated short")


def _fired(state: RunState, event: Fired) -> None:
    state.fired.append(event)
    if event.decision == "stop":
        state.ended = event


def _decided(state: RunState, event: Decided) -> None:
    _require_undecided(state)
    if state.accounts.holds:
        raise ValueError("attempts are still open")
    state.decided = event


def _current(state: RunState, number: int) -> Generation:
    if state.current is None or state.current.number != number:
        raise ValueError(f"generation {number} is not the one in progress")
    return state.current


def _open_batch(state: RunState, event: Reserved | Settled) -> Batch:
    """Where evaluations may be reserved and settled now."""
    if event.panel is None:
        return _current(state, event.generation)
    panel = state.panel(event.panel, event.generation)
    if panel is None:
        raise ValueError(f"{event.panel} panel {event.generation} was never asked")
    return panel


def _reserved(state: RunState, event: Reserved, elapsed_ms: int) -> None:
    if not state.opened:
        raise ValueError("no session is open to start an attempt")
    if event.panel is not None:
        _require_undecided(state)
    elif state.panels:  # without any a search ends with its generations
        _require_search(state)
    batch = _open_batch(state, event)
    key = (event.candidate, event.seed)
    count = len(batch.points)
    if not (0 <= event.candidate < count and event.seed in batch.seeds_of(event.candidate)):
        raise ValueError(f"candidate {event.candidate}, seed {event.seed} was never asked for")
    tries = batch.tries.get(key, ())
    if tries and batch.result(*key) is not None:
        raise ValueError(f"candidate {event.candidate}, seed {event.seed} is already paid for")
    if event.attempt != len(tries) + 1:
        raise ValueError(f"expected attempt {len(tries) + 1}, got {event.attempt}")
    place, apart = (event.panel, event.generation, *key), event.panel is not None
    state.accounts = state.accounts.reserve(
        place, event.reserve_ms, elapsed_ms, apart=apart, slot=event.slot
    )
    session = len(state.opened) - 1
    batch.tries[key] = (*tries, Try(session, event, reserved_ms=elapsed_ms))
    if session not in state.starts_ms:
        state.starts_ms[session] = elapsed_ms


def _settled(state: RunState, event: Settled, elapsed_ms: int) -> None:
    batch = _open_batch(state, event)
    key = (event.candidate, event.seed)
    tries = batch.tries.get(key, ())
    if not tries or tries[-1].settled or tries[-1].reserved.attempt != event.attempt:
        raise ValueError(f"attempt {event.attempt} of {key} is not open")
    if (event.score is None) == (event.status is Status.OK):
        raise ValueError(f"status {event.status} with score {event.score}")
    if event.again is not None and event.status in (Status.OK, Status.LOST, Status.CANCELLED):
        raise ValueError(f"status {event.status} is not a failure to try again")
    place = (event.panel, event.generation, *key)
    state.accounts = state.accounts.settle(
        place, event.charged_ms, final=event.final, elapsed_ms=elapsed_ms
    )
    ended = tries[-1]._replace(
        settled=event, settled_at=Moment(max(0, len(state.opened) - 1), elapsed_ms)
    )
    batch.tries[key] = (*tries[:-1], ended)
    _noted(state, event)


def _noted(state: RunState, event: Settled) -> None:
    """What rules ask of the first one of its kind."""
    if event.status is Status.OK or event.recovered or state.setup_failed is not None:
        return
    if is_setup(event.status, event.cause):
        state.setup_failed = event


def _late(state: RunState, event: Late) -> None:
    if event.panel is None and not 0 <= event.generation < state.asked:
        raise ValueError(f"generation {event.generation} was never asked")
    if event.panel is not None and state.panel(event.panel, event.generation) is None:
        raise ValueError(f"{event.panel} panel {event.generation} was never asked")
    tries = state.batch(event).tries.get((event.candidate, event.seed), ())
    given_up = tries[event.attempt - 1].settled if 0 < event.attempt <= len(tries) else None
    if given_up is None or not was_given_up(given_up.status, given_up.cause):
        raise ValueError(f"attempt {event.attempt_key} was not given up as lost")
    if event.attempt_key in (late.attempt_key for late in state.late):
        raise ValueError(f"attempt {event.attempt_key} has come late before")
    state.accounts = state.accounts.charge_late(event.charged_ms)
    state.late.append(event)


def _told(state: RunState, event: GenerationTold, moment: Moment) -> None:
    generation = _current(state, event.generation)
    if not generation.closed:
        raise ValueError("it is told before every evaluation is settled")
    generation.told, generation.told_at = event, moment
    state.told.append(generation)
    state.current = None


def _amended(state: RunState, event: Amended, at_ms: int) -> None:
    if event.generations < state.asked:
        begun = counted(state.asked, "generation")
        raise ValueError(f"{begun} are begun, and these caps pay for {event.generations} alone")
    is_over = state.concluded is not None or state.decided is not None
    if is_over and (state.panel("finalists") or event.generations <= state.finished):
        raise ValueError("the run is concluded, and this gives it nothing more to do")
    resolved = state.plan.resolved
    if state.panel("finalists") is not None and event.generations != resolved.generations:
        raise ValueError(
            "the search is over, what it found is being compared with the baseline: its "
            f"{resolved.generations} generations stay, the other caps can change"
        )
    resolved = resolved.model_copy(update={"generations": event.generations})
    if resolved.evaluations > event.caps.evaluations:
        raise ValueError(
            f"{counted(event.caps.evaluations, 'evaluation')} cannot pay for "
            f"{counted(event.generations, 'generation')}"
        )
    if event.caps.cost is not None and state.plan.price_per_device_hour == 0:
        raise ValueError("the run began without a price, so no cap on cost can hold it")
    calendar, before = _calendar(event.caps.window, state.began_ms, at_ms), state.accounts.calendar
    if calendar is not None and before is not None:  # a clock set back gains no time here either
        calendar = before._replace(deadline_ms=calendar.deadline_ms)
    accounts = state.accounts.amend(event.caps, calendar)
    state.plan = state.plan.model_copy(update={"caps": event.caps, "resolved": resolved})
    state.accounts = accounts._replace(apart_cap=state.plan.apart)
    state.amended.append(event)
    state.concluded = state.decided = state.ended = None
