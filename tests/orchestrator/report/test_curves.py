"""Loss curves from what evaluations said while they ran, believed only as far as they can be."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.execution.attempts import METRICS
from orchestrator.records.recorded import load_state
from orchestrator.report import curves as module
from orchestrator.report.curves import MOST_POINTS, Source, curves, read_curve
from orchestrator.report.model import Curve

Say = Callable[..., Source]


@pytest.fixture
def say(tmp_path: Path) -> Say:
    """`say(line, ...)`: an evaluation that left these lines."""

    def saying(*lines: object) -> Source:
        path = tmp_path / "eval/gen_0000/cand_0000/seed_7" / METRICS
        path.parent.mkdir(parents=True)
        text = (line if isinstance(line, str) else json.dumps(line) for line in lines)
        path.write_text("".join(f"{line}\n" for line in text))
        return Source("baseline", 7, tmp_path, "eval/gen_0000/cand_0000/seed_7")

    return saying


def found(source: Source, score: str = "") -> Curve:
    curve = read_curve(source, score)
    assert curve is not None
    return curve


def test_steps_with_a_loss_are_a_curve(say: Say) -> None:
    curve = found(say({"t": 1, "step": 10, "loss": 3.5}, {"t": 2, "step": 20, "loss": 3.0}))

    assert (curve.steps, curve.values) == ((10.0, 20.0), (3.5, 3.0))
    assert (curve.name, curve.seed, curve.quantity) == ("baseline", 7, "train loss")


@pytest.mark.parametrize("step", ["step", "iteration", "global_step"])
@pytest.mark.parametrize("loss", ["loss", "train_loss"])
def test_programs_may_call_them_otherwise(say: Say, step: str, loss: str) -> None:
    assert found(say({step: 1, loss: 2.0}, {step: 2, loss: 1.0})).values == (2.0, 1.0)


def test_where_no_loss_is_said_the_score_on_the_way_is_shown(say: Say) -> None:
    source = say({"step": 1, "val_bpb": 2.0}, {"step": 2, "val_bpb": 1.5})

    assert read_curve(source) is None
    assert found(source, "val_bpb").quantity == "val_bpb"


def test_a_beat_without_both_says_nothing(say: Say) -> None:
    source = say({}, {"step": 1}, {"loss": 9.0}, {"step": 2, "loss": 2.0}, {"step": 3, "loss": 1.0})

    assert found(source).steps == (2.0, 3.0)


@pytest.mark.parametrize(
    "line",
    ['{"step": 3, "loss": 1', "[1, 2]", "null", '{"step": true, "loss": 5.0}', "\x00\x1b[2J",
     '{"step": 3, "loss": "2.0"}', '{"step": 3, "loss": NaN}', '{"step": 3, "loss": 1e999}',
     '{"step": 1, "loss": 7.0}', '{"step": 3, "loss": ' + "[" * 5000, ""],
)  # fmt: skip
def test_what_is_no_step_with_a_finite_loss_is_passed_over(say: Say, line: str) -> None:
    source = say({"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.5}, line)

    assert found(source).values == (2.0, 1.5)


def test_a_long_curve_is_thinned_and_keeps_its_ends(say: Say) -> None:
    curve = found(say(*({"step": step, "loss": 1 / step} for step in range(1, 3001))))

    assert len(curve.steps) == MOST_POINTS
    assert (curve.steps[0], curve.steps[-1]) == (1.0, 3000.0)
    assert all(value == 1 / step for step, value in zip(curve.steps, curve.values, strict=True))


def test_one_point_is_no_curve(say: Say) -> None:
    assert read_curve(say({"step": 1, "loss": 2.0})) is None


def test_a_file_that_is_too_large_is_left_alone(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    source = say({"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.5})
    monkeypatch.setattr(module, "MOST_BYTES", 20)

    assert read_curve(source) is None


def train(run: Path, place: str, *losses: float) -> None:
    """Leave a curve where an evaluation of the run ended."""
    lines = (json.dumps({"step": i, "loss": loss}) for i, loss in enumerate(losses))
    (run / place / METRICS).write_text("".join(f"{line}\n" for line in lines))


def places(run: Path, pattern: str) -> list[str]:
    return sorted(str(path.relative_to(run)) for path in run.glob(f"eval/{pattern}"))


def test_baseline_recommended_and_best_are_shown_on_one_seed(confirmed: Path) -> None:
    for place in places(confirmed, "*/*/seed_*"):
        train(confirmed, place, 3.0, 2.0)

    shown, why = curves(confirmed, load_state(confirmed))

    assert why == ""
    assert [curve.name for curve in shown] == ["baseline", "recommended", "best of the search"]
    assert shown[0].seed == shown[1].seed


def test_what_is_gone_is_looked_for_on_the_next_seed(confirmed: Path) -> None:
    state = load_state(confirmed)
    winner = state.panels["winner", 0]
    last = winner.seeds_of(0)[-1]
    train(confirmed, f"eval/winner_0000/cand_0000/seed_{last}", 3.0, 2.0)

    shown, _ = curves(confirmed, state)

    assert [(curve.name, curve.seed) for curve in shown] == [("recommended", last)]


def test_without_a_comparison_the_baseline_is_that_of_the_calibration(run: Path) -> None:
    (calibration,) = (run.parents[1] / "calibration").iterdir()
    place = places(calibration, "*/*/seed_*")[3]
    train(calibration, place, 4.0, 3.0)

    shown, _ = curves(run, load_state(run))
    own, _ = curves(calibration, load_state(calibration))

    assert [(curve.name, curve.values) for curve in shown] == [("baseline", (4.0, 3.0))]
    assert place.endswith(f"seed_{shown[0].seed}")
    assert [curve.name for curve in own] == ["baseline"]


def test_a_calibration_of_another_run_is_not_its_baseline(run: Path) -> None:
    (calibration,) = (run.parents[1] / "calibration").iterdir()
    train(calibration, places(calibration, "*/*/seed_*")[0], 4.0, 3.0)
    (calibration / "head.json").write_text('{"seq":10,"h":"0123456789abcdef0123456789abcdef"}')

    assert curves(run, load_state(run))[0] == ()


def test_without_any_curve_the_reason_is_said(run: Path) -> None:
    assert curves(run, load_state(run)) == (
        (),
        "no evaluation that was looked at left its steps with a loss",
    )


def test_a_campaign_shows_its_controls_first_then_the_best(campaign: Path) -> None:
    state = load_state(campaign)
    (generation,) = state.generations
    for candidate, seed in generation.evaluations():
        place = f"eval/gen_0000/cand_{candidate:04d}/seed_{seed}"
        (campaign / place).mkdir(parents=True)
        train(campaign, place, 3.0, 2.0)

    shown, _ = curves(campaign, state)

    controls = [c.name for c in generation.conditions if c.control]
    assert [curve.name for curve in shown][: len(controls)] == controls
    assert len(shown) == len(generation.conditions)
    assert {curve.seed for curve in shown} == {generation.seeds[0]}
