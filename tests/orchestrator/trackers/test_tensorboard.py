"""What TensorBoard itself reads from the files that it is left."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from budgets.ledger.chain import LEDGER
from orchestrator.records.recorded import load_state
from orchestrator.trackers import follow
from orchestrator.trackers.figures import Figures
from orchestrator.trackers.place import Answer, Place
from tests.orchestrator.trackers.conftest import tell_in_process

AllFigures = Callable[[Path], list[Figures]]
CurvesOf = Callable[[list[Figures]], dict[str, dict[int, float]]]
Tell = Callable[..., Answer]


def read_back(run: Path) -> Any:
    """As TensorBoard shows it."""
    with warnings.catch_warnings(action="ignore"):  # of the library about itself
        from tensorboard.backend.event_processing import event_accumulator as events

        found = events.EventAccumulator(
            str(run / "trackers/tensorboard"), size_guidance={events.SCALARS: 0, events.TENSORS: 0}
        )
        found.Reload()
    return found


def scalars(run: Path) -> dict[str, list[tuple[int, float]]]:
    found = read_back(run)
    return {
        name: [(event.step, event.value) for event in found.Scalars(name)]
        for name in found.Tags()["scalars"]
    }


def expected(figures: dict[str, dict[int, float]]) -> dict[str, Any]:
    return {
        name: [(step, pytest.approx(value, rel=1e-6)) for step, value in values.items()]
        for name, values in figures.items()
    }


def text(run: Path, tag: str) -> str:
    *_, event = read_back(run).Tensors(f"{tag}/text_summary")
    return str(event.tensor_proto.string_val[0].decode())


@pytest.mark.needs("tensorboard")
def test_every_figure_can_be_read_back_with_its_step_and_moment(
    tracked: Path,
    told: Tell,
    alone: list[str],
    all_figures: AllFigures,
    curves: CurvesOf,
) -> None:
    assert told(tracked, "tensorboard") == Answer(records=39)
    figures = all_figures(tracked)
    assert scalars(tracked) == expected(curves(figures))
    (first, *_) = read_back(tracked).Scalars("score")
    assert first.wall_time == pytest.approx(figures[0].at)
    assert not alone
    assert not any(Path(tracked, "../home").iterdir())


@pytest.mark.needs("tensorboard")
def test_the_plan_and_the_summary_are_text_that_is_no_markup(tracked: Path, told: Tell) -> None:
    told(tracked, "tensorboard")
    assert "| run_id | min-sphere-s1 |" in text(tracked, "plan")
    assert "| objective/settings/noise | 0.001 |" in text(tracked, "plan")
    assert f"| ledger/head | {load_state(tracked).head} |" in text(tracked, "summary")
    assert "| decision | done |" in text(tracked, "summary")


def test_files_are_for_nobody_else_to_read(tracked: Path, told: Tell) -> None:
    told(tracked, "tensorboard")
    made = [path for path in (tracked / "trackers").rglob("*") if path.is_file()]
    assert made
    assert {path.stat().st_mode & 0o077 for path in made} == {0}


def in_process(run: Path, dies_at: int | None = None) -> None:
    with warnings.catch_warnings(action="ignore"):
        from orchestrator.trackers.tensorboard import TensorBoard
    sink = TensorBoard()
    try:
        tell_in_process(Place(run, "tensorboard"), sink, dies_at)
    finally:
        sink._writer.close()  # as the kernel does for the dead


@pytest.mark.needs("tensorboard")
@pytest.mark.parametrize("dies_at", [1, 2, 4])
def test_after_a_death_no_curve_is_doubled_and_none_has_a_gap(
    tracked: Path,
    monkeypatch: pytest.MonkeyPatch,
    all_figures: AllFigures,
    curves: CurvesOf,
    dies_at: int,
) -> None:
    monkeypatch.setattr(follow, "BATCH", 4)
    with pytest.raises(KeyboardInterrupt):
        in_process(tracked, dies_at)
    in_process(tracked)
    assert scalars(tracked) == expected(curves(all_figures(tracked)))


@pytest.mark.needs("tensorboard")
def test_a_run_that_goes_on_continues_its_curves(
    tracked: Path, cut: Callable[..., None], all_figures: AllFigures, curves: CurvesOf
) -> None:
    whole = (tracked / LEDGER).read_bytes()
    cut(tracked, 20)
    in_process(tracked)
    assert "| decision | continue |" in text(tracked, "summary")
    (tracked / LEDGER).write_bytes(whole)
    in_process(tracked)
    assert scalars(tracked) == expected(curves(all_figures(tracked)))
    assert "| decision | done |" in text(tracked, "summary")
    assert len(list((tracked / "trackers/tensorboard").iterdir())) == 2


@pytest.mark.needs("tensorboard")
def test_what_was_deleted_is_made_again(
    tracked: Path, all_figures: AllFigures, curves: CurvesOf, cut: Callable[..., None]
) -> None:
    whole = (tracked / LEDGER).read_bytes()
    cut(tracked, 20)
    in_process(tracked)
    for path in (tracked / "trackers/tensorboard").iterdir():
        path.unlink()
    (tracked / LEDGER).write_bytes(whole)
    in_process(tracked)
    assert scalars(tracked) == expected(curves(all_figures(tracked)))
