"""How a campaign stands, seen from beside it: from one ledger, or from those of its runs."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from budgets.ledger import LEDGER, read
from budgets.plan import CampaignPlan, Condition
from orchestrator.look.compare import Exported, exported
from orchestrator.look.run import Run
from orchestrator.matrix.manifest import MANIFEST, Manifest, ManifestRun
from orchestrator.records.runs import Result, load_state
from tests.ledgers import cut

Train = Callable[..., Result]


# In one ledger


def test_a_campaign_leaves_a_manifest_of_all_its_runs(train: Train, tmp_path: Path) -> None:
    result = train(tmp_path)
    found = Manifest.model_validate_json((result.directory / MANIFEST).read_bytes())
    assert (found.name, found.kind, found.total_runs) == ("toy", "training", 15)
    assert found.campaign == result.state.plan.campaign
    assert [run.control for run in found.runs].count(True) == 3
    assert all((result.directory / run.directory).is_dir() for run in found.runs)


@pytest.mark.parametrize(
    ("is_gone", "counts"),
    [(False, {"ok": 4, "running": 1, "pending": 10}), (True, {"ok": 4, "pending": 11})],
)
def test_it_shows_what_is_in_flight_unless_its_process_is_gone(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_gone: bool, counts: Any
) -> None:
    directory = train(tmp_path).directory
    records = read(directory / LEDGER)
    settled = [place for place, one in enumerate(records) if one.event.kind == "settled"]
    reserved = [place for place, one in enumerate(records) if one.event.kind == "reserved"]
    cut(directory, 1 + next(place for place in reserved if place > settled[3]))
    monkeypatch.setattr("orchestrator.records.standing.owner_is_gone", lambda owner: is_gone)
    last = datetime.fromisoformat(read(directory / LEDGER)[-1].at)
    run = Run(load_state(directory), last + timedelta(seconds=1), directory)
    assert run.matrix is not None
    assert run.matrix.counts == counts


# Each cell a run of its own

TERMS = CampaignPlan(
    name="ranks",
    conditions=tuple(
        Condition(name=name, settings={}, knobs={}, levels=levels, control=not levels)
        for name, levels in {"rank4": {"rank": "4"}, "rank64": {"rank": "64"}, "base": {}}.items()
    ),
    seeds=(1, 2),
)


@pytest.fixture
def ranks(tmp_path: Path) -> Path:
    """A directory with the manifest of an export."""
    names = [(one.name, seed, f"{one.name}_s{seed}") for one in TERMS.conditions for seed in (1, 2)]
    runs = tuple(
        ManifestRun(name=run, directory=run, condition=name, seed=seed) for name, seed, run in names
    )
    manifest = Manifest(
        name="ranks", kind="slurm", objective="sphere", total_runs=6, campaign=TERMS, runs=runs
    )
    (tmp_path / "ranks").mkdir()
    (tmp_path / "ranks/manifest.json").write_text(manifest.model_dump_json(exclude_defaults=True))
    return tmp_path / "ranks"


def now_of(ranks: Path) -> Exported:
    found = exported(str(ranks), ranks.parent, datetime.now(UTC))
    assert found is not None
    return found


def test_a_training_in_its_own_runs_directory_is_a_cell_with_its_score(
    train: Train, ranks: Path
) -> None:
    own = {"noise": [0.01]}
    result = train(ranks / "rank64_s2", own, seeds=[2], control=False)
    train(ranks / "rank4_s1")  # a whole campaign is no cell
    board = now_of(ranks).matrix
    ((whole, pending), (_, cell), _) = board.rows
    assert (cell.status, cell.score) == ("ok", result.state.generations[0].score(0))
    assert (whole.status, pending.status) == ("damaged", "pending")
    assert board.campaign == TERMS


def test_a_damaged_run_is_said_and_hides_no_other(train: Train, ranks: Path) -> None:
    for seed in (1, 2):
        train(ranks / f"rank4_s{seed}", {"noise": [0.01]}, seeds=[seed], control=False)
    (ledger,) = (ranks / "rank4_s2").rglob(LEDGER)
    data = bytearray(ledger.read_bytes())
    data[len(data) // 2] ^= 1
    ledger.write_bytes(data)
    board = now_of(ranks)
    assert [cell.status for cell in board.matrix.rows[0]] == ["ok", "damaged"]
    assert board.matrix.rows[0][1].note


def test_a_manifest_that_makes_no_sense_is_refused_by_name(ranks: Path) -> None:
    (ranks / "manifest.json").write_text('{"name": "odd"}')
    with pytest.raises(ValueError, match=r"manifest.json is not a campaign's manifest: kind: "):
        now_of(ranks)
