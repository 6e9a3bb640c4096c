"""Both rates, what is behind them, and what became of what was tried again."""

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from budgets.events import Status
from budgets.report.failures import TriedAgain, failures
from budgets.report.markdown import to_markdown
from budgets.report.model import budget_report

if TYPE_CHECKING:
    from tests.budgets.conftest import MakeStory, Story

KILLED = "killed by signal 9 SIGKILL"


def stormy(story: "Story") -> "Story":
    """Of four evaluations two fail; of eleven attempts two are lost."""
    story.ask()
    story.evaluate(0, Status.ERROR, cause=KILLED, again="elsewhere", charged_ms=3600)
    story.evaluate(0, 1.0)
    story.evaluate(1, Status.ERROR, cause=KILLED, again="elsewhere", charged_ms=3600)
    story.evaluate(1, Status.ERROR, cause="killed by signal 11 SIGSEGV")
    story.evaluate(2, Status.LOST, cause="CUDA error: uncorrectable ECC error encountered")
    story.evaluate(2, Status.LOST, cause="no sign of life")
    story.evaluate(2, Status.CANCELLED)
    story.evaluate(2, Status.OOM, cause="CUDA out of memory", again="lighter")
    story.evaluate(2, Status.OOM, cause="CUDA out of memory", again="lighter")
    story.evaluate(2, 2.0)
    story.evaluate(3, Status.NAN, cause="a | b")
    return story


def test_only_what_is_final_counts_against_a_configuration(story: "Story") -> None:
    found = failures(stormy(story).state)
    assert found is not None
    assert (found.failed, found.evaluations, found.failure_rate) == (2, 4, 0.5)


def test_losses_are_counted_against_attempts_and_without_what_a_person_cancelled(
    story: "Story",
) -> None:
    found = failures(stormy(story).state)
    assert found is not None
    assert (found.lost, found.attempts, found.loss_rate) == (2, 10, 0.2)


def test_what_was_tried_again_is_told_with_what_became_of_it(story: "Story") -> None:
    found = failures(stormy(story).state)
    assert found is not None
    assert found.elsewhere == TriedAgain(healthy=1, failed=1, owed=0)
    assert found.lighter == TriedAgain(healthy=1, failed=0, owed=0)


def test_what_is_still_to_be_tried_again_is_owed(story: "Story") -> None:
    story.ask()
    story.evaluate(0, Status.OOM, again="lighter")
    found = failures(story.state)
    assert found is not None
    assert found.lighter == TriedAgain(healthy=0, failed=0, owed=1)
    story.reserve(0)
    assert failures(story.state) == found


def test_failures_are_grouped_by_cause_the_most_frequent_first(story: "Story") -> None:
    found = failures(stormy(story).state)
    assert found is not None
    assert [(kind.whose, kind.what, kind.attempts, kind.final) for kind in found.kinds] == [
        ("ambiguous", "killed by a signal", 3, 1),
        ("configuration", "out of memory", 2, 0),
        ("infrastructure", "the device failed", 1, 0),
        ("infrastructure", "the worker, its node or the orchestrator died", 1, 0),
        ("configuration", "no score that can be compared", 1, 1),
    ]


def test_the_report_shows_both_rates_and_the_causes(story: "Story") -> None:
    text = to_markdown(budget_report(stormy(story).state))
    assert (
        "2 of 4 evaluations failed by their configuration (50.0%), 2 of 10 attempts by the "
        "infrastructure (20.0%)."
    ) in text
    assert "Tried again elsewhere: 1 became healthy, 1 failed, 0 are owed." in text
    assert "Tried again lighter: 1 became healthy, 0 failed, 0 are owed." in text
    assert "| ambiguous | killed by a signal | 3 | 1 | killed by signal 9 SIGKILL |" in text
    assert r"| configuration | no score that can be compared | 1 | 1 | a \| b |" in text


def test_what_found_nothing_to_evaluate_is_nobodys_loss_and_nobodys_failure(
    story: "Story",
) -> None:
    story.ask()
    story.evaluate(0, Status.LOST, cause="SetupError: no data")
    story.evaluate(0, Status.LOST, cause="its node died")
    story.evaluate(0, 1.0)
    found = failures(story.state)
    assert found is not None
    assert (found.failed, found.evaluations, found.lost, found.attempts) == (0, 1, 1, 3)
    (setup, _) = found.kinds
    assert (setup.whose, setup.what, setup.attempts) == ("setup", "nothing can be evaluated", 1)
    assert (setup.final, setup.example) == (0, "SetupError: no data")
    assert "| setup | nothing can be evaluated | 1 | 0 | SetupError: no data |" in to_markdown(
        budget_report(story.state)
    )


def test_what_was_tried_again_was_not_lost(story: "Story") -> None:
    report = budget_report(stormy(story).state)
    assert report.lost_attempts == 3
    assert report.lost_device_hours == pytest.approx(3 * 2.0 / 3600)


def test_a_run_without_failures_shows_that_there_are_none(story: "Story") -> None:
    story.score(1.0, 2.0, 3.0, 4.0)
    text = to_markdown(budget_report(story.state))
    assert "0 of 4 evaluations failed by their configuration (0.0%)" in text
    assert "0 of 4 attempts by the infrastructure (0.0%)." in text
    assert "## Failures" not in text
    assert "Tried again" not in text


def test_before_anything_ended_there_is_no_rate_to_show(story: "Story") -> None:
    assert "by their configuration" not in to_markdown(budget_report(story.state))


def test_the_search_of_a_generation_with_second_tries_learns_from_their_results_alone(
    story: "Story",
) -> None:
    stormy(story)
    assert story.current.scores() == [1.0, None, 2.0, None]
    assert [result.attempt for result in story.current.results()] == [2, 2, 6, 1]
    assert story.state.accounts.evaluations == 4


def test_a_run_of_older_sessions_is_reported_as_it_was(make_story: "MakeStory") -> None:
    story = make_story()
    story.score(1.0, Status.NAN, 3.0, 4.0)
    story.state.opened[:] = [replace(one, schema_version=2) for one in story.state.opened]
    assert failures(story.state) is None
    assert "by their configuration" not in to_markdown(budget_report(story.state))
