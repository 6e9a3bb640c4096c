"""Everything a verdict owes its reader, as far as it is known."""

from typing import TYPE_CHECKING, get_args

import pytest

from budgets.events import Grade, NoGo, Status
from budgets.verdict import decide
from budgets.verdict import NAMES, TITLES, Findings, findings, is_settled, title

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.budgets.conftest import MakePlan, MakeStory, Story

    Tell = Callable[..., Story]

NAN = Status.NAN


def found_in(story: "Story") -> Findings:
    found = findings(story.state)
    assert found is not None
    return found


def decided(story: "Story") -> Findings:
    fired, decision = decide(story.state)
    story.say(*fired, decision)
    return found_in(story)


def test_a_run_that_is_not_compared_has_no_findings(make_story: "MakeStory") -> None:
    assert findings(make_story().state) is None


def test_every_grade_and_no_go_has_a_title() -> None:
    assert set(TITLES) == set(get_args(Grade))
    assert set(NAMES) == set(get_args(NoGo))
    assert title("go", None) == "Go; persistence not shown"
    assert title("no_go", "dead_space") == "No-Go, dead space"


def test_before_the_search_nothing_is_known(tell: "Tell") -> None:
    found = found_in(tell(generations=()))
    assert found.model_dump(exclude_defaults=True) == {
        **dict.fromkeys(("grade", "no_go", "arm", "gain", "incumbent", "rung", "seemed")),
        **dict.fromkeys(("finalists", "controls", "conditions"), ()),
        "asked": 0.01,
        "rung_label": "4 x FLOPs",
        "luck": 0.0,
    }


def test_nothing_is_settled_before_both_panels_are(tell: "Tell") -> None:
    assert not is_settled(tell(finalists={"average": 0.98}).state)
    assert is_settled(tell(winner=8 * (0.98,)).state)


def test_each_panel_adds_what_it_tells(tell: "Tell") -> None:
    control = 5 * (0.97,)
    searched = found_in(tell(control=control))
    assert [one.name for one in searched.controls] == ["synapses off"]
    assert searched.seemed == pytest.approx(0.02)
    picked = found_in(tell(control=control, finalists={"average": 0.98, "mean": 0.99}))
    assert [(one.name, one.is_winner) for one in picked.finalists] == [
        ("average", True),
        ("mean", False),
    ]
    assert picked.gain is None
    judged = found_in(tell(control=control, winner=8 * (0.98,), equal=5 * (0.96,)))
    assert judged.gain is not None
    assert [c.rule for c in judged.conditions] == ["signal", "stability", "persistence", "sanity"]
    assert len(judged.controls) == 2
    assert (judged.rung, judged.grade) == (None, None)
    longer = found_in(tell(winner=8 * (0.98,), rung=((1.0, 1.0), (0.98, 0.98))))
    assert longer.rung is not None
    assert longer.conditions[-1].rule == "rung"


@pytest.mark.parametrize("scores", [(0.1, 0.2, -0.3), (0.9, -1.0, 0.2)])
def test_nothing_is_told_relative_to_a_baseline_that_cannot_be_told_from_0(
    scores: tuple[float, ...], tell: "Tell", make_confirmed_plan: "MakePlan"
) -> None:
    measured = make_confirmed_plan().calibration
    assert measured is not None
    around = zip(measured.samples, scores, strict=True)
    samples = tuple(one.model_copy(update={"score": score}) for one, score in around)
    plan = make_confirmed_plan(calibration=measured.model_copy(update={"samples": samples}))
    found = found_in(tell(plan))
    assert (found.seemed, found.luck) == (None, None)
    assert found_in(tell(make_confirmed_plan())).luck is not None


def test_a_decision_names_what_is_recommended(tell: "Tell") -> None:
    go = decided(tell(winner=8 * (0.98,)))
    assert (go.grade, go.no_go, go.arm) == ("go", None, "average")
    no_go = decided(tell(winner=8 * (1.1,)))
    assert (no_go.grade, no_go.no_go, no_go.arm) == ("no_go", "below_noise", None)


def test_where_all_finalists_failed_nobody_goes_on(tell: "Tell") -> None:
    found = decided(tell(finalists={"average": (NAN, NAN, NAN), "mean": (NAN, NAN, NAN)}))
    assert not any(one.is_winner for one in found.finalists)
    assert (found.gain, found.conditions, found.arm) == (None, (), None)


def test_findings_survive_json(tell: "Tell") -> None:
    found = decided(tell(control=5 * (0.97,), winner=8 * (0.98,), equal=5 * (0.96,)))
    assert Findings.model_validate_json(found.model_dump_json()) == found
