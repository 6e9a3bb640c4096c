"""A verdict that can be understood without the code."""

from typing import TYPE_CHECKING, Any

import pytest

from budgets.blocks import Block, Items, markdown
from budgets.events import Status
from budgets.plan import Calibration
from budgets.stats import Gain, gain
from budgets.verdict.decision import decide
from budgets.verdict.findings import Findings, findings
from budgets.verdict.findings_text import bar, gain_lines, judged

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.budgets.conftest import MakePlan, Story

    Tell = Callable[..., Story]

NAN = Status.NAN
GAIN = (0.98, 0.978, 0.982, 0.979, 0.981, 0.98, 0.98, 0.98)
EQUAL = "synapses off at equal seconds (1.5 x FLOPs)"


def blocks_of(found: Findings) -> list[Block]:
    """What a page says of them."""
    return [Items(list(gain_lines(found))), *judged(found)]


def lines_of(story: "Story", *, is_decided: bool = True) -> list[str]:
    if is_decided:
        fired, decided = decide(story.state)
        story.say(*fired, decided)
    found = findings(story.state)
    assert found is not None
    return markdown(blocks_of(found))


def line(lines: list[str], beginning: str) -> str:
    (found,) = (line for line in lines if line.startswith(beginning))
    return found


def made(mean: float, sd: float, pairs: int = 8) -> Gain:
    scores = {s: 1.0 - mean - sd * (-1) ** s for s in range(pairs)}
    return gain(scores, dict.fromkeys(range(pairs), 1.0), 0.01)


# Gains


@pytest.mark.parametrize(
    ("mean", "sd", "drawn"),
    [
        (0.02, 0.01, "············│··├───●───┤·"),
        (-0.02, 0.01, "·├───●───┤··│············"),
        (0.0, 0.01, "·├──────────●──────────┤·"),
        (0.0, 0.0, "············●············"),
        (0.02, 0.0, "············│··········●·"),
        (-0.02, 0.0, "·●··········│············"),
        (0.02, 1e-5, "············│··········●·"),
    ],
)
def test_a_bar_shows_the_range_around_0(mean: float, sd: float, drawn: str) -> None:
    assert list(bar(made(mean, sd))) == [f"worse `{drawn}` better"]


@pytest.mark.parametrize("pairs", [0, 1])
def test_what_has_no_range_has_no_bar(pairs: int) -> None:
    assert list(bar(made(0.02, 0.0, pairs))) == []


def test_the_gain_on_fresh_seeds_comes_first(tell: "Tell") -> None:
    lines = lines_of(tell(winner=GAIN))
    said = "- The search's winner over the baseline: +2.00% (+1.87% to +2.13%, 8 seeds)."
    assert lines[0] == said
    assert line(lines, "- A gain is a share of the other's score").endswith(
        "each with 99% confidence."
    )


def test_without_noise_any_gain_shows(tell: "Tell") -> None:
    assert line(lines_of(tell(winner=8 * (0.98,))), "- The pairs do not differ") == (
        "- The pairs do not differ, so any gain would show. A Go asks for 1%."
    )


def test_the_rung_has_its_own_line(tell: "Tell") -> None:
    lines = lines_of(tell(winner=GAIN, rung=((1.0, 1.0), (0.98, 0.98))))
    assert "- The same with 4 x FLOPs: +2.00% (+2.00% to +2.00%, 2 seeds)." in lines


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "Nothing has been compared with the baseline on fresh seeds yet."),
        (
            {"finalists": {"average": 0.98}},
            "The winner has not been compared with the baseline on fresh seeds yet.",
        ),
    ],
)
def test_what_was_not_compared_yet_is_said(tell: "Tell", fields: Any, said: str) -> None:
    assert f"- {said}" in lines_of(tell(**fields), is_decided=False)


def test_where_nothing_could_be_compared_it_is_not_still_to_come(tell: "Tell") -> None:
    lines = lines_of(tell(finalists={"average": (NAN, NAN, NAN)}))
    assert "- No finalist has a score on fresh seeds: nothing was compared with the baseline." in (
        lines
    )


# Luck


def test_a_best_score_stands_beside_what_luck_alone_would_show(tell: "Tell") -> None:
    assert line(lines_of(tell(winner=GAIN)), "- The best score") == (
        "- The best score of the search seemed 2% better than the baseline; the best of as many "
        "baselines, each on seeds of its own, would seem 0.818% better. A best score is no "
        "evidence."
    )


def test_luck_that_nobody_measured_is_not_made_up(
    tell: "Tell", make_confirmed_plan: "MakePlan"
) -> None:
    plan = make_confirmed_plan(calibration=Calibration(assumed_seconds=2.0))
    assert "; what luck alone would show is not known, for nobody measured the noise." in line(
        lines_of(tell(plan, winner=GAIN)), "- The best score"
    )


