"""An analysis reads what is there, and moves each knob around the recommendation when asked."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from budgets.events import Decided
from budgets.ledger.chain import LEDGER
from budgets.liveness import liveness
from budgets.verdict.finalists import recommendation, stood_for
from objectives import registry
from objectives.api import ObjectiveSpec
from objectives.space import Knob, SearchSpace
from orchestrator.analysis.analyze import LEAST_STEP, Analysis, analyze
from orchestrator.analysis.text import to_markdown
from orchestrator.checks.space import Around, CheckRequest, points_around
from orchestrator.planning.known_knobs import known_knobs
from orchestrator.planning.request import Request, family_of
from orchestrator.records.recorded import Result, load_state
from orchestrator.verification.verify import verify
from tests.ledgers import cut, events_of

RunSearch = Callable[..., Result]
RunCheck = Callable[..., Result]
Found = Callable[[Path], dict[str, Any]]

SETTINGS = {"dimension": 3, "noise": 0.01}
SPEC = ObjectiveSpec(name="idle", settings=SETTINGS)


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory, run_search: RunSearch) -> Path:
    """A search of tier target whose third knob does nothing."""
    root = tmp_path_factory.mktemp("searched")
    result = run_search(
        root, objective="idle", settings=SETTINGS, tier="target", assumed_seconds=1.0
    )
    return result.directory


@pytest.fixture(scope="module")
def analysis(searched: Path) -> Analysis:
    return analyze(load_state(searched))


# What is free


def test_an_analysis_is_of_the_recommendation_and_of_the_replayed_distribution(
    analysis: Analysis, searched: Path
) -> None:
    state = load_state(searched)
    assert analysis.recommendation == recommendation(state)
    assert analysis.landscape.sigma == state.generations[-1].told.sigma  # type: ignore[union-attr]
    assert analysis.landscape.favourite == state.generations[-1].told.favourite  # type: ignore[union-attr]
    assert analysis.first.deviations == pytest.approx((0.15,) * 3, rel=1e-3)
    assert analysis.head == state.head


def test_an_analysis_changes_nothing(searched: Path) -> None:
    before = {path: path.read_bytes() for path in searched.rglob("*") if path.is_file()}
    analyze(load_state(searched))
    assert {path: path.read_bytes() for path in searched.rglob("*") if path.is_file()} == before


def test_a_knob_that_does_nothing_does_not_stand_above_its_error(analysis: Analysis) -> None:
    assert analysis.estimate is not None
    assert "x2" not in analysis.estimate.names(stand=True)
    assert set(analysis.estimate.names(stand=True)) <= {"x0", "x1"}
    assert analysis.estimate.first > 0


def test_without_noise_the_knobs_that_move_the_score_stand_above_their_error(
    tmp_path: Path, run_search: RunSearch
) -> None:
    terms: dict[str, Any] = {"tier": "target", "max_evals": 70, "assumed_seconds": 1.0}
    state = run_search(tmp_path, objective="idle", settings={"dimension": 3}, **terms).state
    found = analyze(state).estimate
    assert found is not None
    assert set(found.names(stand=True)) == {"x0", "x1"}


def test_pairs_come_strongest_first(analysis: Analysis) -> None:
    pairs = analysis.pairs()
    assert {frozenset(pair[1:]) for pair in pairs} == {
        frozenset(p) for p in (("x0", "x1"), ("x0", "x2"), ("x1", "x2"))
    }
    assert [abs(r) for r, *_ in pairs] == sorted((abs(r) for r, *_ in pairs), reverse=True)


def test_chance_is_what_pure_noise_shows(analysis: Analysis) -> None:
    assert 0.2 < analysis.by_chance.correlation < 1.0
    assert analysis.by_chance.condition > 2.0


def test_a_shape_that_was_learned_is_in_the_document(analysis: Analysis) -> None:
    document = orjson.loads(orjson.dumps(analysis.as_dict()))
    landscape = document["landscape"]
    assert sum(landscape["shape"][i][i] for i in range(3)) == pytest.approx(3.0)
    assert landscape["scale"] > 0
    assert set(document["recommendation"]["knobs"]) == {"x0", "x1", "x2"}
    assert {k["knob"] for k in document["estimate"]["knobs"]} == {"x0", "x1", "x2"}


def test_a_run_that_is_no_search_or_has_finished_nothing_is_refused(
    tmp_path: Path, run_check: RunCheck, run_search: RunSearch, searched: Path
) -> None:
    with pytest.raises(ValueError, match="is a check: expected a search's run"):
        analyze(run_check(tmp_path, seeds=2).state)
    state = load_state(searched)
    state.told, state.decided = [], None
    with pytest.raises(ValueError, match="has finished no generation yet"):
        analyze(state)


def test_the_text_says_that_the_estimate_is_one_and_how_sure_it_is(analysis: Analysis) -> None:
    text = to_markdown(analysis)
    assert "Nothing was evaluated for this." in text
    assert "An estimate, not a measurement" in text
    assert "±" in text
    assert "Not above it:" in text
    few = to_markdown(replace(analysis, estimate=None))
    assert "are too few to tell what each of 3 knobs does: `--evaluate` measures it." in few


def test_where_nothing_is_recommended_it_is_of_what_the_search_stood_for(searched: Path) -> None:
    state = load_state(searched)
    state.decided = Decided(grade="no_go", no_go="below_noise", evidence="too little")
    found = analyze(state)
    assert (found.recommended, found.recommendation) == (False, stood_for(state))
    assert "The run recommends nothing" in to_markdown(found)


def test_correlations_are_named_beyond_chance_or_as_chance(analysis: Analysis) -> None:
    by_chance = replace(analysis, by_chance=replace(analysis.by_chance, correlation=1.0))
    assert "No two knobs go together beyond chance" in to_markdown(by_chance)
    beyond = replace(analysis, by_chance=replace(analysis.by_chance, correlation=0.0))
    assert "Knobs that go together: " in to_markdown(beyond)


# Which points a check around it evaluates


def test_a_step_is_one_standard_deviation_but_at_least_a_twentieth(analysis: Analysis) -> None:
    deviations = (0.3, 0.01, 0.05)
    wide = replace(analysis, landscape=replace(analysis.landscape, deviations=deviations))
    assert wide.around().steps == (0.3, LEAST_STEP, 0.05)
    assert wide.around().centre == analysis.recommendation


def space(*knobs: Knob) -> SearchSpace:
    return SearchSpace(knobs=knobs)


def around(centre: tuple[float, ...], *steps: float) -> Around:
    return Around("some-run", "0" * 32, centre, steps)


REAL = Knob(name="real", kind="linear", low=0.0, high=4.0, baseline=1.0)
WHOLE = Knob(name="whole", kind="int", low=1, high=10, baseline=4)


def test_each_knob_goes_a_step_down_and_a_step_up_all_others_at_the_centre() -> None:
    other = REAL.model_copy(update={"name": "other"})
    points = points_around(space(REAL, other), ("real", "other"), around((0.5, 0.25), 0.125, 0.25))
    assert points == ((0.5, 0.25), (0.375, 0.25), (0.625, 0.25), (0.5, 0.0), (0.5, 0.5))
    assert points_around(space(REAL, other), ("other",), around((0.5, 0.25), 0.125, 0.25)) == (
        points[0],
        *points[3:],
    )


@pytest.mark.parametrize(
    ("unit", "expected"),
    [(0.9, [0.6, 1.0]), (0.2, [0.0, 0.5]), (1.0, [0.7]), (0.0, [0.3])],
)
def test_a_step_ends_at_the_end_of_the_range_and_there_is_none_beyond(
    unit: float, expected: list[float]
) -> None:
    points = points_around(space(REAL), ("real",), around((unit,), 0.3))
    assert [p[0] for p in points[1:]] == pytest.approx(expected)


def test_an_int_knob_goes_to_its_next_value_at_least() -> None:
    def values(unit: float, step: float) -> list[float]:
        points = points_around(space(WHOLE), ("whole",), around((unit,), step))
        return [WHOLE.decode(p[0]) for p in points]

    assert values(0.35, 0.05) == [4, 3, 5] or values(0.35, 0.05) == [4, 3, 4]
    assert values(0.35, 0.01) == [4, 3, 5]
    assert values(0.35, 0.3) == [4, 1, 7]
    assert values(0.95, 0.05) == [10, 9]


def asked(looking: Around | None, **terms: Any) -> CheckRequest:
    request = Request("check", "min", registry.load(SPEC), **terms)
    return CheckRequest(request, 4, (), looking)


def test_the_name_tells_where_a_check_looks_and_is_in_no_checks_family() -> None:
    centre, steps = (0.5, 0.5, 0.5), (0.1, 0.1, 0.1)
    looks = around(centre, *steps)
    names = {
        asked(looking).name("cpu")
        for looking in (
            looks,
            replace(looks, centre=(0.5, 0.5, 0.6)),
            replace(looks, steps=(0.1, 0.1, 0.2)),
            replace(looks, run_id="another"),
        )
    }
    assert len(names) == 4
    assert all(name.startswith("analyze-idle-") for name in names)
    assert not any(n.startswith(family_of(registry.load(SPEC), "cpu")) for n in names)
    assert asked(replace(looks, head="1" * 32)).name("cpu") in names


# Evaluating them


Evaluate = Callable[..., Result]


@pytest.fixture(scope="session")
def evaluate(run_check: RunCheck) -> Evaluate:
    """Makes, or resumes, the check around a search's recommendation."""

    def run(root: Path, analysis: Analysis, **terms: Any) -> Result:
        return run_check(
            root, objective="idle", settings=SETTINGS, seeds=4, around=analysis.around(), **terms
        )

    return run


