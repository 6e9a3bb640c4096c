"""How a run stands at a moment."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from budgets.formatting import duration
from budgets.rules import Decision, Ruling, ruling_of
from budgets.schedule import last_seen
from budgets.state import RunState
from orchestrator.execution.processes import boot_id, owner_is_gone

Kind = Literal["planned", "running", "elsewhere", "interrupted", "paused", "stopped", "finished"]
"""`elsewhere`: running on another machine, as far as can be told from here; `interrupted`: it may
go on, and no process has it; `paused`: until a person overrides a rule; `stopped`: by a budget, a
window or a rule."""

OVER: tuple[Kind, ...] = ("paused", "stopped", "finished")

PATIENCE_SECONDS = 60.0
"""Beyond an attempt's worst case: a run elsewhere that is silent for longer counts as dead."""

REPEAT = "Repeat the command that began it to go on."

_ENDS: dict[Decision, Kind] = {"pause": "paused", "stop": "stopped", "done": "finished"}


@dataclass(frozen=True)
class Standing:
    """How a run stands."""

    kind: Kind
    whose: str  # the kind, and the process or machine that has it: `running (pid 7)`
    ruling: Ruling

    @property
    def goes_on(self) -> bool:
        """Whether a process carries it out."""
        return self.kind in ("running", "elsewhere")

    @property
    def way_on(self) -> str:
        """What a person has to do, unless a rule holds the run up."""
        return REPEAT if self.kind in ("planned", "interrupted") else ""


def standing_of(state: RunState, now: datetime) -> Standing:
    """Return how a run stands, by its records and its process."""
    ruling = ruling_of(state)
    kind = _kind(state, ruling, now)
    whose = str(kind)
    if kind == "running":
        whose = f"running (pid {state.opened[-1].owner.pid})"
    elif kind not in OVER and not _is_here(state):
        host, ago = state.opened[-1].host, duration(_silent_seconds(state, now))
        whose = f"{whose.replace('elsewhere', 'running')} on {host}, last record {ago} ago"
    return Standing(kind, whose, ruling)


def goes_on(state: RunState, now: datetime) -> bool:
    """Return whether a process has the run, as far as can be told from here."""
    if state.concluded is not None or not state.opened:
        return False
    if _is_here(state):
        return not owner_is_gone(state.opened[-1].owner)
    worst = max((t.reserved.reserve_ms for t in state.running_attempts()), default=0) / 1000
    return _silent_seconds(state, now) <= worst + PATIENCE_SECONDS


def _is_here(state: RunState) -> bool:
    """Return whether its last session was on this machine since that was started."""
    return not state.opened or state.opened[-1].owner.boot_id == boot_id()


def _silent_seconds(state: RunState, now: datetime) -> float:
    return max(0.0, (now - last_seen(state)).total_seconds())


def _kind(state: RunState, ruling: Ruling, now: datetime) -> Kind:
    is_carried_out = goes_on(state, now)
    if state.concluded is not None:
        return "finished"
    noted = {(one.rule, one.generation) for one in state.fired}
    fired = {(one.rule, one.generation) for one in ruling.triggers}
    is_at_rest = fired <= noted and ruling.decision != "done" and not state.accounts.holds
    if ruling.decision != "continue" and (not is_carried_out or is_at_rest):
        return _ENDS[ruling.decision]
    if is_carried_out:
        return "running" if _is_here(state) else "elsewhere"
    return "interrupted" if state.opened else "planned"
