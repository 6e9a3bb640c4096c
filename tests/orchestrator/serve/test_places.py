import json
from pathlib import Path

import pytest

from budgets.ledger.chain import LEDGER
from orchestrator.serve.places import DEEPEST, Places, identifier, places


def run(root: Path, name: str) -> Path:
    directory = root / name
    directory.mkdir(parents=True)
    (directory / LEDGER).write_bytes(b"")
    return directory


def test_runs_are_found_in_their_phases_and_in_campaigns_of_runs(tmp_path: Path) -> None:
    found = [
        run(tmp_path, "calibration/base"),
        run(tmp_path, "campaign/sizes"),
        run(tmp_path, "campaign/widths/wide-s1/runs/phase1/min-sphere-s1"),
        run(tmp_path, "phase1/min-sphere-s1"),
    ]
    assert places(tmp_path) == Places(tuple(found), is_all=True)


def test_a_run_itself_is_the_one_that_is_found(tmp_path: Path) -> None:
    alone = run(tmp_path, "phase1/min-sphere-s1")
    assert places(alone).directories == (alone,)


def test_the_runs_of_a_campaign_are_where_its_manifest_says(tmp_path: Path) -> None:
    cells = [run(tmp_path, "phase1/wide_s1"), run(tmp_path, "phase1/wide_s2/runs/phase1/own")]
    run(tmp_path, "phase1/other")
    campaign = tmp_path / "campaign/widths"
    campaign.mkdir(parents=True)
    names = ("wide_s1", "wide_s2", "wide_s3")
    runs = [
        {"name": name, "directory": f"../../phase1/{name}", "condition": "wide", "seed": seed}
        for seed, name in enumerate(names)
    ]
    manifest = {"name": "widths", "kind": "search", "total_runs": 3, "runs": runs}
    (campaign / "manifest.json").write_text(json.dumps(manifest))
    assert places(campaign).directories == tuple(cells)


def test_a_manifest_of_another_kind_is_no_campaign(tmp_path: Path) -> None:
    own = run(tmp_path, "own")
    (tmp_path / "manifest.json").write_text('{"version": 3}')
    assert places(tmp_path).directories == (own,)


def test_what_lies_in_a_run_is_no_run_of_its_own(tmp_path: Path) -> None:
    outer = run(tmp_path, "phase1/outer")
    run(outer, "eval/gen_0000")
    run(tmp_path, "phase1/without-a-ledger/eval/gen_0000")
    assert places(tmp_path).directories == (outer,)


def test_what_is_set_aside_or_hidden_is_left_out(tmp_path: Path) -> None:
    run(tmp_path, "phase1/old.damaged")
    run(tmp_path, "phase1/old.salvaged.2")
    run(tmp_path, ".trash/phase1/old")
    assert places(tmp_path).directories == ()


def test_no_link_is_followed_but_a_linked_ledger_is_found_to_be_complained_of(
    tmp_path: Path,
) -> None:
    elsewhere = run(tmp_path, "elsewhere/phase1/run")
    root = tmp_path / "root"
    linked = root / "phase1/linked"
    linked.mkdir(parents=True)
    (linked / LEDGER).symlink_to(elsewhere / LEDGER)
    (root / "phase1/link").symlink_to(elsewhere)
    (root / "loop").symlink_to(root)
    assert places(root).directories == (linked,)


def test_it_looks_only_so_deep(tmp_path: Path) -> None:
    deep = run(tmp_path, "/".join("abcdefgh"[:DEEPEST]))
    run(tmp_path, "/".join("zbcdefgh"[: DEEPEST + 1]))
    assert places(tmp_path).directories == (deep,)


def test_it_says_when_there_is_too_much_to_look_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.serve.places.MOST_DIRECTORIES", 3)
    for number in range(4):
        run(tmp_path, f"phase1/run-{number}")
    found = places(tmp_path)
    assert not found.is_all
    assert len(found.directories) == 1


def test_what_cannot_be_looked_into_is_left_out(tmp_path: Path) -> None:
    assert places(tmp_path / "gone") == Places((), is_all=True)


def test_an_id_says_nothing_of_the_path_and_stays(tmp_path: Path) -> None:
    one, other = tmp_path / "a", tmp_path / "b"
    assert identifier(one) == identifier(tmp_path / "a")
    assert identifier(one) != identifier(other)
    assert len(identifier(one)) == 16
    assert set(identifier(one)) <= set("0123456789abcdef")


def test_a_path_that_is_no_text_has_an_id_too(tmp_path: Path) -> None:
    assert identifier(tmp_path / "\udcff") != identifier(tmp_path / "\udcfe")