@pytest.fixture(scope="module")
def evaluated(searched: Path, analysis: Analysis, evaluate: Evaluate) -> Path:
    return evaluate(searched.parent.parent, analysis).directory


def copied(evaluated: Path, root: Path) -> Path:
    """The check's run and its search's, elsewhere."""
    shutil.copytree(evaluated.parent.parent, root, dirs_exist_ok=True)
    return root / "check" / evaluated.name


def test_every_point_differs_from_the_recommendation_in_one_knob(
    evaluated: Path, analysis: Analysis
) -> None:
    state = load_state(evaluated)
    (generation,) = state.generations
    assert generation.points[0] == analysis.recommendation
    assert len(generation.points) == 7
    assert state.accounts.evaluations == 28
    assert len(set(generation.seeds)) == 4
    assert state.plan.parent is not None
    assert state.plan.parent.run_id == analysis.run_id
    assert state.accounts.device_ms < 5000  # nothing of its parent's


def test_it_finds_what_the_idle_knob_does_not_do(evaluated: Path) -> None:
    found = liveness(load_state(evaluated))
    assert found is not None
    assert found.centre == "recommendation"
    assert found.names("dead") == ("x2",)


def test_its_files_say_what_was_compared(evaluated: Path, analysis: Analysis) -> None:
    document = orjson.loads((evaluated / "check.json").read_bytes())
    assert "around the recommendation" in document["sentence"]
    summary = (evaluated / "summary.md").read_text()
    assert "The recommendation scores" in summary


