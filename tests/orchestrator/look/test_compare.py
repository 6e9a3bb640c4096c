"""Runs side by side: numbers computed once more, groups of scores, and the command."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import pytest
from scipy import stats

from budgets.blocks import Table
from budgets.events import Planned, Settled
from budgets.fold import fold
from budgets.ledger.chain import LEDGER, read
from orchestrator.look.blocks import markdown
from orchestrator.look.compare import Comparison, comparison, document, sections
from orchestrator.look.run import Run
from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from tests.conftest import Command

GOLDEN = REPOSITORY / "tests/golden/runs"
RUNS = sorted(path.name for path in GOLDEN.iterdir())
NOW = datetime(2026, 11, 23, tzinfo=UTC)


def compared(*names: str) -> Comparison:
    return comparison([GOLDEN / name for name in names], NOW)


def with_winner(name: str, worse_by: Callable[[int], float]) -> tuple[Run, dict[int, float]]:
    """A golden run whose winner scored so much worse on each seed; and what it scored."""
    records, scores = list(read(GOLDEN / name / LEDGER).records), {}
    for place, record in enumerate(records):
        end = record.event
        if isinstance(end, Settled) and end.panel == "winner" and end.score is not None:
            scores[end.seed] = end.score + worse_by(end.seed)
            records[place] = record._replace(event=replace(end, score=scores[end.seed]))
    return Run(fold(records), NOW, GOLDEN / name), scores


def replanned(name: str, **terms: Any) -> Run:
    """A golden run as if its plan were another."""
    first, *rest = read(GOLDEN / name / LEDGER).records
    assert isinstance(first.event, Planned)
    event = Planned(plan=first.event.plan.model_copy(update=terms))
    return Run(fold([first._replace(event=event), *rest]), NOW, GOLDEN / name)


def test_winner_against_winner_is_the_paired_gain_on_shared_seeds() -> None:
    (run, one), (slower, other) = (
        with_winner("go", worse_by)
        for worse_by in (lambda _: 0.0, lambda seed: 0.004 + seed % 5 / 1e3)
    )
    own = Comparison([run, slower])
    (duel,) = own.duels
    seeds = sorted(set(one) & set(other))
    scale = fmean(other[seed] for seed in seeds)
    gains = [(other[seed] - one[seed]) / scale for seed in seeds]
    assert (duel.run, duel.against, duel.gain.pairs) == (0, 1, len(seeds))
    assert duel.gain.mean == pytest.approx(fmean(gains))
    low, high = stats.ttest_1samp(gains, 0.0).confidence_interval(1 - 2 * duel.gain.level)
    assert (duel.gain.lower, duel.gain.upper) == pytest.approx((low, high), rel=1e-3)


def test_only_scores_of_the_same_fingerprint_are_compared() -> None:
    own = compared("go", "go_fades", "phase2", "no_go_noise")
    prints = [run.plan.objective_fingerprint for run in own.runs]
    for group in own.groups:
        assert len({prints[place] for place in group}) == 1
    assert sorted(place for group in own.groups for place in group) == [0, 1, 2, 3]
    assert len(own.groups) == len(set(prints)) == 3
    assert not own.is_comparable
    assert not own.duels  # they share no seeds
    assert compared("go", "smoke").is_comparable
    assert not compared("go", "smoke").why_not


def test_what_sets_groups_apart_is_named_with_its_values() -> None:
    (why,) = compared("go", "go_fades").why_not
    assert "persists" in why
    assert "0.2" in why
    plain = Run(fold(read(GOLDEN / "go" / LEDGER).records), NOW, GOLDEN / "go")
    (why,) = Comparison(
        [plain, replanned("go", provenance={"data": "new"}, objective_fingerprint="0")]
    ).why_not
    assert "new" in why
    code = Comparison([plain, replanned("go", objective_fingerprint="1")])
    assert len(code.groups) == 2
    assert len(code.why_not) == 1
    assert not code.differences


def test_luck_that_differs_is_to_be_minded() -> None:
    own = Comparison([*compared("go").runs, replanned("go", evaluation_seed=77)])
    assert own.is_comparable
    assert any("77" in one for one in own.mind)
    assert [fact.values[1] for fact in own.differences] == ["77"]


def test_a_run_has_the_numbers_that_it_has_everywhere() -> None:
    own = compared("go", "no_go_noise", "capped", "calibration")
    for run, row in zip(own.runs, document(own)["runs"], strict=True):
        decisive = [one.gain.mean for one in run.gains if one.is_decisive]
        assert ([row["gain"]["mean"]] if row["gain"] else []) == decisive
        assert row["baseline"] == (run.baseline.mean if run.baseline else None)
        assert row["evaluations_by_status"] == run.evaluations_by_status
    names = [name for name in own.names if name in own.sentence]
    assert names == ["go"]


@pytest.mark.parametrize(("one", "other"), list(combinations(RUNS, 2))[::7])
def test_any_two_runs_can_stand_side_by_side(one: str, other: str) -> None:
    own = compared(one, other)
    found = sections(own)
    assert json.loads(json.dumps(document(own)))["groups"] == [list(g) for g in own.groups]
    for block in (block for section in found for block in section.blocks):
        if isinstance(block, Table):
            assert {len(row) for row in block.rows} == {len(block.columns)}
    text = markdown(found)
    for fact in own.differences:
        assert len(set(fact.values)) > 1
        assert fact.name in text.replace("\\", "")


# The command


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The runs directory that the command looks into."""
    found = tmp_path / "artifacts/cmaes"
    for name in ("go", "smoke"):
        shutil.copytree(GOLDEN / name, found / "phase1" / name)
    return found


def test_every_form_has_the_same(root: Path, tmp_path: Path, command: "Command") -> None:
    shown = command("compare", "go", "smoke")
    assert shown.code == 0
    own = json.loads(command("compare", "go", "smoke", "--json").out)
    assert own["comparable"]
    assert command("compare", "go", "smoke", "--md", "--out", "both.md").code == 0
    text = (tmp_path / "both.md").read_text()
    for run in own["runs"]:
        assert run["title"] in text
        assert run["title"] in shown.out
    assert not list(root.glob("*/*/reports"))


@pytest.mark.parametrize(
    "words",
    [
        ("go",),
        ("go", "go"),
        ("go", "nothing"),
        ("go", "smoke", "--out", "x.html"),
        ("go", "smoke", "--html", "--md"),
        ("go", "smoke", "--html", "--out", "."),
    ],
    ids=" ".join,
)
def test_what_cannot_be_meant_is_refused(
    root: Path, command: "Command", words: tuple[str, ...]
) -> None:
    answer = command("compare", *words)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("error: ")
