"""A run that is not over: planned, running, paused or stopped."""

from collections.abc import Iterator
from datetime import timedelta

from budgets.course import next_step
from budgets.plain import command, one_line
from budgets.report.sentence import corrected, is_baseline_broken
from budgets.rules.table import HOLDING_UP, Reading
from budgets.rules.triggers import ruling_of
from budgets.verdict.luck import promise
from budgets.words import about, sentence_case
from orchestrator.report.answers.afterwards import After
from orchestrator.report.answers.asked import BEGAN, Asked
from orchestrator.report.answers.cost import cost
from orchestrator.report.model import Answer

FOR_GOOD = ("too_few_healthy", "baseline_failed")
"""Rules about what is paid for and would be the same again."""

NO_EVIDENCE = "Not at all yet: a search's own scores are no evidence of a gain."


def planned(asked: Asked) -> Answer:
    """Nothing has begun: there is a plan, and nobody opened the run."""
    return Answer(
        title="Planned, not begun",
        sentence=f"The terms are on record; none of {asked.planned} evaluations has started.",
        meaning="",
        found="Nothing yet.",
        sure="There is nothing to be sure of yet.",
        cost=cost(asked),
        next=f"Repeat {BEGAN}.",
        commands=asked.beginning,
        mood="open",
    )


def running(asked: Asked) -> Answer:
    """It goes on, or was killed: a ledger does not tell which."""
    return Answer(
        title="In progress",
        sentence=sentence_case(asked.report.sentence) + _to_come(asked),
        meaning=_heard(asked),
        luck=_luckiest(asked),
        found=_nothing_yet(asked),
        sure=_sure_so_far(asked),
        cost=cost(asked),
        next="Keep it running, and watch it.",
        commands=(f"{command('status', asked.run)} --watch", *asked.beginning),
        otherwise=(
            "If it was interrupted, this resumes it, and nothing paid is lost. Safe: it refuses to "
            "start while another process has the run."
            if asked.beginning
            else ""
        ),
        mood="open",
    )


def interrupted(asked: Asked) -> Answer:
    """It may go on, and no process has it."""
    return Answer(
        title="Interrupted",
        sentence=f"{sentence_case(asked.report.sentence)} No process has it now.",
        meaning="",
        luck=_luckiest(asked),
        found=_nothing_yet(asked),
        sure=_sure_so_far(asked),
        cost=cost(asked),
        next=f"Repeat {BEGAN}: it goes on where it stopped, and nothing paid is lost.",
        commands=asked.beginning,
        mood="trouble",
    )


def _to_come(asked: Asked) -> str:
    """How long, and until when."""
    left, compared = asked.report.remaining_hours, ""
    if not left:
        return ""
    if asked.state.plan.confirmation is not None:
        compared = ", the comparison on fresh seeds included"
    said = f" About {about(3600 * left)} of wall clock are left{compared}"
    if asked.last is None:
        return f"{said}."
    end = asked.last + timedelta(hours=left, seconds=30)  # to the nearest minute
    when = f"{end:%H:%M}" if end.date() == asked.last.date() else f"{end:%Y-%m-%d %H:%M}"
    return f"{said}: until about {when} UTC if it goes on like this."


def _heard(asked: Asked) -> str:
    when = "" if asked.last is None else f" {asked.last:%H:%M:%S} UTC"
    return (
        f"As of{when or ' its last record'}. It may have been interrupted since: whether a process "
        "has it at this moment, status tells."
    )


def _luckiest(asked: Asked) -> str:
    """Why nobody should look at the best score; empty before there is one."""
    if promise(asked.state) is None:
        return ""
    return "The best of many noisy scores is always a lucky one. Only fresh seeds will tell."


def _nothing_yet(asked: Asked) -> str:
    if not asked.settled:
        return "Nothing yet: no evaluation has ended."
    if not asked.healthy:
        return f"Nothing: none of {asked.settled} evaluations has a score."
    if not asked.searches:
        return (
            f"Not known yet: {asked.settled} of {asked.planned} evaluations are settled, and "
            "nothing is judged before the last one is."
        )
    return "Not known yet: what the search found so far has still to be compared with the baseline."


def _none_healthy(asked: Asked) -> str:
    """`all 4 evaluations that ran failed (16 planned)`."""
    ran = "1 evaluation that ran" if asked.settled == 1 else f"{asked.settled} evaluations that ran"
    return f"{'the' if asked.settled == 1 else 'all'} {ran} failed ({asked.planned} planned)"


