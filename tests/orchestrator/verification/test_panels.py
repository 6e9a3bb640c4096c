"""`verify` finds what was done to the panels of a run and to its decision, and says where."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from budgets.events import ComparisonAsked, Decided
from budgets.ledger import LEDGER, read
from budgets.plan import Sample
from orchestrator.records.recorded import Result
from orchestrator.verification.verify import verify

Lines = list[dict[str, Any]]
Tamper = Callable[[Path, Callable[[Lines], Lines | None]], None]


@pytest.fixture
def run(confirmed_run: Path, place: Path) -> Path:
    """A copy to tamper with."""
    return Path(shutil.copytree(confirmed_run, place / confirmed_run.name))


def asked(lines: Lines, panel: str) -> int:
    return next(
        n for n, line in enumerate(lines)
        if line["event"]["kind"] == "panel_asked" and line["event"]["panel"] == panel
    )  # fmt: skip


def of_kind(lines: Lines, kind: str, panel: str) -> list[dict[str, Any]]:
    events = [line["event"] for line in lines]
    return [e for e in events if e["kind"] == kind and e["panel"] == panel]


def divergence(run: Path) -> str:
    found = verify(run).divergence
    assert found is not None
    return found


def test_an_untouched_confirmed_run_holds_in_every_respect(run: Path) -> None:
    found = verify(run)
    assert found.divergence is None
    said = {line.partition(":")[0]: line for line in found.held}
    assert "8 evaluations, 18 for the comparison" in said["accounts"]
    assert "none of the 6 of the comparison is one of them" in said["evaluation seeds"]
    assert "4 panels are what the plan" in said["decision"]
    assert "give, and so is the verdict: Go; persistence not shown" in said["decision"]
    assert "26 attempts' own files agree" in said["settlements"]


@pytest.mark.parametrize("panel", ["reference", "finalists", "winner", "rung"])
def test_a_panel_that_compares_other_points_is_found(run: Path, tamper: Tamper, panel: str) -> None:
    def change(lines: Lines) -> None:
        lines[asked(lines, panel)]["event"]["arms"][0]["point"][0] += 1e-12

    tamper(run, change)
    assert f"asks for the {panel} panel with arms" in divergence(run)


def test_a_panel_of_a_changed_objective_is_found(run: Path, tamper: Tamper) -> None:
    def change(lines: Lines) -> None:
        lines[asked(lines, "rung")]["event"]["arms"][0]["settings"] = {"effort": 3.0}

    tamper(run, change)
    assert "asks for the rung panel with arms" in divergence(run)


def reseeded(lines: Lines, panel: str, seed: int) -> None:
    """The panel's first arm on another seed in the place of its last one, from end to end."""
    event = lines[asked(lines, panel)]["event"]
    old, event["seeds"][0][-1] = event["seeds"][0][-1], seed
    for kind in ("reserved", "settled"):
        for own in of_kind(lines, kind, panel):
            if own["candidate"] == 0 and own["seed"] == old:
                own["seed"] = seed


@pytest.mark.parametrize("panel", ["reference", "finalists", "winner", "rung"])
def test_a_panel_on_other_seeds_is_found(run: Path, tamper: Tamper, panel: str) -> None:
    tamper(run, lambda lines: reseeded(lines, panel, 4711))
    assert f"asks for the {panel} panel with seeds" in divergence(run)


@pytest.mark.parametrize("panel", ["reference", "finalists", "winner", "rung"])
def test_a_panel_on_a_seed_that_the_search_has_seen_is_found(
    run: Path, tamper: Tamper, panel: str
) -> None:
    def change(lines: Lines) -> None:
        told = next(line["event"] for line in lines if line["event"]["kind"] == "generation_asked")
        reseeded(lines, panel, told["seeds"][0])

    tamper(run, change)
    assert f"of the {panel} panel is not fresh" in divergence(run)


def test_a_panel_on_a_seed_of_the_calibration_is_found(run: Path, tamper: Tamper) -> None:
    def change(lines: Lines) -> None:
        seed = lines[asked(lines, "winner")]["event"]["seeds"][0][0]
        sample = dict.fromkeys(Sample.model_fields, 1) | {"seed": seed}
        lines[0]["event"]["plan"]["calibration"] = {"samples": [sample]}

    tamper(run, change)
    assert "panel is not fresh" in divergence(run)


