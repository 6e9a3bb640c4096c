"""A search that certifies its own proxy, and the check that only compares."""

import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from budgets.events import Reserved, Settled
from budgets.proxy.report import ProxyReport, proxy_report
from budgets.state import RunState
from budgets.terms import Calibration, Devices, Sample
from objectives import registry
from objectives.api import ObjectiveSpec
from orchestrator.look.reports import rebuild
from orchestrator.matrix.proxy import ProxyCheck, near
from orchestrator.planning.known_knobs import Known
from orchestrator.planning.page import Circumstances, page_of
from orchestrator.planning.page_text import to_markdown
from orchestrator.planning.plan import search_plan
from orchestrator.planning.proxy import proxy_terms
from orchestrator.planning.times import Times
from orchestrator.records.attempts import attempt_place
from orchestrator.records.recorded import Result, load_state
from orchestrator.running.run import PlanChangedError
from orchestrator.verification.verify import verify
from tests import ledgers
from tests.asking import config_for
from tests.ledgers import events_of, every, state_of

if TYPE_CHECKING:
    from tests.conftest import Command

RunSearch = Callable[..., Result]
Found = Callable[[Path], dict[str, Any]]
Search = Callable[..., Result]

DEVICES = Devices(count=1, kind="cpu", name="some", threads=1, memory_bytes=1 << 30)
QUICK = ("--objective", "sphere", "--executor", "inline", "--workers", "1")
RECORDS = 74
"""Of a search of three generations the first of which is compared: plan, session, 3 x (ask,
8 x (reserve, settle), tell), panel, 8 x (reserve, settle), conclusion."""


def sphere(**settings: Any) -> Any:
    return registry.load(ObjectiveSpec(name="sphere", settings={"dimension": 4, **settings}))


@pytest.fixture(scope="session")
def search(run_search: RunSearch) -> Search:
    """Searches with a quarter of the effort in P = 8 and, by default, three generations."""

    def run(root: Path, generations: int = 3, **request: Any) -> Result:
        settings = {"dimension": 4, **request.pop("settings", {})}
        asked = {"tier": "target", "population": 8, "assumed_seconds": 1.0, "proxy": 0.25}
        asked |= {"max_evals": 8 * generations, "confirm_seeds": 0, **request}
        return run_search(root, settings=settings, **asked)

    return run


def report(state: RunState) -> ProxyReport:
    found = proxy_report(state)
    assert found is not None
    return found


def lengths(state: RunState) -> str:
    return "".join("F" if g.is_full else "s" for g in state.generations)


def scores(state: RunState) -> list[Any]:
    """What every panel's evaluations amount to."""
    return [
        (p.name, p.number, [(r.candidate, r.seed, r.status, r.score) for r in p.results()])
        for p in state.panels.values()
    ]


# A search


def test_a_search_is_short_while_its_proxy_agrees(tmp_path: Path, search: Search) -> None:
    state = search(tmp_path, generations=5).state
    assert lengths(state) == "FssFF"
    (comparison,) = report(state).comparisons
    assert (comparison.holds, comparison.certificate.tau, comparison.short) == (True, 1.0, (1, 2))
    assert (state.accounts.evaluations, state.accounts.apart) == (40, 8)
    panel = state.panels["proxy", 0]
    assert panel.points == state.generations[0].points
    assert {panel.seeds_of(c) for c in range(8)} == {state.generations[0].seeds}


def test_a_proxy_that_misleads_is_found_out_and_not_used(tmp_path: Path, search: Search) -> None:
    misled = search(tmp_path / "misled", generations=5, settings={"bias": -3.0}).state
    plain = search(tmp_path / "plain", generations=5, settings={"bias": -3.0}, proxy=None).state
    assert lengths(misled) == "FFFFF"
    (comparison,) = report(misled).comparisons
    assert not comparison.holds
    assert misled.accounts.apart == 8
    assert [g.told for g in misled.generations] == [g.told for g in plain.generations]


def test_short_evaluations_are_of_the_objective_with_the_proxys_settings(
    tmp_path: Path, search: Search
) -> None:
    result = search(tmp_path)
    own = orjson.loads(
        (next((result.directory / "eval/gen_0001").glob("*/*/config.json"))).read_bytes()
    )
    assert own["objective"]["settings"]["effort"] == 0.25
    full = orjson.loads(
        (next((result.directory / "eval/gen_0000").glob("*/*/config.json"))).read_bytes()
    )
    assert "effort" not in full["objective"]["settings"]
    assert len(list((result.directory / "eval/proxy_0000").glob("*/*/summary.json"))) == 8


