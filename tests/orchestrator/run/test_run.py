"""A run is opened, resumed, carried out by the loop, and its outcomes are settled and retried."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from budgets.events import Fired, Status
from budgets.ledger import LEDGER, SYSTEM_CLOCK
from budgets.plan import Devices
from budgets.state import RunState
from objectives.analytic import AnalyticObjective
from objectives.api import Context, Measurement, SetupError
from orchestrator.execution.api import Attempt
from orchestrator.execution.devices import Engine, make_devices
from orchestrator.records.runs import Result
from orchestrator.run.directory import amend
from orchestrator.verify import verify
from tests.executors import ending
from tests.ledgers import cut, every
from tests.orchestrator.conftest import NOISY

RunSearch = Callable[..., Result]

TWO = Engine(kind="inline", workers=2)
QUICK: dict[str, Any] = {"engine": TWO, "population": 8, "assumed_seconds": 1.0}


@pytest.mark.parametrize("records", [12, None], ids=["begun", "concluded"])
def test_another_plan_in_a_used_directory_is_refused_and_says_what_differs(
    run: Path, run_search: RunSearch, records: int | None
) -> None:
    if records:
        cut(run, records)
    before = (run / LEDGER).read_bytes()

    with pytest.raises(ValueError, match=r"search\.sigma0: 0\.15 -> 0\.1.*--run-id"):
        run_search(run.parent.parent, **NOISY, sigma0=0.1)

    assert (run / LEDGER).read_bytes() == before


@dataclass(frozen=True)
class Gpu(Engine):
    """As if this machine had one."""

    def slots(self, offered: object = None) -> Devices:
        return make_devices(1, "cuda", "a GPU")


def test_a_run_is_not_taken_up_on_another_kind_of_device(run: Path, run_search: RunSearch) -> None:
    cut(run, 12)
    before = (run / LEDGER).read_bytes()
    with pytest.raises(
        ValueError, match=r"planned for cpu, this machine offers cuda.*--device cpu"
    ):
        run_search(run.parent.parent, **NOISY, engine=Gpu("inline"))
    assert (run / LEDGER).read_bytes() == before


# The loop: signals, rules on record, results found on disk


def test_a_stop_under_caps_that_were_raised_too_little_is_on_record_again(
    tmp_path: Path, run_search: RunSearch
) -> None:
    capped = QUICK | {"max_device_hours": 1 / 3600}
    run = run_search(tmp_path, **capped).directory
    run_search(tmp_path, **capped)
    assert len(every(Fired, run)) == 1

    amend(run, {"device_hours": 2 / 3600}, "a bit more", SYSTEM_CLOCK)
    again = run_search(tmp_path, **capped)

    assert again.ruling.decision == "stop"
    assert len(every(Fired, run)) == 2


# How an outcome is settled, and what is retried


Ends = Sequence[tuple[Status, str]]

KILLED = (Status.ERROR, "killed by signal 9 SIGKILL")
SEGFAULT = (Status.ERROR, "killed by signal 11 SIGSEGV")
RAISED = (Status.ERROR, "ValueError: no")
BROKEN = (Status.ERROR, "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered")
CROWDED = (Status.OOM, "killed by signal 9 SIGKILL: the kernel ran out of memory")
SLOW = (Status.TIMEOUT, "ran over 60 s")
HURT = "gen_0000/cand_0003"


def scripted(ends: Ends) -> Engine:
    """Ends the attempts at candidate 3 of generation 0 as it is told, and all others well."""

    def end(attempt: Attempt) -> tuple[Status, str] | None:
        number = int(attempt.directory.name.partition(".")[2] or 1) - 1
        return ends[number] if HURT in str(attempt.directory) and number < len(ends) else None

    return ending(end, on_disk=True)


def told(state: RunState) -> list[tuple[Status, bool]]:
    """How the attempts at candidate 3 were settled, and whether each was to be retried."""
    generation = state.generations[0]
    ends = [attempt.settled for attempt in generation.attempts[3, generation.seeds[0][0]]]
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
    result = run_search(tmp_path, **QUICK | {"engine": scripted(ends)})

    assert told(result.state) == expected
    assert result.state.accounts.evaluations == 16
    assert verify(result.directory).divergence is None


def test_the_command_says_what_to_mend_and_the_rule_cannot_be_overridden(
    command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate, fails = AnalyticObjective.evaluate, ["first", "second"]

    def lacking(own: AnalyticObjective, knobs: Any, seed: int, context: Context) -> Measurement:
        if "gen_0000/cand_0001" in str(context.directory) and fails:
            fails.pop()
            raise SetupError("the text is gone: put it back")
        return evaluate(own, knobs, seed, context)

    monkeypatch.setattr(AnalyticObjective, "evaluate", lacking)
    inline = ("--executor", "inline", "--workers", "1", "--assume-eval-seconds", "1")
    search = ("phase1", "--tier", "min", "--objective", "sphere", *inline)

    answer = command(*search)
    assert answer.code == 3
    assert "SetupError: the text is gone: put it back" in " ".join(answer.out.split())
    assert "--override" not in answer.out
    refused = command(*search, "--override", "setup_failed", "--reason", "never mind")
    assert refused.code == 2
    assert "cannot be overridden" in refused.err
    assert command(*search).code == 3
    assert command(*search).code == 0
