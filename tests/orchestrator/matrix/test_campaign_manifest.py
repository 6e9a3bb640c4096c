"""`manifest.json`, written and read."""

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from orchestrator.look.reports import rebuild
from orchestrator.records.manifest import Manifest, read_manifest, refresh, source_of
from orchestrator.records.runs import Result

Train = Callable[..., Result]


def manifest_in(directory: Path) -> Manifest:
    found = read_manifest(directory)
    assert found is not None
    return found


def test_a_campaign_leaves_a_manifest_of_all_its_runs(train: Train, tmp_path: Path) -> None:
    result = train(tmp_path)
    found = manifest_in(result.directory)
    assert (found.name, found.kind, found.total_runs) == ("toy", "training", 15)
    assert found.controls == ("default_base",)
    assert found.seeds == (1, 2, 3)
    assert found.conditions[0]["settings"] == {"noise": 0.01, "dimension": 2}
    assert [(f.name, f.levels) for f in found.factors] == [
        ("noise", ("0.01", "0.02")),
        ("dimension", ("2", "3")),
    ]
    assert found.statuses == {"ok": 15}
    assert found.ledger == {"records": result.state.records, "head": result.state.head}
    assert all((result.directory / run.directory).is_dir() for run in found.runs)


def test_the_file_it_came_from_outlives_a_rebuild(train: Train, tmp_path: Path) -> None:
    result = train(tmp_path)
    file = tmp_path / "toy.toml"
    file.write_text("[campaign]\n")
    refresh(result.directory, result.state, source_of(file))
    rebuild(result.directory, datetime.now(UTC))
    found = manifest_in(result.directory)
    assert found.file == str(file)
    assert found.sha256 == hashlib.sha256(b"[campaign]\n").hexdigest()


@pytest.mark.parametrize(
    ("runs", "why"),
    [
        ([{"name": "x", "directory": "/etc", "condition": "x", "seed": 1}], "a relative path"),
        (2 * [{"name": "x", "directory": "x", "condition": "x", "seed": 1}], "there twice"),
        ([{"name": "x"}], "Field required"),
    ],
)
def test_a_manifest_that_makes_no_sense_is_refused_by_name(
    tmp_path: Path, runs: list[dict[str, Any]], why: str
) -> None:
    document = {"name": "odd", "total_runs": len(runs), "runs": runs}
    (tmp_path / "manifest.json").write_bytes(orjson.dumps(document))
    with pytest.raises(ValueError, match=rf"manifest.json is no campaign's manifest: .*{why}"):
        read_manifest(tmp_path)
