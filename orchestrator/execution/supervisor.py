"""The supervisor of one attempt: it starts the evaluation, watches it, and outlives it.

It is a process of its own in its own session, adopts every orphan below it, and writes
`summary.json` when nothing below it is alive any more. It needs nobody: whether the executor or
the orchestrator is gone it sees by itself, and it then ends the evaluation rather than leave a
trainer on a device.
"""

import math
import os
import signal
import time
from contextlib import suppress

from budgets.events import Owner, Status
from orchestrator.execution import processes
from orchestrator.execution.attempts import (
    STARTED,
    STUCK,
    SUMMARY,
    Started,
    SummaryRoom,
    take_lock,
    write_model,
)
from orchestrator.execution.evaluate import Attempt, device_name
from orchestrator.execution.launch import Launch, Spare, fork_spare
from orchestrator.execution.lease import Ties
from orchestrator.execution.watch import Watch

LOCK_WAIT_SECONDS = 10.0


def supervise(inbox: int, notify: int, lifeline: int, lease: int | None) -> None:
    """Wait for a launch, if one comes, and run its attempt from the marker to the summary.

    All that does not depend on the attempt is done before the wait, the fork of the trainer too.
    For `lifeline` and `lease` see `Ties`. A line with the attempt's id goes to `notify` after
    `summary.json` is on disk, `stuck.json` if the attempt's processes cannot be ended, or neither
    if it cannot be begun.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # the server's setting would reap for us
    spare = fork_spare()
    _leave_the_terminal()
    processes.adopt_orphans()
    me = processes.this_owner()
    with os.fdopen(inbox, "rb") as handed:
        line = handed.read()
    if not line:
        return
    began = time.monotonic()
    launch = Launch.model_validate_json(line)
    attempt = launch.attempt
    watch = Watch(attempt.limits, attempt, Ties(attempt.owner, lifeline, lease), began)
    signal.signal(signal.SIGTERM, watch.cancel)  # who reads the marker may send it at once
    try:
        is_begun = _begin(launch, me)
    except OSError:  # a full disk: whoever waits for it need not
        _notify(notify, attempt)
    else:
        if is_begun:
            _see_through(watch, launch, spare, notify)


def _begin(launch: Launch, me: Owner) -> bool:
    """Take the attempt's lock, for good, and mark it; False where somebody has ended it already."""
    directory = launch.attempt.directory
    if take_lock(directory, LOCK_WAIT_SECONDS) is None or (directory / SUMMARY).exists():
        return False
    _mark_started(launch, me)
    return True


def _see_through(watch: Watch, launch: Launch, spare: Spare, notify: int) -> None:
    """From the trainer's start until nothing is left of it, and that is on disk."""
    attempt, device = launch.attempt, device_name(launch.gpu_id, launch.host)
    grace = attempt.limits.grace_seconds
    room = SummaryRoom(attempt.directory)
    # The marker is on disk before the owner is looked at: whoever finds the owner dead and no
    # marker knows that nothing was and nothing will be launched.
    watch.check_ties()
    if watch.violation is None:
        watch.run(launch, spare)
    is_over = watch.kill_tree(grace)
    outcome = watch.outcome(device)
    if not is_over:
        write_model(attempt.directory / STUCK, outcome)
        _notify(notify, attempt)
        watch.kill_tree(math.inf)
        if outcome.status is Status.LOST:  # what comes late is charged with all that it took
            outcome = watch.outcome(device)
    room.write(outcome, grace)
    _notify(notify, attempt)


def _notify(notify: int, attempt: Attempt) -> None:
    with suppress(BrokenPipeError):  # nobody is left to hear it
        os.write(notify, f"{attempt.attempt_id}\n".encode())


def _leave_the_terminal() -> None:
    for signum in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE, signal.SIGTSTP):
        signal.signal(signum, signal.SIG_IGN)


def _mark_started(launch: Launch, me: Owner) -> None:
    attempt, device = launch.attempt, device_name(launch.gpu_id, launch.host)
    started = Started(attempt_id=attempt.attempt_id, device=device, **me.model_dump())
    # Not synced: after a power cut the boot is another one, and then the marker decides nothing.
    write_model(attempt.directory / STARTED, started, durable=False)
