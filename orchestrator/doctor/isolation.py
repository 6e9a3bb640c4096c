"""How far an evaluation is kept apart from everything else here, in plain words."""

import sys

from budgets.plain import shell_word
from orchestrator.doctor.asking import Ask, NoAnswerError
from orchestrator.doctor.finding import Finding

LOOK = f"ATTEMPT_ID=look {shell_word(sys.executable)} -m orchestrator.doctor.orphaning"
LINUX = "run on Linux, with /proc mounted without hidepid"


def tree(ask: Ask, system: str) -> tuple[Finding, ...]:
    """Whether an evaluation's whole process tree can be ended and watched; tried in a process."""
    item = "process tree"
    if system != "linux":
        seen = f"{system}: children are found by parent; one that flees survives its evaluation"
        return (Finding(item, "absent", seen, LINUX), Finding("memory limit", "ok", _WATCHED))
    try:
        answer = ask()
    except NoAnswerError as error:
        return (Finding(item, "unknown", f"could not be tried: {error}", LOOK),)
    return (
        _ending(answer["adopted"] is True, answer["ended"] is True, answer["marked"] is True),
        _memory(answer["memory"] is True),
    )


_WATCHED = "watched 4 times a second and ended above its limit; the kernel caps nothing"


def _ending(adopted: bool, ended: bool, marked: bool) -> Finding:
    item = "process tree"
    if adopted and ended and marked:
        seen = "an orphan in another session came back (subreaper), could be read, and was ended"
        return Finding(item, "ok", seen)
    lacking = {
        "orphans do not come back to a supervisor (PR_SET_CHILD_SUBREAPER)": adopted,
        "a process could not be ended": ended,
        "the marks of processes cannot be read (/proc/PID/environ)": marked,
    }
    seen = "; ".join(words for words, holds in lacking.items() if not holds)
    return Finding(item, "missing", seen, LINUX)


def _memory(seen: bool) -> Finding:
    if seen:
        return Finding("memory limit", "ok", _WATCHED)
    words = "the memory of an evaluation cannot be seen (/proc/PID/statm)"
    return Finding("memory limit", "missing", words, LINUX)


def level(found: tuple[Finding, ...]) -> Finding:
    """What an evaluation gets here, as one sentence; `found` is what `tree` found."""
    item, states = "level", {finding.item: finding.state for finding in found}
    free = "It is no sandbox: files and network are yours, as they are to you"
    if states.get("process tree") == "ok" and states.get("memory limit") == "ok":
        seen = "process tree: it ends whole, with its time, its memory and its orchestrator"
        return Finding(item, "ok", f"{seen}. {free}")
    if states.get("process tree") == "absent":
        seen = "process group: it ends with its limits, but what has fled may live on"
        return Finding(item, "ok", f"{seen}. {free}")
    if "unknown" in states.values():
        return Finding(item, "unknown", f"not known. {free}", LOOK)
    return Finding(item, "missing", f"none that can be relied on. {free}", LINUX)
