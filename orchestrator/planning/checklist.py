"""The questions to ask before anything is paid, each answered by what is known."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from budgets.plain import PROGRAM
from budgets.words import duration, in_bytes, number
from orchestrator.planning.basis import Origin

Answer = Literal["pass", "fail", "unknown"]

CALIBRATE = f"{PROGRAM} calibrate with the same --objective and --set"

LEAST_SAMPLES = 3
MOST_DRIFT = 0.15
"""Of an evaluation's time, between the calibration and what ran since: as a report calls good."""

MOST_AGE_DAYS = 30.0
MOST_IDLE = 0.35
"""Of all devices' time, start-up included: with more, fewer devices would do."""

MOST_HITS = 0.05
"""Of evaluations at their limit: with more, the limit decides who is good."""


class Item(NamedTuple):
    """A question, and what is known of its answer."""

    question: str
    verdict: Answer
    why: str


class Need(NamedTuple):
    """What something is expected to take of what there is, in words and numbers."""

    name: str  # of the cap: `--max-hours`
    needed: float | None  # None: nobody knows
    allowed: float
    unit: str


@dataclass(frozen=True)
class Facts:
    """What a checklist is answered from; `None` is "nobody knows".

    Times are seconds unless they say hours. A search, a campaign or a single training fills in
    what it knows of itself.
    """

    smoke: bool  # whether it is too small to decide anything
    limit_seconds: float
    purpose: str = "full: it ends with a verdict"  # what it is otherwise
    longest_seconds: float | None = None  # of the evaluations that were measured
    attempts: int = 0
    timeouts: int = 0
    devices: int = 1
    at_once: int = 1  # evaluations that wait for nothing but a device
    idle_share: float | None = None
    origin: Origin = "none"
    samples: int = 0
    age_days: float | None = None
    drift: float | None = None  # what an evaluation took since, by what was measured
    drifted: str = ""  # where
    hours: float | None = None  # that must be free
    hours_allowed: float | None = None
    alive: tuple[str, ...] = ()  # knobs
    dead: tuple[str, ...] = ()
    untried: tuple[str, ...] = ()
    needs: tuple[Need, ...] = ()  # of each cap there is
    disk_needed: float | None = None  # bytes
    disk_free: float | None = None
    disk_measured: bool = False


def checklist(facts: Facts, *, searches: bool = True) -> tuple[Item, ...]:
    """Every question with its answer, in the order in which a person would ask them.

    Only what `searches` is asked about knobs.
    """
    questions = (_smoke, _limit, _parallel, _pilot, _wall, _knobs, _caps, _disk)
    return tuple(ask(facts) for ask in questions if searches or ask is not _knobs)


def _smoke(facts: Facts) -> Item:
    said = "a smoke test: it decides nothing" if facts.smoke else facts.purpose
    return Item("Smoke test or full run?", "pass", said)


def _limit(facts: Facts) -> Item:
    question = "Is the limit of an evaluation intentional?"
    limit = f"{facts.limit_seconds:g} s"
    if facts.longest_seconds is None or not facts.attempts:
        return Item(question, "unknown", f"{limit}; nothing was measured: {CALIBRATE}")
    said = f"{limit}, {facts.limit_seconds / facts.longest_seconds:.1f} x the longest measured; "
    hits = f"{facts.timeouts} of {facts.attempts} ended there"
    if facts.limit_seconds <= facts.longest_seconds:
        return Item(question, "fail", f"{said}{hits}: healthy evaluations would be killed")
    if facts.timeouts > MOST_HITS * facts.attempts:
        return Item(question, "fail", f"{said}{hits}: raise it if they were healthy")
    return Item(question, "pass", f"{said}{hits}")


def _parallel(facts: Facts) -> Item:
    question = "Is it as parallel as its devices?"
    waiting = f"{facts.at_once} evaluations at a time on {facts.devices}"
    if facts.devices > facts.at_once:
        never = facts.devices - facts.at_once
        return Item(question, "fail", f"{waiting}: {never} never have one")
    if facts.idle_share is None:
        idle = -facts.at_once % facts.devices
        share = idle / (facts.at_once + idle)
        said = f"{waiting} leave {idle} idle in the last round; no times"
    else:
        share, said = facts.idle_share, f"{waiting}, {facts.idle_share:.0%} of the time idle"
    if share > MOST_IDLE:
        return Item(question, "fail", f"{said}: fewer devices cost less and take little longer")
    return Item(question, "pass", said)


