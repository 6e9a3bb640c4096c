"""`best --train`: one longer training of what a search recommends, as a run of its own."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from budgets.ledger import HEAD, LEDGER, read
from budgets.state import RunState
from objectives import registry
from orchestrator.best.training import training_name
from orchestrator.planning.seeds import training_seeds
from orchestrator.records.planned import objective_of
from orchestrator.records.recorded import load_state
from orchestrator.verification.verify import verify

if TYPE_CHECKING:
    from tests.conftest import Answer, Command
    from tests.orchestrator.best.conftest import Lines, Tamper

NAME = "best-confirmed-x4"
TRAIN = ("best", "confirmed", "--train", "--executor", "inline", "--workers", "1")


@pytest.fixture
def training(confirmed: Path) -> Path:
    """Where the training lies that is to come."""
    return confirmed.parent.parent / "campaign" / NAME


@pytest.fixture
def train(confirmed: Path, command: "Command") -> "Callable[..., Answer]":
    return lambda *more: command(*TRAIN, *more)


Train = Callable[..., "Answer"]


def used(state: RunState) -> set[int]:
    return {seed for batch in state.batches() for _, seed in batch.evaluations()}


def test_it_is_a_run_of_one_condition_at_the_recommendation_on_a_fresh_seed(
    training: Path, confirmed: Path, train: Train
) -> None:
    answer = train()
    assert answer.code == 0, answer.err
    state, search = load_state(training), load_state(confirmed)
    assert search.decided is not None
    (condition,) = state.generations[0].conditions
    assert condition.name == "recommended"
    assert condition.settings == {"effort": 4.0}
    assert condition.point == search.decided.point == state.generations[0].points[0]
    assert not used(state) & used(search)
    (result,) = state.generations[0].results()
    objective = objective_of(search.plan)
    assert registry.varied(objective.spec, {"effort": 4.0}).settings["effort"] == 4.0
    assert result.score is not None
    assert f"recommended scores {result.score:.5g} with 4 x effort on fresh seed" in answer.out
    assert "Files of seed" in answer.out


def test_what_was_predicted_and_how_the_baseline_did_are_told(training: Path, train: Train) -> None:
    said = train().out
    assert "Confirmed: Go; persistence not shown, by 2 fresh seeds." in said
    assert "In the search, on fresh seeds, it gained +" in said
    assert "The baseline scored " in said
    assert "with 4 x effort in the search, on 1 other seed." in said
    assert "--compare trains it too" in train("--times", "2").out


def test_the_baseline_beside_it_is_a_control_on_the_same_seeds(
    training: Path, train: Train
) -> None:
    answer = train("--compare", "--seeds", "2", "--json")
    document = orjson.loads(answer.out)["training"]
    state = load_state(training)
    recommended, control = state.generations[0].conditions
    assert (control.name, control.control, control.point) == ("default_base", True, None)
    assert control.knobs == {"x0": 0.0, "x1": 0.0}
    assert recommended.settings == control.settings
    assert document["score"] == pytest.approx(sum(document["scores"]) / 2)
    assert all(b > s for s, b in zip(document["scores"], document["baseline_scores"], strict=True))
    assert document["difference"]["mean"] < 0
    assert set(document["files"]) == {str(seed) for seed in document["seeds"]}
    assert all(Path(place).is_dir() for place in document["files"].values())


def test_one_seed_is_no_evidence(training: Path, train: Train) -> None:
    assert "than default_base: one seed cannot tell that from luck." in train("--compare").out


def test_its_limits_are_the_search_s_stretched_unless_one_is_asked_for(
    training: Path, confirmed: Path, train: Train
) -> None:
    assert train().code == 0
    limits = load_state(training).plan.limits
    assert limits.wall_seconds == load_state(confirmed).plan.limits.wall_seconds
    assert train("--set", "evaluation.limit_seconds=100", "--run-id", "other").code == 0
    state = load_state(training.with_name("other"))
    length = state.generations[0].length(0)
    assert state.plan.limits.stretched(length).wall_seconds == 100


def test_it_is_paid_for_within_caps_of_its_own(training: Path, train: Train) -> None:
    answer = train("--max-device-hours", "0.0001", "--set", "budget.price_per_device_hour=3")
    assert answer.code == 4
    assert "Stopped: " in answer.out
    state = load_state(training)
    assert state.accounts.caps.device_hours == 0.0001
    assert state.plan.price_per_device_hour == 3
    assert not state.accounts.holds


def test_every_record_it_is_killed_after_leads_to_the_same_training(
    training: Path, train: Train, found: Callable[[Path], dict[str, Any]]
) -> None:
    assert train("--compare").code == 0
    whole, essence = read(training / LEDGER).records, found(training)
    for count in range(1, len(whole)):
        data = b"".join(record.line + b"\n" for record in whole[:count])
        (training / LEDGER).write_bytes(data)
        (training / HEAD).unlink(missing_ok=True)
        assert train("--compare").code == 0
        assert found(training) == essence
        assert verify(training).divergence is None


def test_the_same_command_only_shows_a_training_that_is_over(training: Path, train: Train) -> None:
    first = train()
    data = (training / LEDGER).read_bytes()
    assert train().out.endswith("".join(first.out.splitlines(keepends=True)[-6:]))
    assert (training / LEDGER).read_bytes() == data


def test_verify_holds_and_finds_a_point_that_the_search_never_recommended(
    training: Path, train: Train, tamper: "Tamper"
) -> None:
    assert train().code == 0
    held = verify(training)
    assert held.divergence is None
    assert "training: confirmed had found the point that is trained" in held.held

    def forge(lines: "Lines") -> None:
        point = [0.25, 0.25]
        condition = lines[0]["event"]["plan"]["campaign"]["conditions"][0]
        condition.update(point=point, knobs={"x0": -0.5, "x1": -0.5})
        next(x for x in lines if x["event"]["kind"] == "generation_asked")["event"]["points"] = [
            point
        ]

    (training / "reports").mkdir()  # which a campaign has none of
    tamper(training, forge)
    assert "what is trained is not what confirmed had found" in str(verify(training).divergence)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"point": [0.25, 0.25]}, "with other knobs than its settings give"),
        ({"knobs": {"x0": 0.0, "x1": 0.0}}, "with other knobs than its settings give"),
        ({"point": [0.25]}, "expected 2 coordinates, got 1"),
        ({"point": [0.25, 1.5]}, "expected a point of the unit cube"),
    ],
    ids=["point", "knobs", "dimension", "cube"],
)
def test_a_forged_condition_is_found(
    change: dict[str, Any], named: str, training: Path, train: Train, tamper: "Tamper"
) -> None:
    assert train().code == 0

    def forge(lines: "Lines") -> None:
        lines[0]["event"]["plan"]["campaign"]["conditions"][0].update(change)

    (training / "reports").mkdir()  # which a campaign has none of
    tamper(training, forge)
    assert named in str(verify(training).divergence)


def test_a_training_without_its_search_is_verified_as_far_as_it_can_be(
    training: Path, confirmed: Path, train: Train
) -> None:
    assert train().code == 0
    confirmed.rename(confirmed.with_name("elsewhere"))
    held = verify(training)
    assert held.divergence is None
    assert "training: the ledger of confirmed is not beside this run, or another one" in held.held


def test_other_options_are_another_training(training: Path, train: Train) -> None:
    assert train().code == 0
    answer = train("--compare")
    assert answer.code == 2
    assert "or give this training its own name with --run-id" in answer.err
    assert train("--compare", "--run-id", "compared").code == 0
    assert load_state(training.with_name("compared")).accounts.evaluations == 2


def test_after_a_no_go_nothing_is_trained_unless_it_is_asked_for_all_the_same(
    refuted: Path, command: "Command"
) -> None:
    line = ("best", "refuted", "--train", "--executor", "inline", "--workers", "1")
    refused = command(*line)
    assert refused.code == 2
    assert "the baseline is what is recommended" in refused.err
    assert "--anyway" in refused.err
    answer = command(*line, "--anyway")
    assert answer.code == 0, answer.err
    assert "No-Go, below noise: the baseline is what is recommended." in answer.out
    training = refuted.parent.parent / "campaign/best-refuted-x4"
    assert load_state(training).generations[0].conditions[0].name == "candidate"
    assert verify(training).divergence is None
    assert command(*line).code == 0  # begun, it is anybody's to take up


def test_what_nobody_confirmed_is_trained_and_called_so(command: "Command") -> None:
    here = ("--executor", "inline", "--workers", "1")
    sphere = ("--objective", "sphere", "--set", "dimension=2", "--assume-eval-seconds", "1")
    assert command("phase1", "--tier", "min", *sphere, *here).code == 0
    answer = command("best", "--train", *here)
    assert answer.code == 0, answer.err
    assert "Not confirmed: " in answer.out
    assert "Nothing says what the baseline scores there: --compare trains it too." in answer.out


def test_a_training_begun_before_the_search_went_on_keeps_its_point(
    training: Path, confirmed: Path, train: Train, cut: Callable[..., None]
) -> None:
    whole = (confirmed / LEDGER).read_bytes()
    asked = [b'"kind":"generation_told"' in line for line in whole.splitlines()]
    cut(confirmed, asked.index(True) + 1)
    assert train().code == 0
    before = load_state(training)
    (confirmed / LEDGER).write_bytes(whole)
    answer = train()
    assert answer.code == 0, answer.err
    assert "Not confirmed: confirmed has gone on since this was begun, and has found" in answer.out
    assert "it gained" not in answer.out
    assert load_state(training).head == before.head
    assert verify(training).divergence is None


def test_a_training_that_fails_is_no_success(
    training: Path, train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    import objectives.analytic

    monkeypatch.setattr(objectives.analytic, "MOST_EFFORT", 1e9)
    monkeypatch.setattr(
        objectives.analytic.AnalyticObjective, "_noise_free", lambda self, x: float("nan")
    )
    answer = train()
    assert answer.code == 4
    assert "recommended has no score with 4 x effort: 1 nan." in answer.out


def test_an_objective_that_scores_otherwise_now_is_not_trained(
    training: Path, confirmed: Path, train: Train, tamper: "Tamper"
) -> None:
    tamper(
        confirmed, lambda lines: lines[0]["event"]["plan"].update(objective_fingerprint="a" * 64)
    )
    answer = train()
    assert answer.code == 2
    assert "its data or its code has changed since" in answer.err
    assert not training.exists()


def test_seeds_are_fresh_also_against_those_that_the_search_has_not_come_to(
    confirmed: Path,
) -> None:
    state = load_state(confirmed)
    seeds = training_seeds(state, 50)
    assert len(set(seeds)) == 50
    assert not set(seeds) & used(state)
    assert training_seeds(state, 3) == seeds[:3]


@pytest.mark.parametrize(
    ("run_id", "factor", "name"),
    [
        ("min-sphere-s1", 4.0, "best-min-sphere-s1-x4"),
        ("min-sphere-s1", 2.5, "best-min-sphere-s1-x2.5"),
        ("min-sphere-s1", 1e9, "best-min-sphere-s1-x1e09"),
    ],
)
def test_a_training_is_named_after_its_search(run_id: str, factor: float, name: str) -> None:
    assert training_name(run_id, factor) == name


def test_the_longest_name_of_a_search_leaves_one_for_its_training() -> None:
    names = {training_name(f"{'a' * 63}{last}", 4.0) for last in "bc"}
    assert len(names) == 2
    assert all(len(name) <= 64 for name in names)
