"""Which failures are retried, and what they count as in the end."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from budgets.events import Status
from budgets.state import Attempt as Recorded
from budgets.state import RunState
from orchestrator.execution.api import Attempt
from orchestrator.execution.engine import Engine
from orchestrator.records.runs import Result
from orchestrator.verify import verify
from tests.executors import ending

RunSearch = Callable[..., Result]
Ends = Sequence[tuple[Status, str]]

KILLED = (Status.ERROR, "killed by signal 9 SIGKILL")
SEGFAULT = (Status.ERROR, "killed by signal 11 SIGSEGV")
RAISED = (Status.ERROR, "ValueError: no")
BROKEN = (Status.ERROR, "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered")
CROWDED = (Status.OOM, "killed by signal 9 SIGKILL: the kernel ran out of memory")
SLOW = (Status.TIMEOUT, "ran over 60 s")
HURT = "gen_0000/cand_0003"
QUICK: dict[str, Any] = {"assumed_seconds": 1.0, "population": 8}


def scripted(ends: Ends) -> Engine:
    """Ends the tries at candidate 3 of generation 0 as it is told, and all others well."""

    def end(attempt: Attempt) -> tuple[Status, str] | None:
        number = int(attempt.directory.name.partition(".")[2] or 1) - 1
        return ends[number] if HURT in str(attempt.directory) and number < len(ends) else None

    return ending(end, on_disk=True)


def tries_of(state: RunState, candidate: int = 3) -> tuple[Recorded, ...]:
    generation = state.generations[0]
    return generation.attempts[candidate, generation.seeds[0][0]]


def told(state: RunState) -> list[tuple[Status, bool]]:
    """How the tries at candidate 3 were settled, and why each is not the last."""
    ends = [attempt.settled for attempt in tries_of(state)]
    return [(end.status, end.retry) for end in ends if end is not None]


OK = (Status.OK, False)
LOST = (Status.LOST, False)


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ([KILLED], [(Status.ERROR, True), OK]),
        ([KILLED, SEGFAULT], [(Status.ERROR, True), (Status.ERROR, False)]),
        ([RAISED], [(Status.ERROR, False)]),
        ([SLOW], [(Status.TIMEOUT, False)]),
        ([KILLED, BROKEN, KILLED], [(Status.ERROR, True), LOST, (Status.ERROR, False)]),
        ([CROWDED, CROWDED], [(Status.OOM, True), (Status.OOM, False)]),
    ],
)
def test_a_failure_is_tried_again_once_if_it_may_have_been_the_machines(
    ends: Ends,
    expected: list[tuple[Status, bool]],
    tmp_path: Path,
    run_search: RunSearch,
) -> None:
    result = run_search(tmp_path, engine=scripted(ends), **QUICK)

    assert told(result.state) == expected
    assert result.state.accounts.evaluations == 16
    assert verify(result.directory).divergence is None
