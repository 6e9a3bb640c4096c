"""How a campaign stands, seen from beside it: from one ledger, or from those of its runs."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from budgets.effects import Matrix
from budgets.ledger import LEDGER, read
from budgets.plan import CampaignPlan, Condition
from orchestrator.look.compare import Exported, exported
from orchestrator.look.run import Run
from orchestrator.matrix.manifest import MANIFEST, Manifest, ManifestRun
from orchestrator.records.runs import Result, load_state

Train = Callable[..., Result]
Cut = Callable[[Path, int], None]


# In one ledger


def test_a_campaign_leaves_a_manifest_of_all_its_runs(train: Train, tmp_path: Path) -> None:
    result = train(tmp_path)
    found = Manifest.model_validate_json((result.directory / MANIFEST).read_bytes())
    assert (found.name, found.kind, found.total_runs) == ("toy", "training", 15)
    assert found.campaign == result.state.plan.campaign
    assert [run.control for run in found.runs].count(True) == 3
    assert all((result.directory / run.directory).is_dir() for run in found.runs)


def run_at(directory: Path, seconds: float) -> Run:
    """So long after its last record."""
    last = datetime.fromisoformat(read(directory / LEDGER)[-1].at)
    return Run(load_state(directory), last + timedelta(seconds=seconds), directory)


def matrix_at(directory: Path, seconds: float) -> Matrix:
    matrix = run_at(directory, seconds).matrix
    assert matrix is not None
    return matrix


def test_one_that_runs_shows_what_is_in_flight(train: Train, cut: Cut, tmp_path: Path) -> None:
    directory = train(tmp_path).directory
    cut(directory, 4)
    run, matrix = run_at(directory, 41), matrix_at(directory, 41)
    cell = matrix.rows[1][1]
    assert cell.status == "running"
    assert matrix.counts == {"ok": 4, "running": 1, "pending": 10}
    assert run.campaign is not None
    assert not run.campaign.is_over


def test_one_whose_process_is_gone_has_nothing_in_flight(
    train: Train, cut: Cut, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = train(tmp_path).directory
    cut(directory, 4)
    monkeypatch.setattr("orchestrator.records.standing.owner_is_gone", lambda owner: True)
    assert matrix_at(directory, 1).counts == {"ok": 4, "pending": 11}


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


def test_runs_that_nobody_has_begun_are_pending(ranks: Path) -> None:
    board = now_of(ranks)
    assert board.matrix.counts == {"pending": 6}
    assert board.matrix.campaign == TERMS


def test_a_training_in_its_own_runs_directory_is_a_cell_with_its_score(
    train: Train, ranks: Path
) -> None:
    own = {"noise": [0.01]}
    result = train(ranks / "rank64_s2", own, seeds=[2], control=False)
    train(ranks / "rank4_s1")  # a whole campaign is no cell
    ((whole, _), (_, cell), _) = now_of(ranks).matrix.rows
    assert (cell.status, cell.score) == ("ok", result.state.generations[0].score(0))
    assert whole.status == "damaged"


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
    with pytest.raises(ValueError, match=r"manifest.json is not a campaign's manifest: .*required"):
        now_of(ranks)
