"""A verdict rests on fresh paired seeds: each grade and each No-Go where the truth is known.

Every number is computed here again, from the raw scores of the ledger.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import chain
from math import ceil, sqrt
from statistics import fmean, stdev, variance
from typing import Any, NamedTuple

import pytest
from scipy import integrate, optimize, stats

from tests.acceptance.books import FAILED, Books
from tests.acceptance.product import Product, WarmStart
from tests.acceptance.searches import SMALL, books_of, calibration_of, phase1, scores

pytestmark = pytest.mark.xdist_group("verdicts")

LEVEL = 0.01
"""With which probability a bound of a verdict misses the truth."""

LARGE = "--set available=0.3 --set noise=0.002 --generations 6 --rung-seeds 5"
EARLY = "--population 12 --generations 4 --rung 0"
"""Enough candidates in the first third of generations to call knobs dead."""
SEARCHES = {  # of eight candidates a generation: what is searched, how, and what must be said
    "go": ("hill", "--generations 4 --rung 0", "go", None),
    "persists": ("sphere", LARGE, "go_persists", None),
    "lost-later": ("sphere", f"{LARGE} --set persists=-1", "no_go", "does_not_persist"),
    "one-lucky": ("needle", "--generations 2", "no_go", "does_not_persist"),
    "luck": ("lucky", EARLY, "no_go", "dead_space"),
    "at-the-peak": ("peak", EARLY, "no_go", "below_noise"),
    "small": (
        *("sphere", "--generations 6 --set available=0.006 --set noise=0.0003"),
        *("no_go", "too_small"),
    ),
    "exploding": ("exploding", "--generations 2", "no_go", "pathological"),
    "crashing": ("one_crashes", "--generations 4", "no_go", "unstable"),
    "no-baseline": ("reference_crashes", "--generations 2", "no_go", "unstable"),
}
COMPARED = [name for name in SEARCHES if name != "no-baseline"]
UNSHOWN = ["luck", "at-the-peak"]


class Ended(NamedTuple):
    books: Books
    calibration: Books
    findings: dict[str, Any]  # of the report
    best: dict[str, Any]

    @property
    def winner(self) -> dict[int, float | None]:
        (arm,) = self.books.comparisons["winner 0"]
        return self.books.scores("winner 0", arm)

    @property
    def baseline(self) -> dict[int, float | None]:
        return self.books.scores("reference 0", "baseline")

    @property
    def rung(self) -> "Gain | None":
        if "rung 0" not in self.books.comparisons:
            return None
        baseline, winner = self.books.comparisons["rung 0"]
        return gain(*(self.books.scores("rung 0", arm) for arm in (winner, baseline)))


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory, warm_start: WarmStart) -> Iterator[Product]:
    """One user in whose folder all searches of this file are."""
    folder = tmp_path_factory.mktemp("verdicts") / "user"
    folder.mkdir()
    one = Product(folder, warm_start)
    yield one
    one.end()


@pytest.fixture(scope="module")
def ended(user: Product) -> Callable[[str], Ended]:
    """`ended(name)`: how that search of the table ended. It is carried out once."""

    @cache
    def search(name: str) -> Ended:
        objective, words, grade, _ = SEARCHES[name]
        phase1(user, name, objective, *words.split(), code=4 if grade == "no_go" else 0)
        findings = user.json("report", name)["findings"]
        both = books_of(user, name), calibration_of(user, name)
        return Ended(*both, findings, user.json("best", name))

    return search


Searches = Callable[[str], Ended]


class Gain(NamedTuple):
    """How much better than the baseline, as a share of its score; paired by seed."""

    pairs: int
    mean: float
    lower: float
    upper: float
    detectable: float


def gain(own: Mapping[int, float | None], reference: Mapping[int, float | None]) -> Gain:
    pairs = [
        (one, other)
        for seed, other in reference.items()
        if other is not None and (one := own.get(seed)) is not None
    ]
    scale = abs(fmean(other for _, other in pairs))
    gains = [(other - one) / scale for one, other in pairs]
    count, mean = len(gains), fmean(gains)
    error = stdev(gains) / sqrt(count)
    limit = float(stats.t.ppf(1 - LEVEL, count - 1))

    def missed(true: float) -> float:
        """By how much a true gain of that size is shown less often than 8 times of 10."""
        return float(0.8 - stats.nct.sf(limit, count - 1, true / error))

    detectable = optimize.brentq(missed, 0.0, 50 * limit * error) if error else 0.0
    return Gain(count, mean, mean - limit * error, mean + limit * error, float(detectable))


def agrees(shown: dict[str, Any], own: Gain) -> None:
    exact = {name: shown[name] for name in ("pairs", "mean", "lower", "upper")}
    assert exact == pytest.approx({name: getattr(own, name) for name in exact}, rel=1e-7)
    assert shown["detectable"] == pytest.approx(own.detectable, rel=1e-3)


@pytest.mark.parametrize("name", SEARCHES)
def test_each_verdict_is_given_where_it_is_the_truth(ended: Searches, name: str) -> None:
    _, _, grade, reason = SEARCHES[name]
    search, is_go = ended(name), grade != "no_go"
    verdict = search.books.verdict
    assert verdict is not None
    assert (verdict.grade, verdict.reason) == (grade, reason)
    assert (search.findings["grade"], search.findings["no_go"]) == (grade, reason)
    assert search.best["verdict"] == {"grade": grade, "no_go": reason}
    assert search.best["recommended"]["is"] == ("candidate" if is_go else "baseline")
    assert (verdict.point is not None) == is_go


@pytest.mark.parametrize("name", COMPARED)
def test_gains_and_their_bounds_follow_from_the_raw_scores(ended: Searches, name: str) -> None:
    search = ended(name)
    own, verdict = gain(search.winner, search.baseline), search.books.verdict
    assert verdict is not None
    assert (verdict.gain, verdict.lower) == pytest.approx((own.mean, own.lower), rel=1e-7)
    agrees(search.findings["gain"], own)
    agrees(search.best["winner"]["gain"], own)
    for one in search.findings["finalists"]:
        agrees(one["gain"], gain(search.books.scores("finalists 0", one["name"]), search.baseline))
    if search.rung is not None:
        agrees(search.findings["rung"], search.rung)


@pytest.mark.parametrize("name", COMPARED)
def test_what_a_go_needs_is_read_from_the_raw_results(ended: Searches, name: str) -> None:
    search = ended(name)
    books, gained = search.books, gain(search.winner, search.baseline)
    of_mean = gained
    if "average" not in books.comparisons["winner 0"]:  # where it won, on the winner's seeds
        of_mean = gain(books.scores("finalists 0", "average"), search.baseline)
    last = [one for one in books.searched if one.key[1] >= books.shape[1] - 3]
    own = {
        "signal": gained.mean,
        "stability": sum(one.status in FAILED for one in last) / len(last),
        "persistence": of_mean.mean,
        "sanity": 1.0 if name == "exploding" else 0.0,
    }
    if search.rung is not None:
        own["rung"] = search.rung.mean / gained.mean
    shown = {one["rule"]: one["observed"] for one in search.findings["conditions"]}
    assert shown == pytest.approx(own, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", SEARCHES)
def test_nobody_is_compared_on_seeds_it_was_found_or_picked_on(ended: Searches, name: str) -> None:
    search = ended(name)
    seeds = {
        panel: {seed for arm in arms.values() for seed in arm["seeds"]}
        for panel, arms in search.books.comparisons.items()
    }
    assert (len(seeds["finalists 0"]), len(seeds["winner 0"])) == (3, 8)
    assert seeds.pop("reference 0") == seeds["finalists 0"] | seeds["winner 0"]
    known = ({one.key[3] for one in books.searched} for books in search[:2])
    apart = [*seeds.values(), *known]
    assert sum(map(len, apart)) == len(set().union(*apart))


@pytest.mark.parametrize("name", SEARCHES)
def test_the_luckiest_are_compared_again_and_the_best_goes_on(ended: Searches, name: str) -> None:
    """The luckiest: furthest below their generation's mean, in the last third of generations."""
    books = ended(name).books
    _, generations, _ = books.shape
    lucky = [
        (one.score - fmean(scores(books, one.key[1])), one.key)
        for one in books.searched
        if one.score is not None and one.key[1] >= generations - ceil(generations / 3)
    ]
    points = [books.generations[key[1]]["points"][key[2]] for _, key in sorted(lucky)[:2]]
    arms = books.comparisons["finalists 0"]
    assert all(point in [arm["point"] for arm in arms.values()] for point in points)
    means = {arm: fmean(filter(None, books.scores("finalists 0", arm).values())) for arm in arms}
    best = min(arms, key=lambda arm: means[arm])
    compared = {arm: one["point"] for arm, one in books.comparisons["winner 0"].items()}
    assert compared == {best: arms[best]["point"]}


