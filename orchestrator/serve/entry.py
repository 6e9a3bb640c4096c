"""What a list says of a run: how it stands, in a line."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from budgets.pace import last_seen, pace
from budgets.plain import one_line, printable
from budgets.report.markdown import amount
from budgets.report.model import balances
from budgets.report.sentence import sentence
from budgets.state import RunState
from budgets.verdict.findings import title
from budgets.words import duration
from orchestrator.records.cautions import cautions
from orchestrator.records.standing import GOES_ON, Kind, standing_of

Standing = Kind | Literal["empty", "unread"]
"""`empty`: without a whole record; `unread`: nobody has looked yet."""

Mood = Literal["good", "caution", "bad", "open", "trouble"]
"""A Go; one with something against it; a No-Go; neither; what a person should look into."""

_UNKNOWN: dict[Standing, str] = {"unread": "Being read.", "empty": "No whole record yet."}

LONGEST = 2000
"""Characters of an error: it says how to go on in its end."""


@dataclass(frozen=True)
class Entry:
    """One run as a list shows it. All text is printable, and no HTML yet."""

    id: str
    place: str  # the directory it is in, as seen from the directory that is listed
    name: str
    phase: str
    standing: Standing
    mood: Mood
    sentence: str
    heard: datetime  # the last record; of what cannot be read, its file
    began: datetime
    objective: str = ""
    progress: float | None = None  # 0 to 1
    left: str = ""
    cost: tuple[str, ...] = ()
    where: str = ""  # another machine that has it
    verdict: str = ""  # of a search that has one: `Go that persists`

    @property
    def goes_on(self) -> bool:
        """Whether somebody carries it out."""
        return self.standing in GOES_ON

    @property
    def shown(self) -> str:
        """How it stands, in a word or a verdict; `where` says on which other machine."""
        return self.verdict or ("running" if self.goes_on else self.standing)

    @property
    def path(self) -> str:
        """Its directory, likewise."""
        return f"{self.place}/{self.name}" if self.place else self.name


def entry_of(id_: str, place: Path, state: RunState, now: datetime) -> Entry:
    """The entry of a run that can be read."""
    standing, found = standing_of(state, now), pace(state)
    left = found.remaining_hours if standing.goes_on else None
    said = f"{sentence(state, standing.ruling)} {standing.way_on}".rstrip()
    return Entry(
        id=id_,
        place=_place(place),
        name=printable(state.plan.run_id),
        phase=state.plan.phase,
        standing=standing.kind,
        mood=mood_of(state, standing.kind),
        sentence=printable(said),
        heard=last_seen(state),
        began=datetime.fromtimestamp(state.began_ms / 1000, UTC),
        objective=printable(state.plan.objective["name"]),
        progress=1.0 if standing.kind == "finished" else found.progress,
        left="" if not left else f"{duration(3600 * left)} left",
        cost=_cost(state),
        where=printable(standing.host),
        verdict="" if (d := state.decided) is None else title(d.grade, d.no_go),
    )


def entry_without_state(
    id_: str, directory: Path, place: Path, standing: Standing, error: object = ""
) -> Entry:
    """Of a run that was not read, has no record, or cannot be read: why, and the way on."""
    try:
        moment = datetime.fromtimestamp(directory.lstat().st_mtime, UTC)
    except OSError:  # gone since
        moment = datetime.fromtimestamp(0, UTC)
    return Entry(
        id=id_,
        place=_place(place),
        name=printable(directory.name),
        phase=printable(directory.parent.name),
        standing=standing,
        mood="trouble" if error else "open",
        sentence=_UNKNOWN.get(standing) or one_line(str(error), LONGEST),
        heard=moment,
        began=moment,
    )


def mood_of(state: RunState, standing: Standing) -> Mood:
    """Good and bad are verdicts' alone."""
    if standing in ("paused", "stopped", "interrupted"):
        return "trouble"
    if state.decided is None:
        return "open"
    if state.decided.grade == "no_go":
        return "bad"
    return "caution" if cautions(state) else "good"


def _cost(state: RunState) -> tuple[str, ...]:
    """Device-hours, and money where it has a price."""
    spent = {balance.currency: balance for balance in balances(state) if balance.counts}
    hours = spent["device-hours"]
    parts = [f"{amount(hours, hours.spent)} device-hours"]
    if (cost := spent.get("cost")) is not None:
        parts.append(f"cost {cost.spent:,.2f}")
    return tuple(parts)


def _place(place: Path) -> str:
    return "" if place == Path() else printable(str(place.parent))