def test_it_is_no_check_of_the_space(evaluated: Path) -> None:
    known = known_knobs(evaluated.parent.parent, registry.load(SPEC), "cpu")
    assert (known.alive, known.dead) == ((), ())


def test_repeated_it_is_only_read(
    evaluated: Path, analysis: Analysis, tmp_path: Path, evaluate: Evaluate
) -> None:
    run = copied(evaluated, tmp_path)
    before = (run / LEDGER).read_bytes()
    assert evaluate(tmp_path, analysis).directory == run
    assert (run / LEDGER).read_bytes() == before


@pytest.mark.parametrize("records", [1, 2, 3, 20, 58])
def test_cut_after_any_record_it_finds_the_same(
    records: int,
    evaluated: Path,
    analysis: Analysis,
    tmp_path: Path,
    evaluate: Evaluate,
    found: Found,
) -> None:
    run = copied(evaluated, tmp_path)
    assert len(events_of(run)) == 60
    cut(run, records)
    shutil.rmtree(run / "eval")
    evaluate(tmp_path, replace(analysis, head="1" * 32))  # the search's ledger has grown since
    assert found(run) == found(evaluated)


# Verification


def test_an_untouched_one_holds(evaluated: Path, analysis: Analysis) -> None:
    result = verify(evaluated)
    assert result.divergence is None
    assert (
        f"check: 6 points move one knob each, around what {analysis.run_id} recommends"
        in result.held
    )


def test_it_holds_without_the_search_it_is_of(evaluated: Path, tmp_path: Path) -> None:
    run = copied(evaluated, tmp_path)
    shutil.rmtree(tmp_path / "phase1")
    assert verify(run).divergence is None


@pytest.mark.parametrize(
    ("candidate", "divergence"),
    [
        (0, "candidate 0 is not the recommendation of target-idle-s1"),
        (1, "candidate 1 is not the recommendation with one knob moved"),
        (2, "candidate 2 is the recommendation once more"),
    ],
)
def test_verify_finds_points_that_are_not_around_the_recommendation(
    evaluated: Path, tmp_path: Path, tamper: Callable[..., None], candidate: int, divergence: str
) -> None:
    run = copied(evaluated, tmp_path)

    def change(lines: list[dict[str, Any]]) -> None:
        asking = next(line for line in lines if line["event"]["kind"] == "generation_asked")
        points = asking["event"]["points"]
        points[candidate] = {0: [0.4, 0.5, 0.5], 1: [0.1, 0.2, 0.3], 2: points[0]}[candidate]

    tamper(run, change)
    assert verify(run).divergence == divergence