@pytest.mark.parametrize("name", COMPARED)
def test_what_luck_alone_would_seem_stands_beside_what_seemed(ended: Searches, name: str) -> None:
    """Without a gain it is said to be luck where it is more than luck does once in 100."""
    search = ended(name)
    found, known = scores(search.books), scores(search.calibration)
    count, mean, sd = len(found), fmean(known), stdev(known)
    seemed = (mean - min(found)) / abs(mean)
    assert search.findings["seemed"] == pytest.approx(seemed, rel=1e-9)

    def density(x: float) -> float:
        return float(x * count * stats.norm.pdf(x) * stats.norm.cdf(x) ** (count - 1))

    best_of_normals = integrate.quad(density, -9, 9)[0]
    assert search.findings["luck"] == pytest.approx(best_of_normals * sd / abs(mean), rel=0.01)
    if name in UNSHOWN:
        gained, rare = gain(search.winner, search.baseline), stats.norm.ppf(0.99 ** (1 / count))
        most = max(0.01, gained.upper, float(rare) * sd / abs(mean))
        (fired,) = search.books.fired
        assert (seemed >= most) == (name == "luck")
        numbers = (seemed, most) if name == "luck" else (gained.mean, 0.01)
        assert (fired.observed, fired.limit) == pytest.approx(numbers, rel=1e-6)
        assert (fired.rule, fired.decision) == ("seed_luck" if name == "luck" else "flat", "stop")