def test_a_search_that_was_confirmed_is_so_on_full_evaluations(
    tmp_path: Path, search: Search
) -> None:
    result = search(
        tmp_path, generations=5, settings={"noise": 0.01}, confirm_seeds=5, rung=0.0, rung_seeds=0
    )
    state = result.state
    assert state.decided is not None
    assert state.decided.grade == "go"
    assert all(
        not p.settings(c) for p in state.panels.values() if p.name != "proxy"
        for c in range(len(p.points))
    )  # fmt: skip
    assert verify(result.directory).divergence is None


def test_the_shorter_evaluation_is_checked_before_anything_is_spent(
    tmp_path: Path, run_search: RunSearch
) -> None:
    said: list[str] = []
    few = {"population": 8, "max_evals": 24, "confirm_seeds": 0, "tier": "target"}
    flat = {"objective": "noise", "settings": {"noise": 0, "dimension": 2}, "assumed_seconds": 1.0}
    state = run_search(tmp_path, proxy=0.25, say=said.append, **few, **flat).state
    warning = "objective noise with noise = 0 scores every candidate alike."
    assert [f"Warning: {warning}", f"Warning: 0.25 x effort: {warning}"] == [
        line for line in said if "scores every candidate alike" in line
    ]
    assert lengths(state) == "FFF"  # what tells no candidates apart agrees with nothing


def test_verify_recomputes_what_every_comparison_allows(tmp_path: Path, search: Search) -> None:
    found = verify(search(tmp_path, generations=5).directory)
    assert found.divergence is None
    assert "proxy: 2 generations are short, as 1 comparisons allow" in found.held


def test_verify_finds_a_generation_of_another_length_than_its_comparison_allows(
    finished: Path, tmp_path: Path, tamper: Callable[..., None]
) -> None:
    run = Path(shutil.copytree(finished, tmp_path / finished.name))

    def change(lines: list[dict[str, Any]]) -> None:
        asked = [line["event"] for line in lines if line["event"]["kind"] == "generation_asked"]
        asked[1]["length"] *= 2

    tamper(run, change)
    divergence = verify(run).divergence
    assert divergence is not None
    assert "generation 1 was evaluated with" in divergence


def test_a_cap_holds_with_a_proxy_too(tmp_path: Path, search: Search) -> None:
    capped = {"settings": {"seconds": 0.2}, "limit_seconds": 1.0, "assumed_seconds": 0.02}
    hours = (11 + 1.9) / 3600  # a reservation of 11 s, 8 of 0.2 s, and 6 of a quarter of that
    result = search(tmp_path, max_device_hours=hours, **capped)
    assert result.ruling.decision == "stop"
    assert result.state.accounts.device_ms <= hours * 3_600_000
    assert result.state.accounts.evaluations == 8
    assert 0 < result.state.accounts.apart < 8


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, search: Search) -> Path:
    """A search whose second generation was short."""
    result = search(tmp_path_factory.mktemp("finished"))
    assert result.state.records == RECORDS
    assert lengths(result.state) == "FsF"
    return result.directory


def cut(run: Path, root: Path, records: int, *, torn: bool, gone: bool) -> Path:
    """A copy of the run as a power failure after so many records leaves it."""
    copy = root / run.relative_to(run.parent.parent)
    shutil.copytree(run, copy)
    ledgers.cut(copy, records, half_of_the_next=torn)
    if gone or not records:
        shutil.rmtree(copy / "eval")
    return copy


@pytest.mark.parametrize(
    "records",
    [
        pytest.param(records, marks=pytest.mark.slow if records % 2 else ())
        for records in range(RECORDS)
    ],
)
def test_a_search_cut_after_any_record_ends_like_the_one_that_was_never_cut(
    records: int, finished: Path, place: Path, search: Search, found: Found
) -> None:
    run = cut(finished, place, records, torn=records % 3 == 1, gone=records % 3 != 0)

    result = search(place)

    assert found(run) == found(finished)
    assert scores(result.state) == scores(load_state(finished))
    assert [g.changed for g in result.state.generations] == [
        g.changed for g in load_state(finished).generations
    ]
    assert result.state == state_of(run)
    settled = every(Settled, run)
    final = [(e.panel, e.generation, e.candidate, e.seed) for e in settled if e.final]
    assert len(set(final)) == len(final) == 32
    assert verify(run).divergence is None


