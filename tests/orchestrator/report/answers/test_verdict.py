"""What a verdict leaves open, and the one thing to do after it."""

from pathlib import Path
from typing import Any

import pytest

from budgets.events import Concluded, Status
from budgets.report.model import budget_report
from budgets.terms import Rung, Varied
from budgets.verdict.decision import decide
from orchestrator.report.answer import answer
from orchestrator.report.markdown import markdown
from orchestrator.report.model import Answer
from orchestrator.report.page import content
from tests.budgets.conftest import Story, confirmation, told_of
from tests.orchestrator.report.conftest import in_two_knobs, judged, reported

USUAL = Path("artifacts/cmaes/phase1/judged")
GAIN = (0.98, 0.978, 0.982, 0.979, 0.981, 0.98, 0.98, 0.98)
NOISE = (0.02, -0.02, 0.015, -0.015, 0.01, -0.01, 0.0, 0.0)
AROUND = tuple(0.995 + noise for noise in NOISE)
KEPT, HALF_LOST = ((1.0, 1.0), (0.98, 0.98)), ((1.0, 1.0), (0.995, 0.994))
UNSURE = ((1.0, 1.0), (0.96, 0.99))
FAILED = ((1.0, 1.0), (Status.NAN, Status.NAN))


def asked(story: Story) -> Answer:
    return answer(story.state, budget_report(story.state), USUAL)


def test_a_gain_that_is_not_kept_is_cautioned_and_sent_to_more_training() -> None:
    found = asked(judged(winner=GAIN, rung=HALF_LOST))
    assert found.title == "Go; persistence not shown"
    assert found.but.startswith("with 4 x FLOPs only 27.5% of the gain is left, on 2 seeds.")
    assert "kept" not in found.sentence
    assert found.next.startswith("Train it and the baseline 4 times as long")
    assert "--train --seeds 8 --compare" in found.commands[0]
    assert found.otherwise.startswith("Or ")


def test_where_the_training_has_a_setting_the_search_is_repeated_with_more_of_it() -> None:
    longer = Varied(label="4 x FLOPs", settings={"target_flops": 1.2e11}, length=4.0)
    settings = {"target_flops": 3e10, "n_layer": 2}
    plan = in_two_knobs(
        objective={"name": "nanochat", "settings": settings},
        confirmation=confirmation(rung=Rung(factor=4.0, seeds=2, varied=longer)),
    )
    story = told_of(plan, winner=GAIN, rung=HALF_LOST)
    fired, verdict = decide(story.state)
    story.say(*fired, verdict, Concluded(reason=verdict.evidence))
    found = asked(story)
    assert found.next.startswith("Search again with target_flops 1.2e+11, 4 times the training")
    assert "phase1 --tier target --run-id judged-x4 " in found.commands[0]
    assert "--set target_flops=120000000000.0" in found.commands[0]


def test_a_gain_that_was_not_tried_with_more_training_is_cautioned() -> None:
    found = asked(judged(winner=GAIN))
    assert found.but.startswith("it was not tried with more training")


def test_a_go_that_persists_and_beats_its_controls_has_no_but() -> None:
    found = asked(judged(winner=GAIN, rung=KEPT, control=5 * (1.02,), equal=5 * (1.02,)))
    assert found.title == "Go that persists"
    assert found.but == ""


def test_a_go_whose_rung_has_too_few_seeds_to_tell_is_sent_to_more_seeds_there() -> None:
    found = asked(judged(winner=GAIN, rung=UNSURE, control=5 * (1.02,), equal=5 * (1.02,)))
    assert found.title == "Go; persistence not shown"
    assert "--train --seeds 8 --compare" in found.commands[0]
    assert found.mood == "caution"
    assert found.but == (
        "that it stays with 4 x FLOPs rests on 2 seeds: -45.2% to +50.2% (99% sure of each end), "
        "which may be chance."
    )


def test_what_was_found_names_the_score_its_direction_both_means_and_the_moves() -> None:
    found = asked(judged(winner=GAIN, rung=KEPT)).found
    assert "Score (lower is better): 0.98 against the baseline's 1." in found
    assert "Largest moves: x0 0 to -0.2" in found


def test_nothing_found_names_no_moves() -> None:
    found = asked(judged(generations=3 * ((1.0, 1.2, 1.1, 1.3),), winner=AROUND))
    assert found.found == "No. Nothing is recommended: the baseline stays."


def test_a_dead_space_is_sent_to_a_check_or_to_more_seeds() -> None:
    found = asked(judged(generations=3 * ((1.0, 1.002, 1.001, 1.003),), winner=AROUND))
    assert found.commands[0].startswith("python -m orchestrator space check")
    assert "--confirm-seeds 24" in found.commands[1]
    assert found.otherwise.startswith("Or repeat it with --confirm-seeds 24")


@pytest.mark.parametrize("outcomes", [{"rung": KEPT}, {"rung": HALF_LOST}])
def test_no_command_has_anything_left_out(outcomes: dict[str, Any]) -> None:
    found = asked(judged(winner=GAIN, **outcomes))
    assert all("..." not in line for line in found.commands)
    assert len(found.commands) <= 2


def test_the_page_and_markdown_say_the_caution_in_words_and_by_a_sign() -> None:
    report = reported(judged(winner=GAIN, rung=HALF_LOST))
    page = content(report)
    (but,) = [line for line in page.splitlines() if 'class="but"' in line]
    assert "<b>But</b> with 4 x FLOPs only" in but
    assert "\n**But** with 4 x FLOPs only" in markdown(report, ())
    assert page.index(report.answer.sentence.replace("'", "&#39;")) < page.index(but)


def test_the_page_says_what_the_second_command_is_for_between_the_two() -> None:
    report = reported(judged(winner=GAIN, rung=KEPT))
    text = markdown(report, ())
    first, second = report.answer.commands
    assert text.index(first) < text.index(report.answer.otherwise[:20]) < text.index(second)
