"""A search without a verdict: planned, running, paused, stopped, or over without a comparison."""

from collections.abc import Iterator

from budgets.course import next_step
from budgets.markdown import duration
from budgets.plain import one_line
from budgets.rules.table import HOLDING_UP
from budgets.rules.triggers import Trigger, judge
from orchestrator.report.answers.asked import BEGAN, Asked, command
from orchestrator.report.answers.cost import cost
from orchestrator.report.answers.words import sentence_case, so_far
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
        luck="",
        found="Nothing yet.",
        sure="There is nothing to be sure of yet.",
        cost=cost(asked),
        next=f"Repeat {BEGAN}.",
        commands=asked.beginning,
        mood="open",
    )


def running(asked: Asked) -> Answer:
    """It goes on, or was killed: a ledger does not tell which."""
    left = asked.report.remaining_hours
    to_come = f" About {duration(3600 * left)} of evaluations are still to run." if left else ""
    return Answer(
        title="Running",
        sentence=f"{asked.report.sentence.removeprefix('Running: ').capitalize()}{to_come}",
        meaning="as of its last record: whether a process has it at this moment, status tells",
        luck=so_far(asked.state),
        found=_nothing_yet(asked),
        sure=_sure_so_far(asked),
        cost=cost(asked),
        next=(
            f"Let it go on, and look on. If no process has it any more, repeat {BEGAN}: nothing "
            "paid is lost."
        ),
        commands=(f"{command('status', asked.run)} --watch", *asked.beginning),
        mood="open",
    )


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


def _sure_so_far(asked: Asked) -> str:
    state = asked.state
    if not asked.searches:
        return "Not at all yet: an interval that is watched while it grows is none."
    if state.plan.confirmation is None:
        return f"{NO_EVIDENCE} And none is planned: see Next once it is over."
    if next_step(state) in ("finalists", "winner", "rung"):
        return (
            "Not at all yet: its comparison with the baseline on fresh seeds is under way, and is "
            "judged when it is complete."
        )
    return f"{NO_EVIDENCE} Its winner meets the baseline on fresh seeds when the search is over."


def paused(asked: Asked) -> Answer:
    """A rule holds it up until a person has looked."""
    triggers = judge(asked.state).triggers
    return _held_up(asked, "Paused", triggers)


def stopped(asked: Asked) -> Answer:
    """A rule has ended it, and there is no verdict."""
    triggers = judge(asked.state).triggers
    return _held_up(asked, "Stopped", triggers)


def _held_up(asked: Asked, what: str, triggers: tuple[Trigger, ...]) -> Answer:
    said, lines = _way_on(asked, triggers)
    rules = list(dict.fromkeys(trigger.rule for trigger in triggers))
    by = f" by rule{'s' * (len(rules) > 1)} {' and '.join(rules)}" if rules else ""
    why = "; ".join(trigger.evidence for trigger in triggers) or asked.report.sentence
    return Answer(
        title=f"{what}{by}",
        sentence=f"{sentence_case(one_line(why, 600))}.",
        meaning="; ".join([_MEANING[what], *_rules(triggers)]),
        luck=so_far(asked.state),
        found=_nothing_yet(asked).replace("Not known yet", "Not known"),
        sure=NO_EVIDENCE.replace(" yet", "") if asked.searches else "Not at all: it is not over.",
        cost=cost(asked),
        next=said,
        commands=lines,
        mood="trouble",
    )


def _rules(triggers: tuple[Trigger, ...]) -> Iterator[str]:
    """What each rule looks at."""
    about = {rule.name: rule.about for rule in HOLDING_UP}
    for name in dict.fromkeys(trigger.rule for trigger in triggers):
        yield f"rule {name} looks at {about[name].partition(';')[0]}"


_MEANING = {
    "Paused": "nothing more starts until a person has looked; what is paid is kept",
    "Stopped": "nothing more starts; what is paid is kept",
}


def _way_on(asked: Asked, triggers: tuple[Trigger, ...]) -> tuple[str, tuple[str, ...]]:
    """What to do about it, and the commands."""
    budget = next((trigger for trigger in triggers if trigger.rule == "budget"), None)
    if budget is not None:
        said = f"Allow more, for a reason that goes on record; then repeat {BEGAN}."
        return said, (asked.amending(budget), *asked.beginning)
    rules = list(dict.fromkeys(trigger.rule for trigger in triggers))
    look = command("explain", asked.run)
    if any(rule in FOR_GOOD for rule in rules):
        said = "This run cannot go on: look into Failures, mend what leads there, begin another."
        return said, (look,)
    if not all(trigger.overridable for trigger in triggers):
        return f"Mend what is named above, then repeat {BEGAN}.", (look, *asked.beginning)
    options = " ".join(f"--override {rule}" for rule in rules)
    return (
        f"Look into it, in Failures below and by explain. To go on all the same, repeat {BEGAN} "
        f"with {options} and a --reason."
    ), (look, *asked.overriding(rules))


def over(asked: Asked) -> Answer:
    """Everything is settled, and nothing was compared with the baseline."""
    is_min = asked.state.plan.tier == "min"
    said, line = _compared_by(asked)
    healthy = asked.healthy
    works = f"It works: {healthy} of {asked.settled} evaluations are healthy."
    return Answer(
        title="Finished, no verdict",
        sentence=asked.report.sentence,
        meaning=(
            "tier min tries out whether everything works; it is too small to find anything"
            if is_min
            else "no comparison with the baseline on fresh seeds was planned"
        ),
        luck=so_far(asked.state),
        found=f"Not asked. {works}" if healthy else "Nothing: every evaluation failed.",
        sure=(
            "Not at all: nothing was compared with the baseline on fresh seeds, and a search's own "
            "scores are no evidence."
        ),
        cost=cost(asked),
        next=said,
        commands=(line,),
        mood="open" if healthy else "trouble",
    )


def _compared_by(asked: Asked) -> tuple[str, str]:
    plan = asked.state.plan
    if plan.tier == "min" and plan.phase == "phase1":
        said = "Search with tier target, which ends in a verdict. What that takes, plan says first."
        return said, asked.of_objective("phase1", "--tier", "target")
    words = ("best", asked.run, "--train", "--times", "1", "--seeds", "8", "--compare")
    said = "Train what it stands for and the baseline on the same fresh seeds, and compare them."
    return said, command(*words)