def test_a_short_evaluation_that_finished_unheard_is_adopted(
    finished: Path, tmp_path: Path, search: Search
) -> None:
    events = events_of(finished)
    reserved = [
        (n, e) for n, e in enumerate(events) if isinstance(e, Reserved) and e.panel == "proxy"
    ]
    number, last = reserved[-1]
    cut(finished, tmp_path, number + 1, torn=False, gone=False)

    state = search(tmp_path).state

    result = state.panels["proxy", 0].result(last.candidate, last.seed)
    assert result is not None
    assert (result.recovered, result.attempt) == (True, 1)
    assert attempt_place(last).startswith("proxy_0000/")


def test_another_fraction_is_another_plan(finished: Path, tmp_path: Path, search: Search) -> None:
    copy = tmp_path / finished.relative_to(finished.parent.parent)
    shutil.copytree(finished, copy)
    with pytest.raises(PlanChangedError, match=r"proxy\.varied\.label: 0\.25 x effort -> 0\.5 x"):
        search(tmp_path, proxy=0.5)
    with pytest.raises(PlanChangedError, match=r"proxy: .* -> None"):
        search(tmp_path, proxy=None)


def test_every_derived_file_is_rebuilt_from_the_ledger_alone(
    finished: Path, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(finished, tmp_path / finished.name))
    for name in ("reports/gen_0002.json", "best.json", "progress.csv"):
        (copy / name).unlink()
    rebuild(copy, datetime.now(UTC))
    for name in ("reports/gen_0002.json", "best.json", "progress.csv"):
        assert (copy / name).read_bytes() == (finished / name).read_bytes()


# The plan


def planned(**request: Any) -> Any:
    asked = {"population": 8, "proxy": 0.25, **request}
    calibration = asked.pop("calibration", None)
    return search_plan(config_for("phase1", "target", sphere(), **asked), DEVICES, calibration)


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.5, 2.0, float("nan")])
def test_a_proxy_is_shorter_than_the_whole(fraction: float) -> None:
    with pytest.raises(ValueError, match="a number between 0 and 1, got"):
        planned(proxy=fraction)


def test_fewer_candidates_than_a_comparison_takes_are_refused() -> None:
    with pytest.raises(ValueError, match="certified on 8 candidates or more, got 6"):
        planned(population=6)


def test_a_search_too_small_to_shorten_is_planned_without_and_says_why() -> None:
    plan = planned(max_evals=16)
    assert plan.proxy is None
    assert plan.apart == plan.confirmation.evaluations
    assert "search.proxy shortens none of 2 generations" in plan.reasons[-1]
    assert planned(max_evals=24).proxy is not None


def calibrated(seconds: float, train_seconds: float) -> Calibration:
    fields = dict.fromkeys(Sample.model_fields, 0) | {"seed": 1, "score": 1.0}
    return Calibration(
        samples=(Sample(**{**fields, "seconds": seconds, "train_seconds": train_seconds}),)
    )


@pytest.mark.parametrize(
    ("calibration", "length"),
    [
        (None, 0.25),
        (Calibration(assumed_seconds=5.0), 0.25),
        (calibrated(4.0, 4.0), 0.25),
        (calibrated(4.0, 2.0), 0.625),  # start-up and scoring take as long as ever
        (calibrated(4.0, 9.0), 0.25),
        (calibrated(0.0, 0.0), 0.25),
    ],
)
def test_only_the_training_is_expected_to_shrink(
    calibration: Calibration | None, length: float
) -> None:
    assert proxy_terms(sphere(), 0.25, calibration).varied.length == length


def test_the_preview_says_what_a_proxy_may_save_and_cost(tmp_path: Path) -> None:
    request = config_for("phase1", "target", sphere(), population=8, proxy=0.25, max_evals=80)
    times = Times("assumed", Calibration(assumed_seconds=10.0))
    nobody_checked, now = Known((), (), ()), datetime.now(UTC)
    page = page_of(
        request, Circumstances(DEVICES, times, tmp_path, nobody_checked, now), ("target",)
    )
    text = to_markdown(page, in_full=True)
    assert (
        "0.25 x effort takes 25% of an evaluation's time. Where it agrees with the full one "
        "whenever they are compared, and the mean moves little, 7 of 10 generations are short and "
        "48% of the search's time is saved; where it never does, comparing costs 5% more."
    ) in text


# The check


def asked(candidates: int = 8, seeds: int = 1, **terms: Any) -> ProxyCheck:
    fraction = terms.pop("proxy", 0.25)
    config = config_for("check", "min", sphere(), **terms)
    return ProxyCheck(config, fraction, candidates, seeds)


