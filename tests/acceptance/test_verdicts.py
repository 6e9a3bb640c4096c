"""A verdict rests on fresh paired seeds: each grade and each No-Go where the truth is known.

Every number is computed here again, from the raw scores of the ledger.
"""

import shutil
from collections.abc import Mapping
from math import ceil
from statistics import fmean, stdev
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import optimize, stats

from tests.product.books import FAILED, Books
from tests.product.product import Product, commands_in
from tests.product.searches import SMALL, phase1, scores

pytestmark = pytest.mark.xdist_group("verdicts")

HILL = "--set search.generations=4 --set verdict.long_run=0"
LARGE = "--set available=0.3 --set noise=0.002 --set search.generations=6"
LARGE += " --set verdict.long_run_seeds=5"
EARLY = "--set search.population=12 --set search.generations=4 --set verdict.long_run=0"
PLAIN = "--set search.method=plain"
SLIGHT = "--set search.generations=6 --set available=0.006 --set noise=0.0003"
ONCE = "finalists_0000/cand_0000 .*44$"  # the best finalist, on one of its seeds
SOME = "--set thresholds.crash_count_pause=1 --set thresholds.crash_rate_pause=0.125"
SEARCHES = [  # what is searched, how, and what must be said: the grade, or why it is a No-Go
    ("hill", "--set search.generations=4", {"uneven": True}, "go"),
    ("sphere", LARGE, {}, "go_persists"),
    ("sphere", f"{LARGE} --set persists=-1", {}, "does_not_persist"),
    ("needle", "--set search.generations=2", {}, "does_not_persist"),
    ("flat", f"{EARLY} {PLAIN}", {"outlier": "gen_0003/cand_0003"}, "below_noise"),
    ("peak", EARLY, {}, "below_noise"),
    ("doubtful", "--set search.generations=2", {}, "below_noise"),
    ("sphere", SLIGHT, {}, "too_small"),
    ("hill", HILL, {"explodes": True}, "pathological"),
    ("hill", f"{HILL} {SOME}", {"crash": f"gen_000[012]/cand_0000|{ONCE}"}, "unstable"),
]
Gain = dict[str, float]


def gain(own: Mapping[int, float | None], reference: Mapping[int, float | None]) -> Gain:
    """How much better than the reference, as a share of its score; paired by seed."""
    pairs = [(other, own.get(seed)) for seed, other in reference.items()]
    worse, better = np.array([pair for pair in pairs if None not in pair], dtype=float).T
    gains = (worse - better) / abs(worse.mean())
    mean, error, freedom = gains.mean(), stats.sem(gains), len(gains) - 1
    limit = stats.t.ppf(0.99, freedom)  # a bound misses the truth once in 100
    margin = limit * error
    found = {"pairs": len(gains), "mean": mean, "lower": mean - margin, "upper": mean + margin}

    def missed(true: float) -> float:
        """By how much a true gain of that size is shown less often than 8 times of 10."""
        return float(0.8 - stats.nct.sf(limit, freedom, true / error))

    return {**found, "detectable": optimize.brentq(missed, 0.0, 50 * margin) if error else 0.0}


class Search(NamedTuple):
    """A search that is over, and what is said of it."""

    said: str
    books: Books
    calibration: Books
    report: dict[str, Any]
    best: dict[str, Any]

    def gains(self, comparison: str) -> dict[str, Gain]:
        """Over the baseline, by the names of those compared."""
        arms = self.books.comparisons.get(comparison, {})
        reference = self.books.scores(
            comparison if "baseline" in arms else "reference 0", "baseline"
        )
        return {arm: gain(self.books.scores(comparison, arm), reference) for arm in arms}


@pytest.fixture(scope="module", params=SEARCHES, ids=[said for *_, said in SEARCHES])
def search(request: pytest.FixtureRequest, shared: Product) -> Search:
    shutil.rmtree(shared.folder / "artifacts", ignore_errors=True)
    objective, words, fixed, said = request.param
    phase1(shared, objective, words, 0 if said.startswith("go") else 4, **fixed)
    (calibration,) = shared.folder.glob("**/calibration/*/ledger.jsonl")
    books = shared.books("run"), Books.of(calibration.parent)
    return Search(said, *books, shared.json("report"), shared.json("best"))