# Tables


def test_each_condition_is_a_row(tell: "Tell") -> None:
    lines = lines_of(tell(winner=GAIN, rung=((1.0, 1.0), (0.995, 0.995))))
    at = lines.index("| a Go needs | met | observed |")
    met = {row.split(" | ")[0].strip("| "): row.split(" | ")[1] for row in lines[at + 2 : at + 7]}
    assert met == {
        "signal": "yes",
        "stability": "yes",
        "persistence": "yes",
        "sanity": "yes",
        "long run, to persist": "**no**",
    }


def test_each_finalist_says_what_it_is_and_who_goes_on(tell: "Tell") -> None:
    lines = lines_of(
        tell(finalists={"average": 0.985, "luckiest 1": (0.98, NAN, NAN)}, winner=GAIN)
    )
    at = lines.index("| finalist | what it is | gain on the picking seeds | goes on |")
    assert lines[at + 2 : at + 4] == [
        "| average | the mean of the search distribution, averaged over its last third of "
        "generations | +1.50% (3 seeds) | yes |",
        "| luckiest 1 | one of the luckiest candidates of the search | +2.00% (1 seed) |  |",
    ]


def test_controls_are_shown_at_equal_flops_and_at_equal_seconds(tell: "Tell") -> None:
    lines = lines_of(tell(control=5 * (0.99,), winner=GAIN, equal=5 * (0.97,)))
    at = lines.index("| control | its gain over the baseline | the winner's gain over it |")
    off, equal = lines[at + 2 : at + 4]
    assert off.startswith("| synapses off | +1.00% (+1.00% to +1.00%, 5 seeds) | +1.01% (")
    assert equal.startswith(f"| {EQUAL} | +3.00% (+3.00% to +3.00%, 5 seeds) | -1.03% (")
    assert lines[at + 5] == f"The winner is worse than {EQUAL}, with 99% confidence."


def test_controls_that_are_beaten_need_no_remark(tell: "Tell") -> None:
    lines = lines_of(tell(control=5 * (0.99,), winner=GAIN, equal=5 * (1.0,)))
    assert not any("is not shown to be better than" in line for line in lines)


def test_a_control_that_failed_has_a_dash_and_no_remark(tell: "Tell") -> None:
    lines = lines_of(tell(control=5 * (NAN,), winner=GAIN))
    assert line(lines, "| synapses off |") == "| synapses off | not measurable (no seeds) | - |"
    assert not any("is not shown to be better than" in line for line in lines)


def test_no_label_breaks_a_table_or_becomes_a_link(
    tell: "Tell", make_confirmed_plan: "MakePlan"
) -> None:
    plan = make_confirmed_plan()
    story = tell(plan, finalists={"average": 0.98, "lucky|est [x](y) `z`": 0.99}, winner=GAIN)
    assert line(lines_of(story), "| lucky").startswith("| lucky\\|est \\[x\\](y) \\`z\\` |")


# Every moment of a run, in every way to show it


RUNS: dict[str, dict[str, Any]] = {
    "go that persists": {"winner": GAIN, "rung": ((1.0, 1.0), (0.98, 0.981))},
    "go": {"winner": GAIN, "control": 5 * (0.97,), "equal": 5 * (0.96,)},
    "lost on the rung": {"winner": GAIN, "rung": ((1.0, 1.0), (1.01, 1.02))},
    "unmeasured rung": {"winner": GAIN, "rung": ((NAN, NAN), (1.01, 1.02))},
    "nothing": {"winner": tuple(s + 0.02 for s in GAIN), "incumbent": GAIN},
    "without noise": {"winner": 8 * (1.0,), "generations": 3 * (4 * (1.0,),)},
    "a failing winner": {"winner": (*7 * (NAN,), 0.98), "incumbent": 8 * (NAN,)},
    "failing finalists": {"finalists": {"average": (NAN, NAN, NAN)}},
    "a failing baseline": {"baseline": 11 * (NAN,), "winner": GAIN, "control": 5 * (NAN,)},
    "a baseline of 0": {"baseline": 11 * (0.0,), "winner": GAIN},
    "one generation": {"generations": ((1.0, NAN, NAN, 0.9),), "winner": GAIN},
}


def test_parts_that_there_are_not_leave_no_empty_lines(tell: "Tell") -> None:
    found = findings(tell(generations=()).state)
    assert found is not None
    text = "\n".join(markdown(blocks_of(found)))
    assert text.startswith("- ")
    assert "\n\n\n" not in text
    assert not text.endswith("\n")