def test_a_winner_judged_where_it_was_picked_is_found(run: Path, tamper: Tamper) -> None:
    def change(lines: Lines) -> None:
        picked = lines[asked(lines, "finalists")]["event"]["seeds"][0][0]
        reseeded(lines, "winner", picked)

    tamper(run, change)
    assert "of the winner panel is not fresh" in divergence(run)


def test_a_panel_that_is_asked_for_too_early_is_found(run: Path, tamper: Tamper) -> None:
    def change(lines: Lines) -> Lines:
        line = lines.pop(asked(lines, "winner"))
        last = max(
            n for n, line in enumerate(lines)
            if line["event"]["kind"] == "settled" and line["event"]["panel"] == "finalists"
        )  # fmt: skip
        return [*lines[:last], line, *lines[last:]]

    tamper(run, change)
    assert "asks for the winner panel, which is not due" in divergence(run)


def test_a_panel_that_is_left_out_is_missed(run: Path, tamper: Tamper) -> None:
    def change(lines: Lines) -> Lines:
        return [line for line in lines if line["event"].get("panel") != "rung"]

    tamper(run, change)
    assert "decides before everything planned is settled" in divergence(run)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("grade", "go_persists"),
        ("arm", "luckiest 1"),
        ("point", [0.5, 0.5]),
        ("gain", 0.5),
        ("lower", 0.4),
    ],
)
def test_another_decision_than_the_panels_give_is_found(
    run: Path, tamper: Tamper, field: str, value: Any
) -> None:
    def change(lines: Lines) -> None:
        decided = next(line["event"] for line in lines if line["event"]["kind"] == "decided")
        assert decided[field] != value
        decided[field] = value

    tamper(run, change)
    number = next(r.seq for r in read(run / LEDGER).records if isinstance(r.event, Decided))
    assert f"record {number} at byte" in divergence(run)
    assert f"decides {field} " in divergence(run)


def test_the_last_bits_of_a_gain_may_be_another_processors(run: Path, tamper: Tamper) -> None:
    def change(lines: Lines) -> None:
        decided = next(line["event"] for line in lines if line["event"]["kind"] == "decided")
        decided["gain"] *= 1 + 1e-14

    tamper(run, change)
    assert verify(run).divergence is None


def test_a_no_go_whose_rule_never_fired_is_found(
    place: Path, search_confirmed: Callable[..., Result], tamper: Tamper
) -> None:
    nothing = {"objective": "noise", "settings": {"dimension": 2, "noise": 0.0}}  # all is alike
    run = search_confirmed(place, **nothing).directory
    (rule,) = {line.event.rule for line in read(run / LEDGER).records if line.event.kind == "fired"}

    def change(lines: Lines) -> Lines:
        return [line for line in lines if line["event"]["kind"] != "fired"]

    tamper(run, change)
    assert f"decides, and {rule} has not fired" in divergence(run)


@pytest.mark.parametrize("panel", ["reference", "finalists", "winner", "rung"])
@pytest.mark.parametrize("field", ["steps", "charged_ms"])
def test_a_settlement_of_a_panel_that_its_own_file_denies_is_found(
    run: Path, tamper: Tamper, panel: str, field: str
) -> None:
    def change(lines: Lines) -> None:
        of_kind(lines, "settled", panel)[0][field] += 1

    tamper(run, change)
    assert f"says {field}" in divergence(run)
    assert f"{panel}_0000" in divergence(run)


def test_a_score_that_changes_who_wins_is_found_by_the_panel_that_follows(
    run: Path, tamper: Tamper
) -> None:
    def change(lines: Lines) -> None:
        for event in of_kind(lines, "settled", "finalists"):
            if event["candidate"] == 1:
                event["score"] = 0.1

    tamper(run, change)
    assert "asks for the winner panel with arms" in divergence(run)


def test_evaluations_beside_the_search_are_added_up_apart(run: Path, tamper: Tamper) -> None:
    records = read(run / LEDGER).records
    number = next(r.seq for r in records if isinstance(r.event, ComparisonAsked))

    def change(lines: Lines) -> Lines:
        return [*lines[:number], *lines[number + 1 :]]

    tamper(run, change)
    assert "reference panel 0 was never asked" in divergence(run)