@pytest.mark.parametrize("name", UNSHOWN)
def test_knobs_are_dead_where_candidates_differ_by_no_more_than_chance(
    ended: Searches, name: str
) -> None:
    """Chance is what neither seed nor configuration explains, on the seeds of the verdict."""
    search = ended(name)
    population, generations, _ = search.books.shape
    third = range(ceil(generations / 3))
    assert len(third) * (population - 1) >= 20
    spread = fmean(variance(scores(search.books, number)) for number in third)
    squares, freedom = 0.0, 0
    for panel in ("finalists 0", "winner 0"):
        arms = [search.books.scores(panel, arm) for arm in search.books.comparisons[panel]]
        rows = [[arm[seed] or 0.0 for seed in arms[0]] for arm in [search.baseline, *arms]]
        columns = [fmean(column) for column in zip(*rows, strict=True)]
        whole = fmean(chain.from_iterable(rows))
        squares += sum(
            (score - fmean(row) - column + whole) ** 2
            for row in rows
            for score, column in zip(row, columns, strict=True)
        )
        freedom += (len(rows) - 1) * (len(columns) - 1)
    is_dead = sqrt(spread) <= 1.1 * sqrt(squares / freedom)
    assert is_dead == (SEARCHES[name][3] == "dead_space")


@pytest.mark.parametrize("words", ["", "--confirm-seeds 8"])
def test_tier_min_never_says_go(user: Product, words: str) -> None:
    """However large the gain: it says that the plumbing works."""
    name = f"min{words}".replace(" ", "-")
    phase1(user, name, "sphere", "--tier", "min", *words.split())
    assert books_of(user, name).verdict is None
    assert user.json("best", name)["verdict"] is None


def test_without_a_baseline_away_from_zero_no_verdict_is_promised(user: Product) -> None:
    """A gain is a share of it. The calibration stays, and a search without a verdict uses it."""
    for _ in range(2):
        assert "--confirm-seeds 0" in phase1(user, "zero", "around_zero", code=2).err
    assert not list(user.folder.glob("**/phase1/zero"))
    phase1(user, "zero", "around_zero", "--confirm-seeds", 0, "--generations", 2)
    assert len(calibration_of(user, "zero").attempts) == 8
    assert books_of(user, "zero").verdict is None


PHASE_2 = ("--variant", "robust", "--tier", "min", *SMALL, "--generations", 2)


def test_a_phase_2_compares_with_what_its_phase_1_found(user: Product, ended: Searches) -> None:
    found = ended("go").books.verdict
    assert found is not None
    words = ("--config", "hill.toml", "--from", "go", "--run-id", "second", "--rung", 0)
    user("phase2", *words, *PHASE_2)
    user.verify("second")
    books, findings = books_of(user, "second"), user.json("report", "second")["findings"]
    assert tuple(books.comparisons["reference 0"]["incumbent"]["point"]) == found.point
    before, baseline = (books.scores("reference 0", arm) for arm in ("incumbent", "baseline"))
    agrees(findings["incumbent"], gain(before, baseline))
    (winner,) = books.comparisons["winner 0"]
    agrees(findings["over_incumbent"], gain(books.scores("winner 0", winner), before))


def test_a_phase_2_follows_a_no_go_on_the_record_only(user: Product, ended: Searches) -> None:
    ended("luck")
    command = ("phase2", "--config", "lucky.toml", "--from", "luck", "--run-id", "all-the-same")
    words = (*command, *PHASE_2, "--confirm-seeds", 0)
    assert "--override go" in user(*words, code=2).err
    user(*words, "--override", "go", code=2)  # without a reason
    assert not list(user.folder.glob("**/all-the-same"))
    user(*words, "--override", "go", "--reason", "curious")
    user.verify("all-the-same")
    assert books_of(user, "all-the-same").overridden == [("go", 0, "curious")]
