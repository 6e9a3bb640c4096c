"""What a campaign's result says, and what it does not."""

from typing import TYPE_CHECKING

import pytest

from budgets.blocks import markdown
from budgets.campaign.matrix import Matrix
from budgets.campaign.text import campaign_blocks, campaign_sentence
from budgets.effects import CampaignReport, campaign_report, telling
from budgets.events import Status

if TYPE_CHECKING:
    from tests.budgets.campaign.conftest import Campaigns

EMBD = {"n_embd": ("32", "64"), "n_layer": ("2", "4")}
MOVED = {
    "32,2": (3.20, 3.25, 3.30, 3.15),
    "32,4": (3.21, 3.24, 3.30, 3.16),
    "64,2": (3.10, 3.14, 3.21, 3.04),
    "64,4": (3.10, 3.16, 3.20, 3.05),
    "default_base": (3.20, 3.25, 3.30, 3.15),
}
"""n_embd by seed: -0.105, -0.095, -0.095, -0.11; of the control's 3.225 a mean of -3.14 %."""


def moved(campaigns: "Campaigns") -> Matrix:
    return campaigns.of(MOVED, EMBD, controls=["default_base"])


def report_of(matrix: Matrix, *, is_over: bool = True) -> CampaignReport:
    return campaign_report(matrix, 0.05, is_over=is_over)


def text_of(matrix: Matrix, *, is_over: bool = True) -> str:
    return "\n".join(markdown(campaign_blocks(report_of(matrix, is_over=is_over))))


def test_the_sentence_says_which_factor_moves_the_score_and_how_far(
    campaigns: "Campaigns",
) -> None:
    said = campaign_sentence(report_of(moved(campaigns)))
    assert said == (
        "All 20 evaluations are settled, 0 of them failed. n_embd moves the score: 64 against 32 "
        "is 3.14% better (95%: 2.77 to 3.51)."
    )


def test_nothing_is_called_an_effect_that_chance_explains(campaigns: "Campaigns") -> None:
    rows = {"32,2": (1.0, 2.0), "32,4": (2.0, 1.0), "64,2": (1.1, 1.8), "64,4": (1.7, 1.2)}
    said = campaign_sentence(report_of(campaigns.of(rows, EMBD)))
    assert "No difference is beyond chance; a main effect of" in said
    assert "moves" not in said


def test_with_one_seed_it_says_that_nothing_can_be_told_from_luck(campaigns: "Campaigns") -> None:
    matrix = campaigns.of({name: row[:1] for name, row in MOVED.items()}, EMBD, ["default_base"])
    assert campaign_sentence(report_of(matrix)).endswith(
        "With one seed no difference can be told from luck."
    )
    text = text_of(matrix)
    assert "nothing here can be told from luck" in text
    assert "| n_embd: 64 against 32 | 3.28% better | 1 | - |" in text


def test_while_it_runs_it_says_how_far_it_is_and_judges_nothing(campaigns: "Campaigns") -> None:
    rows = {**MOVED, "default_base": (3.2, 3.25, 3.3, None)}
    matrix = campaigns.of(rows, EMBD, controls=["default_base"])
    assert campaign_sentence(report_of(matrix, is_over=False)) == ("19 of 20 evaluations settled.")
    text = text_of(matrix, is_over=False)
    assert "Nothing is judged before the last evaluation is settled" in text
    assert "**" not in text


def test_a_campaign_cut_short_says_what_was_not_made(campaigns: "Campaigns") -> None:
    rows = {**MOVED, "64,4": (3.1, 3.16, None, None)}
    matrix = campaigns.of(rows, EMBD, controls=["default_base"])
    assert campaign_sentence(report_of(matrix)).startswith(
        "18 of 20 evaluations are settled, 0 failed. "
    )
    assert "2 of 20 evaluations were not made" in text_of(matrix)


def test_conditions_without_factors_are_named_where_they_differ_from_a_control(
    campaigns: "Campaigns",
) -> None:
    rows = {
        "wide": (3.0, 3.1, 3.2),
        "same": (3.19, 3.31, 3.4),
        "default_base": (3.2, 3.3, 3.4),
    }
    said = campaign_sentence(report_of(campaigns.of(rows, controls=["default_base"])))
    assert "wide is 6.06% better (95%: 6.06 to 6.06) than default_base" in said
    assert "same" not in said


def test_conditions_without_a_control_have_nothing_to_be_compared_with(
    campaigns: "Campaigns",
) -> None:
    said = campaign_sentence(report_of(campaigns.of({"x": (1.0, 2.0), "y": (2.0, 3.0)})))
    assert said.endswith("There is no control and no factor to compare by.")