def found(findings: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """Return the gains of that kind."""
    return [one for one in findings["gains"] if one["kind"] == kind]


def agrees(shown: dict[str, Any], own: Gain) -> None:
    assert {name: shown[name] for name in own} == pytest.approx(own, rel=1e-5)


def test_each_verdict_is_given_where_it_is_the_truth(search: Search) -> None:
    is_go, verdict, best = search.said.startswith("go"), search.books.verdict, search.best
    said = (search.said, None) if is_go else ("no_go", search.said)
    assert verdict is not None
    assert (verdict.grade, verdict.reason, verdict.point is not None) == (*said, is_go)
    findings, title = search.report["findings"], search.report["answer"]["title"]
    assert (findings["grade"], findings["no_go"]) == said
    assert ("that persists" in title) == (search.said == "go_persists")
    assert ("not shown" in title) == (search.said == "go")
    assert tuple(best["verdict"].values()) == said
    assert (best["recommendation"] is not None) == is_go


def test_gains_and_what_a_go_needs_follow_from_the_raw_scores(search: Search) -> None:
    books, findings = search.books, search.report["findings"]
    ((name, winner),) = search.gains("winner 0").items()
    assert books.verdict is not None
    assert books.verdict[-2:] == pytest.approx((winner["mean"], winner["lower"]), rel=1e-7)
    agrees(found(findings, "winner")[0]["gain"], winner)
    agrees(search.best["winner"]["gain"], winner)
    finalists = search.gains("finalists 0")
    for one in found(findings, "finalist"):
        agrees(one["gain"], finalists[one["name"].removesuffix(" (picking seeds)")])
    last = [one.status in FAILED for one in books.searched if one.key[1] >= books.shape[1] - 3]
    own = {
        "signal": winner["mean"],
        "stability": sum(last) / len(last),
        "persistence": (winner if name == "average" else finalists["average"])["mean"],
        "sanity": 1.0 if search.said == "pathological" else 0.0,
    }
    if longer := search.gains("long_run 0").get(name):
        agrees(found(findings, "long_run")[0]["gain"], longer)
        own["long_run"] = longer["mean"] / winner["mean"]
        is_shown = longer["lower"] > 0 and own["long_run"] > 0.5
        assert is_shown == (search.said in {"go_persists", "too_small"})
    shown = {one["rule"]: one["observed"] for one in findings["conditions"]}
    assert shown == pytest.approx(own, rel=1e-9, abs=1e-12)


def test_nobody_is_compared_on_seeds_it_was_found_or_picked_on(search: Search) -> None:
    seeds = {
        comparison: {seed for arm in arms.values() for seed in arm["seeds"]}
        for comparison, arms in search.books.comparisons.items()
    }
    assert (len(seeds["finalists 0"]), len(seeds["winner 0"])) == (3, 8)
    assert seeds.pop("reference 0") == seeds["finalists 0"] | seeds["winner 0"]
    known = [{one.key[3] for one in books.searched} for books in search[1:3]]
    apart = [*seeds.values(), *known]
    assert sum(map(len, apart)) == len(set().union(*apart))


def test_each_generation_draws_its_own_points(search: Search) -> None:
    points = [np.array(one["points"]) for one in search.books.generations]
    drawn = np.corrcoef([(one - one.mean(axis=0)).ravel() for one in points])
    assert np.abs(drawn - np.eye(len(points))).max() < 0.9


def test_the_best_candidates_are_compared_again_and_the_best_goes_on(search: Search) -> None:
    """The best: furthest below their generation's mean, in the last third of generations."""
    books, generations = search.books, search.books.shape[1]
    lowest = [
        (one.score - fmean(scores(books, one.key[1])), one.key)
        for one in books.searched
        if one.score is not None and one.key[1] >= generations - ceil(generations / 3)
    ]
    arms = {name: arm["point"] for name, arm in books.comparisons["finalists 0"].items()}
    for _, (_, number, candidate, _) in sorted(lowest)[:2]:
        assert books.generations[number]["points"][candidate] in arms.values()
    gains = search.gains("finalists 0")
    best = max(gains, key=lambda name: (gains[name]["pairs"], gains[name]["mean"]))
    assert (best != max(gains, key=lambda name: gains[name]["mean"])) == (search.said == "unstable")
    compared = books.comparisons["winner 0"].items()
    assert [(name, arm["point"]) for name, arm in compared] == [(best, arms[best])]


def test_the_gain_by_chance_stands_beside_the_apparent_gain(search: Search) -> None:
    """Without a gain it is said to be chance where it is more than noise makes once in 100."""
    findings = search.report["findings"]
    seen, known = scores(search.books), scores(search.calibration)
    count, mean, spread = len(seen), fmean(known), stdev(known) / abs(fmean(known))
    seemed = (mean - min(seen)) / abs(mean)
    assert findings["seemed"] == pytest.approx(seemed, rel=1e-9)
    best_of_normals = stats.norm.expect(lambda x: x * count * stats.norm.cdf(x) ** (count - 1))
    assert findings["by_chance"] == pytest.approx(best_of_normals * spread, rel=0.01)
    (winner,) = search.gains("winner 0").values()
    most = max(0.01, winner["upper"], stats.norm.ppf(0.99 ** (1 / count)) * spread)
    if search.said == "below_noise":
        is_luck = seemed >= most
        (fired,) = search.books.fired
        assert (fired.rule, fired.decision) == ("seed_luck" if is_luck else "flat", "stop")
        numbers = (seemed, most) if is_luck else (winner["mean"], 0.01)
        assert (fired.observed, fired.limit) == pytest.approx(numbers, rel=1e-6)


@pytest.mark.parametrize(
    ("objective", "words", "fixed", "said"),
    [
        ("sphere", "--tier min", {}, None),  # it says that the plumbing works
        ("flat", "--set verdict.confirm_seeds=0", {"level": 0}, None),  # gains are shares of 0
        ("hill", "", {"crash": "reference"}, "unstable"),
    ],
)
def test_tier_min_and_what_has_no_baseline_never_get_a_go(
    product: Product, objective: str, words: str, fixed: dict[str, object], said: str | None
) -> None:
    phase1(product, objective, f"--set search.generations=2 {words}", 4 if said else 0, **fixed)
    verdict = product.books("run").verdict
    assert (verdict and verdict.reason) == said
    assert (product.json("best")["verdict"] or {}).get("no_go") == said


def test_without_a_baseline_away_from_zero_no_verdict_is_promised(product: Product) -> None:
    done = phase1(product, "flat", code=2, level=0)
    assert "--set verdict.confirm_seeds=0" in done.err
    assert not list(product.folder.glob("**/phase1/run"))


PHASE_2 = f"--tier min {SMALL} --set search.generations=2 --run-id second"


def test_a_phase_2_compares_with_what_its_phase_1_found(product: Product) -> None:
    """And the command that is printed after a Go starts it, without a file of settings."""
    phase1(product, "hill", "--set search.generations=4")
    first = product.books("run").verdict
    (command,) = commands_in(product.json("report run")["answer"]["commands"][0])
    product(f"{command} --set verdict.long_run=0 {PHASE_2}")
    product.verify("second")
    books, findings = product.books("second"), product.json("report second")["findings"]
    point = books.comparisons["reference 0"]["incumbent"]["point"]
    assert first is not None
    assert first.point == tuple(point)
    before, baseline = (books.scores("reference 0", arm) for arm in ("incumbent", "baseline"))
    agrees(found(findings, "incumbent")[0]["gain"], gain(before, baseline))
    (winner,) = books.comparisons["winner 0"]
    agrees(
        found(findings, "over_incumbent")[0]["gain"], gain(books.scores("winner 0", winner), before)
    )


def test_a_phase_2_follows_a_no_go_on_the_record_only(product: Product) -> None:
    phase1(product, "peak", "--set search.generations=2 --set verdict.long_run=0", code=4)
    words = f"phase2 --variant robust --from run --set verdict.confirm_seeds=0 {PHASE_2}"
    assert "--override go" in product(words, code=2).err
    product(f"{words} --override go", code=2)  # without a reason
    assert not list(product.folder.glob("**/second"))
    product(f"{words} --override go --reason curious")
    product.verify("second")
    assert product.books("second").overridden == [("go", 0, "curious")]
