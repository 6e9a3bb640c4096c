"""What a shorter evaluation is worth, in words that claim no more than was compared."""

from typing import Any

import pytest

from budgets.blocks import markdown
from budgets.proxy.certificate import Certificate
from budgets.proxy.report import Comparison, ProxyReport
from budgets.proxy.text import proxy_blocks, proxy_sentence


def compared(**fields: Any) -> Comparison:
    """Generation 2, eight candidates that both lengths order alike."""
    values = {
        "generation": 2,
        "candidates": 8,
        "compared": 8,
        "healthy": 7,
        "tau": 0.79,
        "lower": 0.571,
        "upper": 0.94,
        "level": 0.1,
        "asked": 0.5,
        "top_half": 1.0,
        "top_quarter": 0.5,
        "error": 0.0123,
        "seconds_ratio": 0.25,
        **fields,
    }
    holds = values.pop("holds", True)
    own = {name: values.pop(name, usual) for name, usual in (("short", ()), ("over", None))}
    return Comparison(certificate=Certificate.model_validate(values), holds=holds, **own)


def report(*comparisons: Comparison, is_check: bool = False, **fields: Any) -> ProxyReport:
    values = {
        "label": "a quarter",
        "asked": 0.5,
        "is_check": is_check,
        "comparisons": comparisons,
        "short": (),
        "comparing_seconds": 4.0,
        "saved_seconds": None,
        **fields,
    }
    return ProxyReport.model_validate(values)


@pytest.mark.parametrize(("holds", "verdict"), [(True, "good enough"), (False, "not good enough")])
def test_the_sentence_gives_the_agreement_and_what_was_asked(holds: bool, verdict: str) -> None:
    assert proxy_sentence(report(compared(holds=holds), is_check=True)) == (
        f"a quarter is {verdict} to stand in for the full evaluation: over 8 candidates on the same"
        " seeds Kendall's tau-b is 0.79, 0.57 to 0.94 with 90% confidence (asked of the lower "
        "bound: 0.5, over 8 or more)."
    )


def test_the_sentence_is_of_the_latest_comparison() -> None:
    found = report(compared(compared=6), compared(compared=7, holds=False))
    assert "not good enough to stand in for the full evaluation: over 7" in proxy_sentence(found)


def test_where_nothing_was_compared_nothing_is_claimed() -> None:
    nothing = report(is_check=True)
    assert proxy_sentence(nothing) == "a quarter: nothing was compared."
    assert not [line for line in markdown(proxy_blocks(nothing)) if line.startswith("|")]


def test_scores_that_tell_no_candidates_apart_have_no_agreement() -> None:
    nothing = compared(tau=None, lower=None, upper=None, holds=False)
    assert "is none: one of the two tells no candidates apart (" in proxy_sentence(report(nothing))


def test_a_check_says_what_was_compared_and_nothing_of_a_search() -> None:
    lines = markdown(proxy_blocks(report(compared(), is_check=True)))
    assert lines[:2] == ["### Proxy", ""]
    assert lines[2].startswith("a quarter, a run of its own with its own schedule, beside the full")
    assert lines[-1] == "| 2 | 0.79 | 0.57 to 0.94 | yes | 100% | 50% | 0.0123 | 7 of 8 | 25% |"


def test_what_was_not_measured_has_a_dash() -> None:
    nothing = dict.fromkeys(
        ("tau", "lower", "upper", "top_half", "top_quarter", "error", "seconds_ratio")
    )
    row = markdown(
        proxy_blocks(report(compared(**nothing, healthy=0, holds=False), is_check=True))
    )[-1]
    assert row == "| 2 | - | - | **no** | - | - | - | 0 of 8 | - |"


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"holds": False}, "- Generation 2 did not show agreement: full evaluations."),
        ({}, "- Generation 2 showed agreement: none yet short."),
        ({"short": (3,)}, "- Generation 2 showed agreement: generation 3 short."),
        (
            {"short": (3, 4, 5), "over": "it was long enough"},
            "- Generation 2 showed agreement: generations 3 to 5 short; then it was long enough.",
        ),
    ],
)
def test_each_comparison_says_which_generations_it_made_short(
    fields: dict[str, Any], line: str
) -> None:
    lines = markdown(proxy_blocks(report(compared(**fields))))
    assert lines[2].startswith("a quarter stands in for the full evaluation of whole generations")
    assert "was 0.5 or more" in lines[2]
    assert lines[-2] == line


@pytest.mark.parametrize(
    ("saved", "said"),
    [
        (None, "; nothing is saved yet."),
        (1016.0, ". In all 1,016.0 device-seconds are saved against full evaluations of the same"),
        (0.0, ". In all 0.0 device-seconds are saved against"),
        (-12.0, ". In all 12.0 device-seconds are lost against"),
    ],
)
def test_what_comparing_took_is_set_against_what_it_saved(saved: float | None, said: str) -> None:
    line = markdown(proxy_blocks(report(compared(), saved_seconds=saved)))[-1]
    assert line.startswith(f"- Comparing took 4.0 device-seconds{said}")
