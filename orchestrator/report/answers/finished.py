"""A search that is over and was not compared with the baseline."""

from budgets.plain import command, one_line
from budgets.report.sentence import same_scores
from budgets.tiers import TIERS
from budgets.words import about, uncapitalized
from orchestrator.records.cautions import cautions
from orchestrator.report.answers.afterwards import After, wider
from orchestrator.report.answers.asked import Asked
from orchestrator.report.answers.cost import cost
from orchestrator.report.answers.words import largest_moves
from orchestrator.report.model import Answer, Mood


def over(asked: Asked) -> Answer:
    """Everything is settled, and nothing was compared with the baseline."""
    is_smoke, healthy, count = asked.is_smoke_test, asked.healthy, asked.settled
    way = _compared_by(asked)
    if healthy and not same_scores(asked.state):
        way = way if is_smoke else wider(asked, way)
    return Answer(
        title=_title_of_what_is_over(asked),
        sentence=_settled(asked),
        but=uncapitalized(" ".join(cautions(asked.state))) if healthy else "",
        meaning=(
            "A smoke test (tier min) tries out whether everything works; it is too small to find "
            "anything."
            if is_smoke
            else "No comparison with the baseline on fresh seeds was planned."
        ),
        found=_works(asked) if healthy else f"Nothing: all {count} evaluations failed.",
        sure=(
            "Of better settings not at all: nothing was compared with the baseline on fresh seeds, "
            "and a search's own scores are no evidence."
        ),
        cost=cost(asked),
        next=way.said,
        commands=way.commands,
        otherwise=way.otherwise,
        mood=_mood_of_what_is_over(asked),
    )


def _title_of_what_is_over(asked: Asked) -> str:
    if not asked.is_smoke_test:
        return "Finished, no verdict"
    if same_scores(asked.state):
        return "All scores are the same"
    return "Smoke test failed" if not asked.healthy else f"Smoke test {_passed(asked)}"


def _passed(asked: Asked) -> str:
    return "passed" if not asked.failed else f"over, {asked.failed} of {asked.settled} failed"


def _mood_of_what_is_over(asked: Asked) -> Mood:
    if not asked.healthy:
        return "trouble"
    if same_scores(asked.state):
        return "caution"
    return "good" if asked.is_smoke_test and not asked.failed else "open"


def _settled(asked: Asked) -> str:
    """How many ran, and why no more of them."""
    count, plan = asked.settled, asked.state.plan
    scored = f"All {count} evaluations gave a score."
    if asked.failed:
        scored = (
            f"{count - asked.failed} of {count} evaluations gave a score, {asked.failed} failed."
        )
    ended = asked.state.ended
    if ended is not None:
        return f"{scored} Rule {ended.rule} ended the search: {one_line(ended.evidence)}."
    pays = next((reason for reason in plan.reasons if "pays for" in reason), None)
    if pays is None:
        return scored
    each = plan.resolved.per_generation
    return f"{scored} It stopped at {count} because {pays} (of {each} evaluations each)."


def _works(asked: Asked) -> str:
    if same := same_scores(asked.state):
        return same
    if asked.is_smoke_test:
        return "Everything works. Whether better settings exist is not what a smoke test asks."
    moves = largest_moves(asked.state)
    moved = f" Largest moves: {moves}." if moves else ""
    return f"Knobs that are not compared with the baseline yet.{moved}"


def _compared_by(asked: Asked) -> After:
    if same_scores(asked.state):
        lines = (asked.of_objective("dry-run"), asked.of_objective("space", "check"))
        return After("See what an evaluation is given, and whether a knob moves the score.", lines)
    if asked.is_smoke_test:
        count = TIERS["phase1", "target"].evaluations
        said = f"Search in earnest: tier target has {count} evaluations and ends in a verdict."
        lines = (
            asked.of_objective("phase1", "--tier", "target"),
            asked.of_objective("plan", "phase1"),
        )
        return After(said, lines, "To see first what that takes:")
    words = ("best", asked.run, "--train", "--times", "1", "--seeds", "8", "--compare")
    seconds = asked.report.eval_seconds
    price = "" if seconds is None else f", about {about(16 * seconds)} of device time in all"
    said = (
        "Train the recommendation and the baseline on the same 8 fresh seeds, which "
        f"compares them (16 evaluations{price})."
    )
    return After(said, (command(*words),))
