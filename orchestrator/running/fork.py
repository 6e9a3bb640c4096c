"""The same request under another plan: a run of its own that names the one it came from."""

from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from typing import Any

from budgets.state import RunState
from budgets.terms import Parent, Plan
from orchestrator.planning.differences import differences
from orchestrator.planning.plan import search_plan
from orchestrator.planning.request import Confirm, Request, run_directory, run_name
from orchestrator.records.recorded import recorded_state
from orchestrator.warm_start import recorded_again


def forked(root: Path, request: Request) -> tuple[Request, Parent | None]:
    """The request under the name of the child that it names, and that child's parent.

    The child is the first fork with the plan asked for, or a new one. There is none where the
    recorded run itself has that plan, or is not there.
    """
    name = run_name(request)
    original = recorded_state(run_directory(root, request.phase, name))
    if original is None:
        return request, None
    for child in chain([name], (f"{name}-fork{number}" for number in count(1))):
        renamed = replace(request, run_id=child)
        known = recorded_state(run_directory(root, request.phase, run_name(renamed)))
        if known is None:
            return renamed, parent_of(original)
        asked = planned_again(renamed, known.planned)
        if not differences(known.planned, asked) or not differences(known.plan, asked):
            return renamed, None
    raise AssertionError("count never ends")


def planned_again(request: Request, recorded: Plan) -> Plan:
    """What `request` amounts to, with what the recorded plan has found out or inherited.

    A search method, a first step and thresholds that it does not name are the recorded ones,
    whatever the defaults have become.
    """
    request = _as_begun(request, recorded)
    succession = recorded_again(request, recorded)
    plan = search_plan(request, recorded.devices, recorded.calibration, recorded.parent, succession)
    kept: dict[str, Any] = {"thresholds": recorded.thresholds.model_copy(update=request.thresholds)}
    if request.confirm == Confirm():  # whatever that has come to mean since
        kept["confirmation"] = recorded.confirmation
    return plan.model_copy(update=kept)


def _as_begun(request: Request, recorded: Plan) -> Request:
    """The request that names the method and the first step of the recorded search."""
    search = recorded.search
    if search is None or (request.method or search.method) != search.method:
        return request
    is_inherited = recorded.source is not None or search.inherited is not None
    sigma0 = search.sigma0 if request.sigma0 is None and not is_inherited else request.sigma0
    return replace(request, method=search.method, sigma0=sigma0)


def parent_of(state: RunState) -> Parent:
    """A run as the parent of another one: what is reserved there may have been spent."""
    accounts = state.accounts
    return Parent(
        run_id=state.plan.run_id,
        head=state.head,
        device_ms=accounts.device_ms + accounts.reserved_device_ms,
        open_ms=accounts.committed_wall_ms,
    )
