"""Why attempts failed, whose doing it was, and what became of those that were tried again."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from budgets.causes import TRIED_AGAIN_SINCE, Cause, Whose, cause_of, is_lost
from budgets.events import Again, Settled, Status
from budgets.frozen import Frozen
from budgets.state import RunState

Tries = list[Settled]
"""The ends of the tries at one evaluation."""


class Kind(Frozen):
    """Failures of one kind."""

    whose: Whose
    what: str
    attempts: int
    final: int  # of these: the last word on their evaluations
    example: str  # the cause of one


class TriedAgain(Frozen):
    """What became of evaluations that were tried again."""

    healthy: int
    failed: int
    owed: int


class Failures(Frozen):
    """Both rates, and all that is behind them."""

    evaluations: int  # that are over
    failed: int  # of these: by their configurations, as far as can be told
    attempts: int  # that ended other than by a person's order
    lost: int  # of these: by the infrastructure
    elsewhere: TriedAgain
    lighter: TriedAgain
    kinds: tuple[Kind, ...]

    @property
    def failure_rate(self) -> float:
        """Of evaluations: what rules and verdicts look at."""
        return self.failed / max(1, self.evaluations)

    @property
    def loss_rate(self) -> float:
        """Of attempts."""
        return self.lost / max(1, self.attempts)


def failures(state: RunState) -> Failures | None:
    """Those of the search and of its panels; None of a run that knew no second tries."""
    if not any(opened.schema_version >= TRIED_AGAIN_SINCE for opened in state.opened):
        return None
    evaluations = [
        [attempt.settled for attempt in tries if attempt.settled is not None]
        for batch in state.batches()
        for tries in batch.tries.values()
    ]
    ends = [end for tries in evaluations for end in tries if end.status is not Status.CANCELLED]
    final = [end for end in ends if end.final]
    return Failures(
        evaluations=len(final),
        failed=sum(end.status is not Status.OK for end in final),
        attempts=len(ends),
        lost=sum(is_lost(end.status, end.cause) for end in ends),
        elsewhere=_tried_again(evaluations, "elsewhere"),
        lighter=_tried_again(evaluations, "lighter"),
        kinds=tuple(_kinds(ends)),
    )


def _tried_again(evaluations: list[Tries], again: Again) -> TriedAgain:
    concerned = [tries for tries in evaluations if any(end.again == again for end in tries)]
    results = [tries[-1].status for tries in concerned if tries[-1].final]
    healthy = results.count(Status.OK)
    return TriedAgain(
        healthy=healthy, failed=len(results) - healthy, owed=len(concerned) - len(results)
    )


def by_cause(ends: Iterable[Settled]) -> list[tuple[Cause, Tries]]:
    """Failures alike together, the most frequent first; what a person ended is none."""
    found: dict[Cause, Tries] = defaultdict(list)
    for end in ends:
        cause = cause_of(end.status, end.cause)
        if cause is not None and end.status is not Status.CANCELLED:
            found[cause].append(end)
    return sorted(found.items(), key=lambda one: -len(one[1]))


def _kinds(ends: Tries) -> Iterator[Kind]:
    for cause, own in by_cause(ends):
        yield Kind(
            whose=cause.whose,
            what=cause.what,
            attempts=len(own),
            final=sum(end.final for end in own),
            example=own[0].cause,
        )
