"""Which runs are meant."""

import shutil
from pathlib import Path

import orjson
import pytest

from orchestrator.compare.places import places
from orchestrator.records.manifest import MANIFEST

GOLDEN = Path(__file__).parents[2] / "golden"


@pytest.fixture
def root(tmp_path: Path, finished_run: Path) -> Path:
    """Three runs: `a`, `b` and `c`."""
    for name in "abc":
        shutil.copytree(finished_run, tmp_path / "phase1" / name)
    return tmp_path


def test_runs_are_named_by_id_or_directory(root: Path) -> None:
    own = root / "phase1"
    assert places(["a", str(own / "b")], root) == [own / "a", own / "b"]


def test_a_run_that_is_named_twice_is_there_once(root: Path) -> None:
    own = root / "phase1"
    assert places(["a", str(own / "a"), "c"], root) == [own / "a", own / "c"]


def test_one_run_has_nothing_to_be_compared_with(root: Path) -> None:
    with pytest.raises(ValueError, match=r"expected 2 to 20 different runs to compare, got 1$"):
        places(["a", "a"], root)


def test_more_runs_than_can_be_looked_at_are_refused(root: Path) -> None:
    for number in range(21):
        shutil.copytree(root / "phase1/a", root / f"phase1/more{number}")
    with pytest.raises(ValueError, match="got 21"):
        places([f"more{number}" for number in range(21)], root)


def test_what_is_no_run_is_named(root: Path) -> None:
    with pytest.raises(ValueError, match=r"no run 'nothing' in"):
        places(["a", "nothing"], root)
    with pytest.raises(ValueError, match=r"no run 'nothng-like' in .* \(\d runs there\): name"):
        places(["a", "nothng-like"], root)
    (root / "phase1/a").rename(root / "phase1/momentum-s1")
    with pytest.raises(ValueError, match=r"or say --runs-dir\. Did you mean momentum-s1\?$"):
        places(["momentm-s1"], root)
    (root / "phase1/momentum-s1").rename(root / "phase1/a")
    with pytest.raises(ValueError, match="no run"):
        places(["a", str(root)], root)


def test_a_campaign_of_runs_is_all_of_its_runs(root: Path) -> None:
    campaign = root / "campaign/many"
    campaign.mkdir(parents=True)
    runs = [
        {"name": name, "condition": name, "seed": 1, "directory": f"../../phase1/{name}"}
        for name in ("a", "b", "not-begun")
    ]
    manifest = {"name": "many", "kind": "search", "total_runs": 3, "runs": runs}
    (campaign / MANIFEST).write_bytes(orjson.dumps(manifest))
    found = places(["many"], root)
    assert found == [root / "phase1/a", root / "phase1/b"]
    assert len(places(["many", "c"], root)) == 3


def test_a_campaign_in_one_ledger_is_compared_by_its_report(root: Path) -> None:
    shutil.copytree(GOLDEN / "schema_5_campaign", root / "campaign/one")
    with pytest.raises(ValueError, match="whose conditions its report compares"):
        places(["one"], root)