def _pilot(facts: Facts) -> Item:
    question = "Does a pilot confirm the time of an evaluation?"
    if facts.origin == "none":
        return Item(question, "unknown", f"nothing was measured: {CALIBRATE}")
    if facts.origin != "measured":
        why = "somebody's word" if facts.origin == "assumed" else "an estimate"
        return Item(question, "fail", f"{why}, assumed until it is measured: {CALIBRATE}")
    return Item(question, *_of_the_pilot(facts))


def _of_the_pilot(facts: Facts) -> tuple[Answer, str]:
    age = "" if facts.age_days is None else f", {_ago(facts.age_days)}"
    said = f"measured on {facts.samples} seeds{age}"
    if facts.samples < LEAST_SAMPLES:
        return "fail", f"{said}: {LEAST_SAMPLES} are the least that spread"
    if facts.drift is not None:
        said += f"; {facts.drifted} took {facts.drift:.2f} x that"
        if abs(facts.drift - 1) > MOST_DRIFT:
            return "fail", f"{said}: {CALIBRATE} --again --reason WHY"
    if facts.age_days is not None and facts.age_days > MOST_AGE_DAYS and facts.drift is None:
        return "unknown", f"{said}, and nothing ran since"
    return "pass", said


def _ago(days: float) -> str:
    if days < 1 / 24:
        return "within the last hour"
    return f"{24 * days:.0f} hours ago" if days < 2 else f"{days:.0f} days ago"


def _wall(facts: Facts) -> Item:
    question = "Is the wall clock acceptable?"
    if facts.hours is None:
        return Item(question, "unknown", f"nothing was measured: {CALIBRATE}")
    needed = f"{duration(3600 * facts.hours)} must be free"
    if facts.hours_allowed is None:
        why = f"{needed}; say how long it may take: --window or --max-hours"
        return Item(question, "unknown", why)
    there = f"{needed}, {duration(3600 * facts.hours_allowed)} are there"
    return Item(question, "pass" if facts.hours <= facts.hours_allowed else "fail", there)


def _knobs(facts: Facts) -> Item:
    question = "Are the knobs shown to be alive?"
    count = len(facts.alive) + len(facts.dead) + len(facts.untried)
    if not count:
        return Item(question, "unknown", "nobody knows of any")
    alive = f"{len(facts.alive)} of {count} moved the score when checked"
    if len(facts.untried) == count:
        why = f"none was checked: {PROGRAM} check knobs with the same --objective and --set"
        return Item(question, "unknown", why)
    if facts.dead:
        return Item(question, "fail", f"{alive}; {', '.join(facts.dead)} did not")
    if facts.untried:
        return Item(question, "unknown", f"{alive}: {PROGRAM} check knobs tries the others")
    return Item(question, "pass", alive)


def _caps(facts: Facts) -> Item:
    question = "Does it fit under every cap?"
    if not facts.needs:
        return Item(question, "pass", "there is none but the tier's evaluations")
    verdict: Answer = "pass"
    if any(need.needed is None for need in facts.needs):
        verdict = "unknown"
    if any(need.needed is not None and need.needed > need.allowed for need in facts.needs):
        verdict = "fail"
    return Item(question, verdict, "; ".join(_need(need) for need in facts.needs))


def _need(need: Need) -> str:
    needed = number(need.needed, 3, "?")
    return f"{need.name}: {needed} of {need.allowed:.3g} {need.unit}".rstrip()


def _disk(facts: Facts) -> Item:
    question = "Is there room on the disk?"
    if facts.disk_needed is None or facts.disk_free is None:
        return Item(question, "unknown", "nobody can tell what is free there")
    assumed = "" if facts.disk_measured else " (assumed)"
    said = f"{in_bytes(facts.disk_needed)}{assumed} of {in_bytes(facts.disk_free)} free"
    return Item(question, "pass" if facts.disk_needed <= facts.disk_free else "fail", said)
