"""The best checkpoint of a search: one, whole, and the lowest score's."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from objectives.api import SetupError
from objectives.checkout.best import keep_if_best


@pytest.fixture
def made(tmp_path: Path) -> Any:
    """`made(score)`: a checkpoint that says so."""

    def make(score: float) -> Path:
        place = tmp_path / f"made{score}"
        place.mkdir()
        (place / "model.pt").write_text(str(score))
        return place

    return make


def held(place: Path) -> tuple[float, str]:
    """What `best.json` says, and what is there."""
    best = json.loads((place / "best.json").read_text())
    (checkpoint,) = (path for path in place.iterdir() if path.is_dir())
    assert checkpoint.name == best["checkpoint"]
    return best["score"], (checkpoint / "model.pt").read_text()


def test_the_lowest_score_so_far_is_kept_and_no_other(tmp_path: Path, made: Any) -> None:
    place = tmp_path / "kept/here"
    for score, kept in ((3.0, True), (3.5, False), (2.5, True), (2.5, False), (2.0, True)):
        assert keep_if_best(place, made(score + kept / 100), {"score": score}) is kept
    assert held(place) == (2.0, "2.01")


def test_of_many_at_once_the_best_is_kept_whole(tmp_path: Path, made: Any) -> None:
    checkpoints = {score / 10: made(score / 10) for score in range(20, 40)}
    with ThreadPoolExecutor(8) as pool:
        list(
            pool.map(
                lambda one: keep_if_best(tmp_path / "kept", one[1], {"score": one[0]}),
                reversed(checkpoints.items()),
            )
        )
    assert held(tmp_path / "kept") == (2.0, "2.0")


@pytest.mark.parametrize("torn", ["", "{", '{"score": "low", "checkpoint": "checkpoint-a"}', "[]"])
def test_a_torn_record_is_as_none(torn: str, tmp_path: Path, made: Any) -> None:
    keep_if_best(tmp_path / "kept", made(2.0), {"score": 2.0})
    (tmp_path / "kept/best.json").write_text(torn)
    assert keep_if_best(tmp_path / "kept", made(3.0), {"score": 3.0})
    score, text = (
        json.loads((tmp_path / "kept/best.json").read_text())["score"],
        [path.read_text() for path in tmp_path.glob("kept/checkpoint-*/model.pt")],
    )
    assert (score, text) == (3.0, ["3.0"])


def test_what_somebody_left_who_was_killed_is_replaced(tmp_path: Path, made: Any) -> None:
    keep_if_best(tmp_path / "kept", made(2.0), {"score": 2.0})
    (tmp_path / "kept/checkpoint-a").mkdir(exist_ok=True)
    (tmp_path / "kept/checkpoint-b").mkdir(exist_ok=True)
    assert keep_if_best(tmp_path / "kept", made(1.0), {"score": 1.0})
    assert held(tmp_path / "kept") == (1.0, "1.0")


def test_a_place_where_nothing_can_be_kept_is_a_fault_of_the_setup(
    tmp_path: Path, made: Any
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SetupError, match=r"cannot keep the best in .*/file/kept"):
        keep_if_best(tmp_path / "file/kept", made(1.0), {"score": 1.0})


def test_evaluations_of_a_search_share_a_place(load: Any, attempts: Any, tmp_path: Path) -> None:
    objective = load(keep="best", checkpoints=str(tmp_path / "kept"), space="matrix-lr")
    for rate in (0.02, 0.06, 0.01):
        attempts.evaluate(objective, seed=3, matrix_lr=rate)
        assert {path.name for path in attempts.last.iterdir()} == {
            "program.json",
            "meta_000008.json",
        }
    place = tmp_path / "kept" / objective.fingerprint[:10]
    best = json.loads((place / "best.json").read_text())
    assert (best["knobs"], best["seed"], best["steps"]) == ({"matrix-lr": 0.06}, 3, 8)
    assert best["arguments"] == ["--matrix-lr=0.06"]
    kept = sorted(path.name for path in (place / best["checkpoint"]).iterdir())
    assert kept == ["meta_000008.json", "model_000008.pt", "optim_000008_rank0.pt"]
    assert sorted(path.name for path in place.iterdir()) == [
        ".lock",
        "best.json",
        best["checkpoint"],
    ]


def test_a_checkout_that_saves_nothing_cannot_keep_its_best(
    load: Any, attempts: Any, tmp_path: Path
) -> None:
    with pytest.raises(SetupError, match="expected the checkpoint of step 8 in one directory"):
        attempts.evaluate(load(keep="best", checkpoints=str(tmp_path / "kept"), trap="no meta"))
