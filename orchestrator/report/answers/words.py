"""Words that several answers have in common."""

from budgets.state import RunState
from budgets.statistics.comparison import better
from budgets.verdict.luck import luck, promise


def sentence_case(text: str) -> str:
    """With a capital at the beginning."""
    return text[:1].upper() + text[1:]


def luck_in_words(seemed: float | None, by_luck: float | None) -> str:
    """What the best score of a search is worth, beside what as many baselines would show."""
    if seemed is None:
        return ""
    said = f"The best single score of the search seemed {better(seemed)} than the baseline"
    if by_luck is None:
        return f"{said}; nobody measured the noise, so that says nothing."
    return (
        f"{said}; the luckiest of as many tries with nothing tuned would seem {better(by_luck)}. "
        "That is why only fresh seeds count."
    )


def so_far(state: RunState) -> str:
    """What the scores of a search seem to say before anything is compared; empty: there are none.

    Only where lower scores are of full evaluations.
    """
    return luck_in_words(promise(state), luck(state))