def _sure_so_far(asked: Asked) -> str:
    state = asked.state
    if not asked.searches:
        return "Not at all yet: intervals are not valid while they are looked at again and again."
    if state.plan.confirmation is None:
        return f"{NO_EVIDENCE} And none is planned: see Next once it is over."
    if next_step(state) in ("finalists", "winner", "rung"):
        return (
            "Not at all yet: its comparison with the baseline on fresh seeds is under way, and is "
            "judged when it is complete."
        )
    return (
        f"{NO_EVIDENCE} Its winner meets the baseline on fresh seeds when the search is over; the "
        "baseline's own evaluations there fill slots that the search leaves idle."
    )


def held_up(asked: Asked) -> Answer:
    """Paused by a rule until a person has looked; or stopped by one, and there is no verdict."""
    what = "Paused" if asked.report.decision == "pause" else "Stopped"
    triggers = ruling_of(asked.state).triggers
    way = _way_on(asked, triggers)
    rules = list(dict.fromkeys(trigger.rule for trigger in triggers))
    by = f" by rule{'s' * (len(rules) > 1)} {' and '.join(rules)}" if rules else ""
    why = "; ".join(trigger.evidence for trigger in triggers) or asked.report.sentence
    why = f"{sentence_case(one_line(why, 600))}."
    is_all = bool(asked.settled) and not asked.healthy
    return Answer(
        title=f"{what}{by}",
        sentence=f"{sentence_case(_none_healthy(asked))}{_example(asked)}." if is_all else why,
        meaning=_means(what, triggers, is_all=is_all),
        found=_nothing_yet(asked).replace("Not known yet", "Not known"),
        sure=_sure_of_what_is_held_up(asked),
        cost=cost(asked),
        next=way.said,
        commands=way.commands,
        otherwise=way.otherwise,
        mood="trouble",
    )


def _means(what: str, triggers: tuple[Reading, ...], *, is_all: bool) -> str:
    """What that state is and what the rules look at; `is_all`: with the numbers that they saw."""
    said = f"{'; '.join([_MEANING[what], *_rules(triggers)])}."
    seen = "; ".join(trigger.evidence.partition(": ")[0] for trigger in triggers)
    return f"{said} {sentence_case(one_line(seen, 600))}." if is_all and seen else said


def _example(asked: Asked) -> str:
    """Why the last of them did."""
    failed = [result for batch in asked.state.batches() for result in batch.failed]
    return f", for example: {one_line(failed[-1].cause)}" if failed and failed[-1].cause else ""


def _sure_of_what_is_held_up(asked: Asked) -> str:
    if not asked.healthy:
        return "There is nothing to be sure of: no evaluation has a score."
    return NO_EVIDENCE.replace(" yet", "") if asked.searches else "Not at all: it is not over."


def _rules(triggers: tuple[Reading, ...]) -> Iterator[str]:
    """What each rule looks at."""
    about_each = {rule.name: rule.about for rule in HOLDING_UP}
    for name in dict.fromkeys(trigger.rule for trigger in triggers):
        yield f"rule {name} looks at {_IN_SHORT.get(name) or about_each[name].partition(';')[0]}"


_IN_SHORT = {"crash_rate": "how many evaluations of a generation fail"}

_MEANING = {
    "Paused": "Nothing more starts until a person has looked; what is paid is kept",
    "Stopped": "Nothing more starts; what is paid is kept",
}


def _way_on(asked: Asked, triggers: tuple[Reading, ...]) -> After:
    """What to do about it, and the commands."""
    budget = next((trigger for trigger in triggers if trigger.rule == "budget"), None)
    if budget is not None:
        said = "Allow more, for a reason that goes on record, if it is worth more:"
        return After(said, (asked.amending(budget), *asked.beginning), "Then take it up:")
    rules = list(dict.fromkeys(trigger.rule for trigger in triggers))
    look, anew = command("explain", asked.run), corrected(asked.state, ruling_of(asked.state))
    if any(rule in FOR_GOOD for rule in rules):
        said = "This run cannot go on: look into Failures, fix what leads there, start another."
        return After(said, (look,))
    if anew and is_baseline_broken(asked.state):
        return After(f"Find out why, under Failures. {anew}.", (look, *asked.beginning))
    if not all(trigger.overridable for trigger in triggers):
        said = "Mend what is named above."
        return After(said, (look, *asked.beginning), "Then take it up:")
    return After(
        "Find out why, under Failures and with:",
        (look, *asked.overriding(rules)),
        f"{anew}. If it does no harm, go on (the reason goes on record):"
        if anew
        else "When it is fixed, or if it does no harm, go on (the reason goes on record):",
    )