def test_a_check_compares_candidates_around_the_baseline() -> None:
    request = asked(candidates=200)
    points = request.points()
    assert points == asked(candidates=200).points()
    assert len(set(points)) == 200
    for place in range(4):
        units = [point[place] for point in points]
        assert all(0 <= unit <= 1 for unit in units)
        assert sum(units) / 200 == pytest.approx(0.5, abs=0.03)
        assert 0.08 < (sum((u - 0.5) ** 2 for u in units) / 200) ** 0.5 < 0.12
    assert asked(evaluation_seed=5).points() != asked().points()


def test_a_check_of_a_run_is_around_what_it_recommends(finished: Path) -> None:
    state = load_state(finished)
    where = near(state)
    told = state.told[-1].told
    assert told is not None
    assert (where.sigma, where.run_id, where.head) == (told.sigma, state.plan.run_id, state.head)
    request = ProxyCheck(asked().config, 0.25, 8, 1, where)
    assert request.points() != asked().points()
    plan = request.plan(DEVICES, None)
    assert plan.parent is not None
    assert (plan.parent.head, plan.parent.device_ms) == (state.head, 0)
    assert request.name("cpu") != asked().name("cpu")


def test_a_check_pays_for_both_lengths_or_is_refused() -> None:
    plan = asked(max_evals=16).plan(DEVICES, None)
    assert (plan.caps.evaluations, plan.apart) == (8, 8)
    with pytest.raises(ValueError, match="--max-evals 15 does not pay for the 16 evaluations"):
        asked(max_evals=15).plan(DEVICES, None)


def test_the_name_of_a_check_follows_from_what_was_asked() -> None:
    others = [asked(9), asked(seeds=2), asked(proxy=0.5), asked(max_hours=1.0)]
    names = {request.name("cpu") for request in (*others, asked(), asked())}
    assert len(names) == 5
    assert all(name.startswith("proxy-sphere-") for name in names)


def test_a_check_says_in_words_and_in_files_whether_the_proxy_is_good_enough(
    command: "Command", tmp_path: Path
) -> None:
    fine = command("check", "proxy", *QUICK, "--set", "noise=0.001", "--candidates", "10")
    assert fine.code == 0
    assert "Comparing 0.25 x effort with the full evaluation: 10 candidates around the" in fine.out
    text = " ".join(fine.out.split())
    assert "0.25 x effort is good enough to stand in for the full evaluation: over 10" in text
    assert "Kendall's tau-b is" in text
    assert " yes " in text

    bad = command("check", "proxy", *QUICK, "--set", "bias=-3", "--json")
    assert bad.code == 0
    document = orjson.loads(bad.out)
    (comparison,) = document["proxy"]["comparisons"]
    assert not comparison["holds"]
    assert "not good enough" in document["sentence"]
    found = orjson.loads((Path(document["directory"]) / "check.json").read_bytes())
    assert found["proxy"]["comparisons"] == [comparison]
    assert verify(Path(document["directory"])).divergence is None


def test_a_repeated_check_is_only_read_and_an_interrupted_one_taken_up(
    command: "Command", tmp_path: Path
) -> None:
    once = orjson.loads(command("check", "proxy", *QUICK, "--json").out)
    run = Path(once["directory"])
    assert orjson.loads(command("check", "proxy", *QUICK, "--json").out) == once
    ledgers.cut(run, 25)
    again = orjson.loads(command("check", "proxy", *QUICK, "--json").out)
    ours, theirs = again["proxy"]["comparisons"][0], once["proxy"]["comparisons"][0]
    for comparison in (ours, theirs):
        del comparison["certificate"]["seconds_ratio"]
    assert ours == theirs


def test_a_search_and_a_check_of_its_recommendation_by_the_command_line(
    command: "Command",
) -> None:
    few = ("--set", "search.population=8", "--max-evals", "24", "--set", "verdict.confirm_seeds=0")
    found = command(
        *("phase1", "--tier", "target", *QUICK, *few, "--set", "search.proxy=0.25"),
        *("--assume-eval-seconds", "1"),
    )
    assert found.code == 0
    assert "Comparison (short evaluations): 8 configurations (8 evaluations)." in found.out
    assert "Generation 1 (2 of 3), short: best" in found.out

    run = "target-sphere-s1"
    checked = command("check", "proxy", "--run", run, "--executor", "inline", "--workers", "1")
    assert checked.code == 0
    assert f"around what {run} recommends" in checked.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--fraction", "1.5"), "expected a number between 0 and 1, got 1.5"),
        (("--candidates", "7"), "greater than or equal to 8, got '7'"),
        (("--run", "nowhere"), "no run 'nowhere'"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    command: "Command", arguments: tuple[str, ...], said: str
) -> None:
    answer = command("check", "proxy", *QUICK, *arguments)
    assert answer.code == 2
    assert said in answer.err