def test_a_campaign_that_failed_altogether_says_so(campaigns: "Campaigns") -> None:
    rows = {"x": (Status.OOM, Status.NAN), "default_base": (Status.OOM, Status.OOM)}
    matrix = campaigns.of(rows, controls=["default_base"])
    assert campaign_sentence(report_of(matrix)) == (
        "All 4 evaluations are settled, 4 of them failed. No condition has a score."
    )
    assert "| x | 0 of 2 (1 oom, 1 nan) | - | - | - |" in text_of(matrix)


def test_an_interaction_says_that_main_effects_are_averages(campaigns: "Campaigns") -> None:
    rows = {"32,2": (1.0, 1.1, 1.2), "32,4": (1.0, 1.1, 1.2), "64,2": (1.0, 1.1, 1.2),
            "64,4": (0.5, 0.6, 0.7)}  # fmt: skip
    matrix = campaigns.of(rows, EMBD)
    assert (
        "n_embd and n_layer act together: n_embd 64 with n_layer 4 is 51.28% better "
        "(95%: 51.28 to 51.28) than the two add up to"
    ) in campaign_sentence(report_of(matrix))
    assert "read the effect of either as an average" in text_of(matrix)


def test_an_effect_over_fewer_combinations_says_over_how_many(campaigns: "Campaigns") -> None:
    rows = {**MOVED, "64,4": (Status.OOM,) * 4}
    text = text_of(campaigns.of(rows, EMBD, controls=["default_base"]))
    assert "n_embd: 64 against 32 over 1 of 2" in text
    assert "| n_embd 64 with n_layer 4 | not estimated: a condition that it takes" in text


def test_the_table_holds_every_condition_against_the_control(campaigns: "Campaigns") -> None:
    lines = text_of(moved(campaigns)).splitlines()
    assert "| condition | healthy | mean | sd | against default_base |" in lines
    assert "| 64,2 | 4 of 4 | 3.1225 | 0.0714 | **3.18% better (2.71 to 3.65)** |" in lines
    assert "| default_base | 4 of 4 | 3.225 | 0.0645 | (control) |" in lines


@pytest.mark.parametrize("controls", [3, 4])
def test_many_controls_have_further_tables(campaigns: "Campaigns", controls: int) -> None:
    names = [f"c{n}_base" for n in range(controls)]
    rows = {"x": (1.0, 1.1), **dict.fromkeys(names, (2.0, 2.5))}
    lines = text_of(campaigns.of(rows, controls=names)).splitlines()
    heads = [line for line in lines if line.startswith("| condition |")]
    assert len(heads) == 2
    assert all(any(f"against {name}" in head for head in heads) for name in names)


def test_names_too_long_for_a_line_are_cut_and_told_apart(campaigns: "Campaigns") -> None:
    rows = {f"{'long' * 20}{n}{'name' * 20}": (1.0, 1.1) for n in range(3)}
    lines = [line for line in text_of(campaigns.of(rows)).splitlines() if "…" in line]
    assert len({line.split("|")[1] for line in lines}) == 3
    assert all(len(line.split("|")[1]) <= 52 for line in lines)


def test_of_many_interactions_the_least_likely_are_shown(campaigns: "Campaigns") -> None:
    levels = ("0", "1", "2", "3", "4", "5")
    rows = {
        f"{a},{b}": (1.0 + 0.01 * ((7 * i + 3 * j) % 5), 1.1 + 0.01 * ((3 * i + 5 * j) % 7))
        for i, a in enumerate(levels)
        for j, b in enumerate(levels)
    }
    text = text_of(campaigns.of(rows, {"A": levels, "B": levels}))
    assert "5 more of two factors are in effects.json." in text
    report = report_of(campaigns.of(rows, {"A": levels, "B": levels}))
    others = [effect for effect in report.effects if effect.is_interaction]
    shown = telling(others, 20)
    left_out = [e.difference.chance or 0.0 for e in others if e not in shown]
    assert shown == [e for e in others if e in shown]
    assert max(e.difference.chance or 1.0 for e in shown) <= min(left_out)


