"""A phase 1 starts where an earlier search stood, takes no score of it, and survives its loss."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from budgets.events import Planned
from budgets.ledger.chain import LEDGER, read
from budgets.ledger.writer import Ledger
from budgets.verdict.finalists import recommendation
from objectives.analytic import AnalyticObjective
from objectives.space import Knob, SearchSpace
from orchestrator.planning.known import KnownSettings
from orchestrator.planning.request import Confirm
from orchestrator.planning.seeds import confirmation_seeds, evaluation_seeds
from orchestrator.records.recorded import Result
from orchestrator.running.run import PlanChangedError
from orchestrator.running.session import system_clock
from orchestrator.search import Search
from orchestrator.verification.verify import verify
from orchestrator.warm.distribution import LEAST_STEP, MOST_STEP, learned
from orchestrator.warm.start import carried
from tests import ledgers
from tests.ledgers import state_of

if TYPE_CHECKING:
    from tests.conftest import Answer, Command

RunSearch = Callable[..., Result]
Found = Callable[[Path], dict[str, Any]]

SMALL = {"dimension": 3, "noise": 0.01}
SOURCE = "min-sphere-s1"
WARM: dict[str, Any] = {
    "settings": SMALL,
    "assumed_seconds": 1.0,
    "run_id": "warm",
    "warm_start": SOURCE,
}


@pytest.fixture(scope="session")
def begun_root(tmp_path_factory: pytest.TempPathFactory, run_search: RunSearch) -> Path:
    """Where there is a search to start from, and one that did."""
    root = tmp_path_factory.mktemp("begun")
    run_search(root, settings=SMALL, assumed_seconds=1.0)
    run_search(root, **WARM)
    return root


@pytest.fixture
def root(begun_root: Path, tmp_path: Path) -> Path:
    """A copy of it, where the command line finds it."""
    return Path(shutil.copytree(begun_root, tmp_path / "artifacts/cmaes"))


def cut(run: Path, records: int) -> None:
    """Leave the run as if its process had died after so many records."""
    ledgers.cut(run, records)
    shutil.rmtree(run / "eval", ignore_errors=True)


# What it takes over


def test_it_starts_at_the_mean_with_the_step_and_the_shape_of_the_earlier_search(
    root: Path,
) -> None:
    source, warm = state_of(root / "phase1" / SOURCE), state_of(root / "phase1/warm")
    assert source.plan.search is not None
    search = warm.plan.search
    assert search is not None
    earlier = Search(source.plan.search, source.plan.resolved.population)
    earlier.replay(source.generations)
    assert search.start == recommendation(source)
    assert search.shape == earlier.landscape().shape
    assert LEAST_STEP < search.sigma0 == earlier.landscape().scale < MOST_STEP
    assert search.inherited is not None
    assert (search.inherited.run_id, search.inherited.head) == (SOURCE, source.head)
    assert (search.inherited.new, search.inherited.moved, warm.plan.source) == ((), (), None)
    held = verify(root / "phase1/warm")
    assert held.divergence is None
    assert f"start: {SOURCE} stood where the search starts" in held.held


def test_its_evaluations_are_on_seeds_that_the_earlier_run_never_had(
    root: Path, run_search: RunSearch
) -> None:
    confirmed = {"tier": "target", "max_evals": 12, "confirm": Confirm(seeds=2, rung_seeds=1)}
    plans = [
        run_search(root, **{**WARM, "warm_start": start, "run_id": name}, **confirmed).state.plan
        for start, name in ((None, "cold"), ("cold", "next"), ("next", "third"))
    ]
    every = []
    for plan in plans:
        beside = confirmation_seeds(plan)
        searched = [seed for g in range(4) for seed in evaluation_seeds(plan, g)]
        every += [*searched, *beside.picking, *beside.verdict, *beside.rung]
    assert len(set(every)) == len(every)
    assert plans[1].confirmation is not None
    assert plans[1].confirmation.incumbent is None  # the baseline alone is met


def test_other_knobs_begin_at_their_baseline_with_the_first_step(
    root: Path, run_search: RunSearch
) -> None:
    said: list[str] = []
    more = {**WARM, "settings": {**SMALL, "dimension": 4}, "run_id": "more"}
    result = run_search(root, say=said.append, **more)
    search = result.state.plan.search
    assert search is not None
    assert search.inherited is not None
    assert search.shape is not None
    source = state_of(root / "phase1" / SOURCE)
    assert search.start == (*(recommendation(source) or ()), 0.5)
    assert search.inherited.new == ("x3",)
    assert search.sigma0 * np.sqrt(search.shape[3][3]) == pytest.approx(0.15)
    assert search.shape[3][:3] == (0, 0, 0)
    assert f"Note: {SOURCE} was another search (there -> here): dimension: 3 -> 4." in said
    assert verify(result.directory).divergence is None
    assert run_search(root, **more).state.head == result.state.head

    fewer = {**WARM, "settings": {**SMALL, "dimension": 2}, "run_id": "fewer"}
    smaller = run_search(root, say=said.append, **fewer).state.plan.search
    assert smaller is not None
    assert smaller.start == search.start[:2]
    assert f"Note: x2, which {SOURCE} searched too, are not searched here." in said


def test_what_was_committed_since_makes_no_other_search(
    root: Path, run_search: RunSearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(AnalyticObjective, "provenance", {"commit": "a" * 40, "dirty": 1})
    run_search(root, say=said.append, **{**WARM, "run_id": "later"})
    assert not any("another search" in line for line in said)
    other = {"commit": "a" * 40, "data_sha256": "d"}
    monkeypatch.setattr(AnalyticObjective, "provenance", other)
    run_search(root, say=said.append, **{**WARM, "run_id": "other"})
    (note,) = (line for line in said if "another search" in line)
    assert note.endswith("(there -> here): provenance.data_sha256: None -> d.")


def test_a_knob_whose_range_has_changed_keeps_its_value_as_far_as_it_can(root: Path) -> None:
    state = state_of(root / "phase1" / SOURCE)
    there = dict(zip(("x0", "x1", "x2"), recommendation(state) or (), strict=True))
    wide = Knob(name="x0", kind="linear", low=-3, high=3, baseline=0.0)
    far = Knob(name="x1", kind="linear", low=5, high=6, baseline=5.5)
    rebased = Knob(name="x2", kind="linear", low=-1, high=1, baseline=0.7)
    inherited, point = carried(SOURCE, state, SearchSpace(knobs=(rebased, far, wide)))
    assert (inherited.new, inherited.moved) == ((), ("x1", "x0"))
    assert point[0] == there["x2"]
    assert point[1] == 0.0
    assert wide.decode(point[2]) == pytest.approx(2 * there["x0"] - 1)


@pytest.mark.parametrize(("first", "asked", "step"), [(0.01, None, LEAST_STEP), (0.2, 0.07, 0.07)])
def test_its_first_step_is_the_last_within_limits_or_the_one_asked_for(
    tmp_path: Path, run_search: RunSearch, first: float, asked: float | None, step: float
) -> None:
    run_search(tmp_path, settings=SMALL, assumed_seconds=1.0, sigma0=first, max_evals=6)
    for _ in range(2):  # begun, and taken up
        search = run_search(tmp_path, **WARM, sigma0=asked).state.plan.search
        assert search is not None
        assert search.sigma0 == step


def test_of_a_search_that_began_anew_the_descent_it_stands_by_is_taken(
    tmp_path: Path, run_search: RunSearch
) -> None:
    quiet = {"settings": {"dimension": 2}, "tier": "max", "confirm": Confirm(seeds=0)}
    size = {"population": 6, "max_evals": 144}
    state = run_search(tmp_path, **quiet, **size, assumed_seconds=1.0).state
    told = [g.told for g in state.told if g.told is not None]
    assert told[-1].descent > 0
    seen = learned(state, accept_drift=False)
    assert max(seen.deviations) < 0.05
    last = max(t.generation for t in told if t.descent == 0)
    assert np.linalg.norm(np.array(seen.favourite) - told[last].favourite) < 0.05


def test_a_run_that_followed_another_may_be_started_from(root: Path, run_search: RunSearch) -> None:
    result = run_search(root, **{**WARM, "run_id": "next", "warm_start": str(root / "phase1/warm")})
    search = result.state.plan.search
    assert search is not None
    assert search.inherited is not None
    assert search.inherited.run_id == "warm"


# Known settings

KNOWN = KnownSettings("known.toml", ({"x0": 1.0, "x1": -0.25}, {"x2": 0.5}))


def test_known_settings_are_the_first_candidates(root: Path, run_search: RunSearch) -> None:
    result = run_search(root, **{**WARM, "run_id": "told", "known": KNOWN})
    plan, first = result.state.plan, result.state.generations[0].points
    assert plan.search is not None
    start = plan.search.start
    assert plan.search.known == ((1.0, 0.375, start[2]), (start[0], start[1], 0.75))
    assert np.array(first[:2]) == pytest.approx(np.array(plan.search.known), abs=1e-12)
    assert verify(result.directory).divergence is None
    renamed = KnownSettings("elsewhere.json", KNOWN.settings)
    again = run_search(root, **{**WARM, "run_id": "told", "known": renamed})
    assert again.state.head == result.state.head


# Killed, and taken up again


@pytest.mark.parametrize("records", [1, 4, 20])
def test_it_goes_on_without_the_run_that_it_started_from(
    root: Path, run_search: RunSearch, found: Found, records: int
) -> None:
    run = root / "phase1/warm"
    whole = found(run)
    cut(run, records)
    shutil.rmtree(root / "phase1" / SOURCE)
    assert run_search(root, **WARM).ruling.decision == "done"
    assert found(run) == whole
    held = verify(run)
    assert held.divergence is None
    assert f"start: the ledger of {SOURCE} is not beside this run, or another one" in held.held


def test_it_goes_on_when_that_run_has_gone_on_since(
    root: Path, run_search: RunSearch, found: Found
) -> None:
    source = root / "phase1" / SOURCE
    cut(source, 22)
    begun = {**WARM, "run_id": "early"}
    first = run_search(root, **begun)
    run_search(root, settings=SMALL, assumed_seconds=1.0)
    whole = found(first.directory)
    cut(first.directory, 4)
    assert run_search(root, **begun).ruling.decision == "done"
    assert found(first.directory) == whole
    assert verify(first.directory).divergence is None


def test_verify_finds_a_start_that_is_not_where_the_earlier_run_stood(root: Path) -> None:
    run = root / "phase1/warm"
    planned = read(run / LEDGER).records[0].event
    assert isinstance(planned, Planned)
    assert planned.plan.search is not None
    search = planned.plan.search.model_copy(update={"start": (0.5, 0.5, 0.5)})
    shutil.rmtree(run)
    run.mkdir()
    with Ledger(run, system_clock()) as ledger:
        for _ in ledger.replay():
            pass
        forged = planned.plan.model_copy(update={"search": search})
        ledger.append(ledger.seal(Planned(plan=forged)))
    assert verify(run).divergence == f"the search does not start where {SOURCE} stood"


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"warm_start": "other"}, f"search.inherited.run_id: {SOURCE} -> other"),
        ({"warm_start": None}, f"search.inherited: {{'run_id': '{SOURCE}'"),
        ({"known": KNOWN}, "search.known: [] -> [["),
        ({"run_id": SOURCE}, "search.inherited: None -> {'run_id'"),
    ],
)
def test_asked_for_otherwise_it_is_another_plan(
    root: Path, run_search: RunSearch, options: dict[str, Any], named: str
) -> None:
    with pytest.raises(PlanChangedError, match="holds another plan") as refused:
        run_search(root, **{**WARM, **options})
    assert named in str(refused.value)


# What it cannot start from


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"warm_start": "nowhere"}, "no run 'nowhere' in "),
        ({"objective": "ellipsoid"}, f"expected a search of ellipsoid, {SOURCE} searched sphere"),
        ({"warm_start": "empty"}, "search.warm_start: empty has told no generation yet"),
    ],
)
def test_a_run_that_gives_nothing_is_refused_before_anything_is_made(
    root: Path, run_search: RunSearch, options: dict[str, Any], said: str
) -> None:
    shutil.copytree(root / "phase1" / SOURCE, root / "phase1/empty")
    cut(root / "phase1/empty", 4)
    with pytest.raises(ValueError, match=r".") as refused:
        run_search(root, **{**WARM, "run_id": "new", **options})
    assert said in str(refused.value)
    assert not (root / "phase1/new").exists()


def test_a_run_that_searched_nothing_or_other_knobs_is_refused(
    tmp_path: Path, root: Path, run_search: RunSearch, run_check: RunSearch
) -> None:
    check = run_check(tmp_path, objective="sphere", settings={"dimension": 3, "noise": 0.01})
    with pytest.raises(ValueError, match=r"expected a run that searched, .* is a check run"):
        run_search(tmp_path, **{**WARM, "warm_start": str(check.directory)})
    other = SearchSpace(knobs=(Knob(name="z", kind="linear", low=0, high=1, baseline=0.5),))
    with pytest.raises(ValueError, match=f"{SOURCE} searched other knobs, x0, x1, x2: none of z"):
        carried(SOURCE, state_of(root / "phase1" / SOURCE), other)


# On the command line


COMMAND = ("--tier", "target", "--objective", "sphere", "--set", "dimension=3")


def test_plan_says_where_it_would_start_and_what_differs(root: Path, command: "Command") -> None:
    Path("known.toml").write_text("[[settings]]\nx0 = 0.5\n[[settings]]\nx1 = 0.5\n")
    asked = ("--set", f"search.warm_start={SOURCE}", "--set", "search.known=known.toml")
    before = sorted(root.rglob("*"))
    answer: Answer = command("plan", *COMMAND, *asked, "--assume-eval-seconds", "1")
    text = " ".join(answer.out.split())
    assert answer.code == 0
    assert f"It starts where {SOURCE} stood; none of its scores count here." in text
    assert "The first 2 candidates are known settings." in text
    assert "tier: min -> target; noise: 0.01 -> 0.0" in text
    assert sorted(root.rglob("*")) == before


def test_a_phase_2_has_no_warm_start(command: "Command") -> None:
    follow = ("--variant", "robust", "--from", SOURCE, "--set", f"search.warm_start={SOURCE}")
    answer: Answer = command("phase2", *COMMAND, *follow)
    assert answer.code == 2
    assert "search.warm_start: a phase 2 starts where the run of its --from stood" in answer.err