def test_an_interaction_without_a_doubt_is_shown_before_any_that_chance_explains(
    campaigns: "Campaigns",
) -> None:
    rows = {f"{a},{b}": (1.0, 1.1, 1.3 + a * b) for a in range(3) for b in range(3)}
    report = report_of(campaigns.of(rows, {"A": ("0", "1", "2"), "B": ("0", "1", "2")}))
    *others, last = (
        effect.model_copy(
            update={"difference": effect.difference.model_copy(update={"is_found": False})}
        )
        for effect in report.effects
        if effect.is_interaction
    )
    sure = last.difference.model_copy(update={"chance": 0.0})
    assert telling([*others, last.model_copy(update={"difference": sure})], 1)[0].difference == sure


def test_of_many_findings_the_sentence_names_three(campaigns: "Campaigns") -> None:
    rows = {name: (1.0 + n, 1.1 + n, 1.2 + n) for n, name in enumerate("abcde")}
    said = campaign_sentence(report_of(campaigns.of(rows, controls=["a"])))
    assert said.count(" worse ") == 3
    assert said.endswith("; and 1 more.")


def test_a_single_condition_has_its_score_and_nothing_else(campaigns: "Campaigns") -> None:
    said = campaign_sentence(report_of(campaigns.of({"x": (1.0, 2.0)})))
    assert said == "All 2 evaluations are settled, 0 of them failed. x scores 1.5."


def test_where_no_two_conditions_share_two_seeds_nothing_is_judged(
    campaigns: "Campaigns",
) -> None:
    rows = {"x": (1.0, Status.OOM), "base": (Status.OOM, 2.0)}
    said = campaign_sentence(report_of(campaigns.of(rows, controls=["base"])))
    assert said.endswith(
        "No two conditions share two seeds with a score: nothing can be told from luck."
    )


def test_a_single_factor_has_no_table_of_pairs(campaigns: "Campaigns") -> None:
    rows = {"32": (1.0, 1.1, 1.2), "64": (0.9, 1.0, 1.1)}
    text = text_of(campaigns.of(rows, {"n_embd": ("32", "64")}))
    assert "| n_embd: 64 against 32 | **" in text
    assert "| two factors |" not in text


def test_an_effect_whose_conditions_share_no_seed_is_not_estimated(
    campaigns: "Campaigns",
) -> None:
    rows = {"32": (1.0, Status.OOM), "64": (Status.OOM, 1.0)}
    text = text_of(campaigns.of(rows, {"n_embd": ("32", "64")}))
    assert "| not estimated: no seed has a score of all its conditions | 0 |" in text


def test_around_zero_a_difference_is_in_the_scores_own_unit(campaigns: "Campaigns") -> None:
    rows = {"x": (0.5, 0.25, 0.75), "base": (0.0, 0.0, 0.0)}
    text = text_of(campaigns.of(rows, controls=["base"]))
    assert "| x | 3 of 3 | 0.5 | 0.25 | 0.50 worse (-0.12 to 1.12) |" in text


def test_a_further_table_has_only_what_is_compared_with_its_controls(
    campaigns: "Campaigns",
) -> None:
    sizes = ("1B", "3B", "7B")
    rows = {name: (1.0, 1.1) for size in sizes for name in (f"{size}_wide", f"{size}_base")}
    controls = [f"{size}_base" for size in sizes]
    levels = {name: {"size": name[:2]} for name in rows}
    lines = text_of(campaigns.of(rows, None, controls, levels)).splitlines()
    further = lines[lines.index("| condition | against 7B_base |") + 2 :]
    assert [line.split(" | ")[0] for line in further] == ["| 7B_wide"]


@pytest.mark.parametrize(("length", "tables"), [(24, 1), (25, 2)])
def test_beside_long_names_there_is_one_control_a_table(
    campaigns: "Campaigns", length: int, tables: int
) -> None:
    rows = {"x" * length: (1.0, 1.1), "a_base": (2.0, 2.5), "b_base": (2.0, 2.5)}
    lines = text_of(campaigns.of(rows, controls=["a_base", "b_base"])).splitlines()
    assert len([line for line in lines if line.startswith("| condition |")]) == tables


def test_parts_are_parted_by_one_empty_line(campaigns: "Campaigns") -> None:
    text = text_of(moved(campaigns))
    assert text.startswith("### Conditions\n\nLower is better")
    assert "\n\n### Effects\n\nOf moving a factor" in text
    assert "\n\n\n" not in text


def test_without_factors_or_scores_there_are_no_effects(campaigns: "Campaigns") -> None:
    assert "### Effects" not in text_of(campaigns.of({"x": (1.0, 2.0)}))
    failed = dict.fromkeys(MOVED, (Status.OOM,) * 4)
    assert "### Effects" not in text_of(campaigns.of(failed, EMBD, ["default_base"]))
