"""What a search amounts to: Go, Go that persists, or a No-Go with a name. Numbers alone.

The finalists are the search distribution's mean, its average over the last generations, and the
best candidates. They are compared on the picking seeds; the best of them alone goes on to seeds
that nobody was picked on, so that having picked it does not flatter it there. Each condition of a
Go is a pure function of the state; `decide` puts them together once all that is planned is settled.
"""

from collections.abc import Mapping
from math import ceil, sqrt
from statistics import fmean, variance
from typing import Literal, TypeVar

from budgets.calibration import best_exceeded, best_of_noise
from budgets.calibration import noise as calibrated_noise
from budgets.events import Decided, Fired, GenerationTold, Grade, NoGo
from budgets.plan import ComparisonName, Configuration, Frozen
from budgets.state import Batch, RunState
from budgets.stats import Gain, gain, total, unexplained

# Who is compared on fresh seeds, and who wins there

Point = tuple[float, ...]
Item = TypeVar("Item")

BASELINE, INCUMBENT = "baseline", "incumbent"
AVERAGE, MEAN, BEST_CANDIDATE = "average", "mean", "best candidate"


def average(state: RunState) -> Point | None:
    """The mean of the distribution, averaged over the last third of the generations."""
    means = [told.mean for told in _last_third(learned(state))]
    if not means:
        return None
    return tuple(total(units) / len(means) for units in zip(*means, strict=True))


def stood_for(state: RunState) -> Point | None:
    """What the search itself would recommend; None before a generation is told.

    The mean of its distribution where a model put it, for the model has weighed all scores; its
    average over the last generations where none did.
    """
    told = learned(state)
    if told and told[-1].guided is not None:
        return told[-1].mean
    return average(state)


def learned(state: RunState) -> list[GenerationTold]:
    """What the search was told, generation by generation."""
    return [generation.told for generation in state.completed if generation.told is not None]


def _last_third(items: list[Item]) -> list[Item]:
    return items[-ceil(len(items) / 3) :]


def finalists(state: RunState) -> tuple[Configuration, ...]:
    """The configurations to compare, none of them twice; those likelier to be good come first."""
    confirmation, mean = state.plan.confirmation, average(state)
    assert confirmation is not None
    assert mean is not None
    last = learned(state)[-1].mean
    configurations = [Configuration(name=AVERAGE, point=mean), Configuration(name=MEAN, point=last)]
    for place, point in enumerate(best_candidates(state, confirmation.best_candidates), 1):
        configurations.append(Configuration(name=f"{BEST_CANDIDATE} {place}", point=point))
    points = [configuration.point for configuration in configurations]
    return tuple(
        configuration
        for place, configuration in enumerate(configurations)
        if configuration.point not in points[:place]
    )


def best_candidates(state: RunState, count: int) -> list[Point]:
    """Candidates of the last third of generations, furthest below their generation's mean first.

    Scores of different generations, on other seeds, do not compare as they are. Early generations
    spread more: theirs lie far below a mean that was worse.
    """
    ranked = sorted(
        (score - mean, generation.number, candidate)
        for generation in _last_third(state.completed)
        if (mean := mean_score(generation)) is not None
        for candidate, score in enumerate(generation.scores())
        if score is not None
    )
    return [state.completed[number].points[candidate] for _, number, candidate in ranked[:count]]


def recommendation(state: RunState) -> tuple[float, ...] | None:
    """The point of the unit cube that is recommended; None where there is none.

    What won on fresh seeds; before that, and where nothing is compared, what the search stands
    for. Never the best score seen: the best of many noisy scores is evidence of luck.
    """
    if state.decided is not None:
        return state.decided.point
    return stood_for(state)


def mean_score(generation: Batch) -> float | None:
    """Over its healthy candidates."""
    healthy = generation.healthy
    return total(healthy) / len(healthy) if healthy else None


def winner(state: RunState) -> Configuration | None:
    """The finalist with the best mean score on the picking seeds; None before they are settled.

    One that failed on more seeds than another is not it. Those that failed on other seeds each are
    compared on the seeds that all of them have. None also where all failed everywhere.
    """
    batch = state.comparison("finalists")
    if batch is None or not batch.closed:
        return None
    scores = [batch.scores_by_seed(place) for place in range(len(batch.configurations))]
    most = max(map(len, scores))
    left = [place for place, own in enumerate(scores) if len(own) == most]
    if most == 0:
        return None
    shared = set.intersection(*(set(scores[place]) for place in left))

    def mean(place: int) -> float:
        return fmean(score for seed, score in scores[place].items() if seed in shared or not shared)

    return batch.configurations[min(left, key=mean)]


def has_winner(state: RunState) -> bool:
    """Whether a finalist has a score at all, or may still get one."""
    batch = state.comparison("finalists")
    return batch is None or not batch.closed or winner(state) is not None


# Who gains how much over whom, on the seeds that both have scores on


def scores_of(state: RunState, comparison: ComparisonName, name: str) -> dict[int, float]:
    """Healthy scores by seed of the configuration of that name; empty where there is none."""
    batch = state.comparison(comparison)
    named = [] if batch is None else [one.name for one in batch.configurations]
    return batch.scores_by_seed(named.index(name)) if batch and name in named else {}


def baseline_scores(state: RunState) -> dict[int, float]:
    """The baseline's healthy scores on the confirmation's seeds."""
    return scores_of(state, "reference", BASELINE)


def winner_scores(state: RunState) -> dict[int, float]:
    """The winner's, on seeds nobody was picked on."""
    batch = state.comparison("winner")
    return {} if batch is None else batch.scores_by_seed(0)


def _gain(state: RunState, scores: Mapping[int, float], reference: Mapping[int, float]) -> Gain:
    return gain(scores, reference, state.plan.thresholds.go_level)


def _is_closed(state: RunState, *names: ComparisonName) -> bool:
    batches = (state.comparison(name) for name in names)
    return all(batch is not None and batch.closed for batch in batches)


def baseline_mean(state: RunState) -> float | None:
    """The baseline's score, by the calibration or by the confirmation's own evaluations."""
    calibration = state.plan.calibration
    if calibration is not None and calibration.mean_score is not None:
        return calibration.mean_score
    scores = baseline_scores(state)
    return fmean(scores.values()) if scores else None


class Finalist(Frozen):
    """A configuration that was compared on the picking seeds."""

    name: str
    gain: Gain  # over the baseline, there
    is_winner: bool


def picking_gains(state: RunState) -> tuple[Finalist, ...]:
    """Each finalist's gain over the baseline on the picking seeds, in the order of the batch."""
    batch, baseline, best = state.comparison("finalists"), baseline_scores(state), winner(state)
    if batch is None:
        return ()
    return tuple(
        Finalist(
            name=one.name,
            gain=_gain(state, batch.scores_by_seed(place), baseline),
            is_winner=best is not None and one.name == best.name,
        )
        for place, one in enumerate(batch.configurations)
    )


def average_gain(state: RunState) -> Gain | None:
    """The gain of the distribution's mean over the last third of generations.

    On the picking seeds; where it won there, on those nobody was picked on.
    """
    best = winner(state)
    if best is not None and best.name == AVERAGE and state.comparison("winner") is not None:
        return winner_gain(state)
    return next((one.gain for one in picking_gains(state) if one.name == AVERAGE), None)


def winner_gain(state: RunState) -> Gain | None:
    """The winner's gain over the baseline, on seeds nobody was picked on; None before they are."""
    if state.comparison("winner") is None:
        return None
    return _gain(state, winner_scores(state), baseline_scores(state))


def winner_means(state: RunState) -> tuple[float, float] | None:
    """Mean scores of the baseline and the winner on the seeds that the winner's gain is seen on.

    None where that is not seen.
    """
    scores, baseline = winner_scores(state), baseline_scores(state)
    seeds = set(scores) & set(baseline)
    if not seeds:
        return None
    return fmean(baseline[seed] for seed in seeds), fmean(scores[seed] for seed in seeds)


def _incumbent_scores(state: RunState) -> dict[int, float] | None:
    confirmation = state.plan.confirmation
    has_one = confirmation is not None and confirmation.incumbent is not None
    known = has_one and _is_closed(state, "reference")
    return scores_of(state, "reference", INCUMBENT) if known else None


def long_run_gain(state: RunState) -> Gain | None:
    """The winner's gain over the baseline on the long run; None before it is settled."""
    batch = state.comparison("long_run")
    if batch is None or not batch.closed:
        return None
    return _gain(state, batch.scores_by_seed(1), batch.scores_by_seed(0))


class Control(Frozen):
    """The objective with something switched off, at the baseline's knobs."""

    name: str
    gain: Gain  # over the baseline
    winner_gain: Gain  # of the winner over the control


def control_gains(state: RunState) -> tuple[Control, ...]:
    """What each control gains over the baseline, and the winner over it."""
    best, baseline = winner_scores(state), baseline_scores(state)
    batches = [b for name in ("reference", "winner") if (b := state.comparisons.get(name))]
    return tuple(
        Control(
            name=one.name,
            gain=_gain(state, own := batch.scores_by_seed(place), baseline),
            winner_gain=_gain(state, best, own),
        )
        for batch in batches
        for place, one in enumerate(batch.configurations)
        if one.settings
    )


# What luck alone would make of the search's scores


def spread(state: RunState) -> tuple[float | None, int]:
    """Standard deviation of the candidates of one generation, and its degrees of freedom.

    Over the first third of generations: there the search steps furthest. None where none of them
    has two healthy candidates.
    """
    first = state.completed[: ceil(len(state.completed) / 3)]
    healthy = [scores for generation in first if len(scores := generation.healthy) > 1]
    parts = [(variance(scores) * (len(scores) - 1), len(scores) - 1) for scores in healthy]
    return _pooled(parts), sum(freedom for _, freedom in parts)


def noise(state: RunState) -> float | None:
    """What that would be if all candidates were equally good; None where nothing tells.

    They share their seeds, so what a seed adds to all alike makes no two of them differ: most of a
    baseline's standard deviation over seeds may be of that kind. What is left is seen where
    finalists, winner and baseline are compared on the same fresh seeds.
    """
    parts = []
    for batch in filter(None, (state.comparison("finalists"), state.comparison("winner"))):
        configurations = enumerate(batch.configurations)
        rows = [batch.scores_by_seed(n) for n, one in configurations if not one.settings]
        parts.append(unexplained([row for row in (baseline_scores(state), *rows) if row]))
    one_seed = _pooled(parts)
    return None if one_seed is None else one_seed / sqrt(state.plan.resolved.seeds_per_candidate)


def _pooled(parts: list[tuple[float, int]]) -> float | None:
    """The standard deviation that sums of squares, with their degrees of freedom, amount to."""
    freedom = sum(own for _, own in parts)
    return sqrt(total(squares for squares, _ in parts) / freedom) if freedom else None


def promise(state: RunState) -> float | None:
    """The gain that the search's best score, of a full evaluation, seemed to have."""
    baseline = baseline_mean(state)
    scores = [score for g in state.completed for score in g.healthy]
    return (baseline - min(scores)) / abs(baseline) if baseline and scores else None


def luck(state: RunState, share: float | None = None) -> float | None:
    """The same if every candidate were the baseline, each on seeds of its own: on average.

    With a `share`, the gain that it exceeds with that probability. Candidates that share a seed
    differ by less, so it is the most that luck makes.
    """
    calibration, baseline = state.plan.calibration, baseline_mean(state)
    sd = calibration.sd_score if calibration is not None else None
    if sd is None or not baseline:
        return None
    count = sum(len(generation.healthy) for generation in state.completed)
    one_candidate = sd / sqrt(state.plan.resolved.seeds_per_candidate)
    best = best_of_noise(count) if share is None else best_exceeded(count, share)
    return best * one_candidate / abs(baseline)


# The conditions of a Go, and the decision

BY_CHANCE = 0.01
"""How often the best of as many baselines would seem better than what counts as luck of the seed
rather than as the noise there is."""

Rule = Literal["signal", "stability", "persistence", "sanity", "long_run"]


class Condition(Frozen):
    """Something a Go needs, and whether it is there."""

    rule: Rule
    met: bool
    observed: float | None
    limit: float


def signal(state: RunState) -> Condition:
    """The gain on fresh seeds is as large as asked for, and more than chance."""
    limits, found = state.plan.thresholds, winner_gain(state)
    mean = None if found is None else found.mean
    met = found is not None and mean is not None and mean >= limits.go_gain and found.is_shown
    met = met and found is not None and found.pairs >= limits.go_seeds
    return Condition(rule="signal", met=met, observed=mean, limit=limits.go_gain)


def stability(state: RunState) -> Condition:
    """Few evaluations of the last generations failed by themselves."""
    limits = state.plan.thresholds
    limit, last = limits.go_crash_rate, state.completed[-limits.go_generations :]
    count, failed = sum(g.settled for g in last), sum(len(g.failed) for g in last)
    rate = failed / count if count else 1.0
    return Condition(rule="stability", met=rate < limit, observed=rate, limit=limit)


def persistence(state: RunState) -> Condition:
    """The search as a whole became better than the baseline and stayed so, not one lucky candidate.

    Judged by the mean of its distribution over the last third of the generations, paired on fresh
    seeds. The candidates' own scores cannot tell: generations do not share their seeds, and
    candidates that spread around a good mean are worse than it. Nor can fewer than two generations.
    """
    found = average_gain(state)
    mean = None if found is None or len(state.completed) < 2 else found.mean
    met = mean is not None and mean > 0
    return Condition(rule="persistence", met=met, observed=mean, limit=0.0)


def sanity(state: RunState) -> Condition:
    """The winner's own training runs are sound: they end, do not explode and are not unstable."""
    limit, batch = state.plan.thresholds.go_pathological, state.comparison("winner")
    results = [] if batch is None else [r for r in batch.results() if r.candidate == 0]
    sick = [
        r.score is None or bool(r.metrics.get("exploding") or r.metrics.get("unstable"))
        for r in results
    ]
    share = sum(sick) / len(sick) if sick else 1.0
    return Condition(rule="sanity", met=share <= limit, observed=share, limit=limit)


def long_run(state: RunState) -> Condition | None:
    """Enough of the gain is kept on more FLOPs, above chance; None where that was not tried.

    Nothing is kept where the winner fails there on every seed.
    """
    found, at_budget = long_run_gain(state), winner_gain(state)
    confirmation, batch = state.plan.confirmation, state.comparison("long_run")
    if found is None or at_budget is None or confirmation is None or confirmation.long_run is None:
        return None
    limit, kept = state.plan.thresholds.persist_share, None
    if found.mean is not None and at_budget.mean:
        kept = found.mean / at_budget.mean
    elif found.mean is None and batch is not None and not batch.scores_by_seed(1):
        kept = 0.0
    enough = found.pairs >= min(2, confirmation.long_run.seeds)  # one that is left is a glimpse
    met = enough and kept is not None and kept >= limit and found.is_shown
    return Condition(rule="long_run", met=met, observed=kept, limit=limit)


def conditions(state: RunState) -> tuple[Condition, ...]:
    """All of a Go, as far as they can be judged; empty before the winner was compared."""
    if not _is_closed(state, "winner"):
        return ()
    judged = (signal(state), stability(state), persistence(state), sanity(state), long_run(state))
    return tuple(condition for condition in judged if condition is not None)


def is_promising(state: RunState) -> bool:
    """Whether the winner is a Go at this budget, so that the long run is worth its price."""
    judged = (signal, stability, persistence, sanity)
    return all(rule(state).met for rule in judged)


# The decision


def decide(state: RunState) -> tuple[tuple[Fired, ...], Decided]:
    """The decision, and the stop rules that speak with it. All that was planned is settled."""
    best, measured = winner(state), winner_gain(state)
    if best is None or measured is None:
        return (), Decided(grade="no_go", no_go="pathological")
    found = {condition.rule: condition for condition in conditions(state)}
    fired: tuple[Fired, ...] = ()
    if found["signal"].met:
        grade, no_go = _grade(found)
    elif measured.mean is None or measured.pairs < state.plan.thresholds.go_seeds:
        grade, no_go = "no_go", _too_few(state, measured, found)
    elif measured.is_shown:
        grade, no_go = "no_go", "too_small"
    else:
        grade, no_go = "no_go", "dead_space" if _is_dead(state) else "below_noise"
        fired = (_stop(state, measured, measured.mean),)
    is_go = grade != "no_go"  # whatever else won may have won by luck
    return fired, Decided(
        grade=grade,
        no_go=no_go,
        configuration=best.name if is_go else "",
        point=best.point if is_go else None,
        gain=measured.mean,
        lower=measured.lower,
    )


_NAMES: dict[Rule, NoGo] = {
    "stability": "unstable",
    "persistence": "does_not_persist",
    "sanity": "pathological",
}


def _grade(found: dict[Rule, Condition]) -> tuple[Grade, NoGo | None]:
    """Where a gain was shown. A long run that could not be measured leaves the Go as it is."""
    for rule, name in _NAMES.items():
        if not found[rule].met:
            return "no_go", name
    long_run = found.get("long_run")
    if long_run is not None and long_run.met:
        return "go_persists", None
    if long_run is not None and long_run.observed is not None and long_run.observed <= 0:
        return "no_go", "does_not_persist"
    return "go", None


def _too_few(state: RunState, measured: Gain, found: dict[Rule, Condition]) -> NoGo:
    """Nothing can be said of a gain: runs failed, or too few seeds were planned."""
    if not found["sanity"].met:
        return "pathological"
    planned = len(state.comparisons["winner"].seeds[0])
    failed = measured.pairs < min(state.plan.thresholds.go_seeds, planned)
    return "unstable" if failed else "below_noise"


def _is_dead(state: RunState) -> bool:
    """Whether candidates differ by no more than chance, as far as enough of them can say so."""
    limits, (seen, freedom), by_chance = state.plan.thresholds, spread(state), noise(state)
    if seen is None or by_chance is None or freedom < limits.dead_freedom:
        return False
    return seen <= limits.dead_spread * by_chance


def _stop(state: RunState, measured: Gain, real: float) -> Fired:
    """Seed luck, where the best score promised more than fresh seeds and noise allow; or flat."""
    asked, seemed, chance = state.plan.thresholds.go_gain, promise(state), luck(state, BY_CHANCE)
    most = max(asked, measured.upper or 0.0, chance or 0.0)
    is_luck = seemed is not None and seemed >= most
    return Fired(
        rule="seed_luck" if is_luck else "flat",
        generation=state.begun - 1,
        decision="stop",
        observed=real if seemed is None or not is_luck else seemed,
        limit=most if is_luck else asked,
        facts={"upper": measured.upper or 0.0}
        if is_luck
        else {"evaluations": state.accounts.evaluations},
    )


# All that is known

TITLES: dict[Grade, str] = {
    "go_persists": "Go that persists",
    "go": "Go; persistence not shown",
    "no_go": "No-Go",
}

NAMES: dict[NoGo, str] = {
    "dead_space": "dead space",
    "below_noise": "below noise",
    "too_small": "smaller than asked",
    "does_not_persist": "does not persist",
    "pathological": "pathological",
    "unstable": "unstable",
}


class Findings(Frozen):
    """What is known so far; most of it is None until its evaluations are settled."""

    grade: Grade | None
    no_go: NoGo | None
    asked: float  # the gain a Go needs, relative to the baseline's score
    configuration: str | None  # that is recommended
    gain: Gain | None  # the winner's over the baseline, on seeds nobody was picked on
    finalists: tuple[Finalist, ...]
    controls: tuple[Control, ...]
    incumbent: Gain | None  # an earlier winner's over the baseline
    long_run: Gain | None  # the winner's over the baseline, on more FLOPs
    long_run_label: str | None
    conditions: tuple[Condition, ...]
    seemed: float | None  # gain that the search's best score promised
    luck: float | None  # ... that the best of as many baselines would have
    over_incumbent: Gain | None = None  # the winner's over that earlier one


def beating(found: Findings) -> list[Control]:
    """Controls that the winner is shown to be worse than."""
    return [one for one in found.controls if one.winner_gain.is_loss]


def unbeaten(found: Findings) -> list[Control]:
    """Controls that the winner is not shown to be better than."""
    compared = [one for one in found.controls if one.winner_gain.mean is not None]
    return [one for one in compared if not one.winner_gain.is_shown]


def title(grade: Grade, no_go: NoGo | None) -> str:
    """`Go; persistence not shown`, `No-Go, below noise`."""
    return TITLES[grade] if no_go is None else f"{TITLES[grade]}, {NAMES[no_go]}"


def findings(state: RunState) -> Findings | None:
    """What the run found; None of one that is not to be compared with the baseline."""
    plan, decided = state.plan, state.decided
    if plan.confirmation is None:
        return None
    earlier, long_run = _incumbent_scores(state), plan.confirmation.long_run
    incumbent = over_incumbent = None
    if earlier is not None:
        incumbent = _gain(state, earlier, baseline_scores(state))
        if _is_closed(state, "winner"):
            over_incumbent = _gain(state, winner_scores(state), earlier)
    measured = None if plan.calibration is None else calibrated_noise(plan.calibration)
    is_share = measured is None or not measured.is_about_zero  # a gain, of the baseline's score
    return Findings(
        grade=None if decided is None else decided.grade,
        no_go=None if decided is None else decided.no_go,
        asked=plan.thresholds.go_gain,
        configuration=decided.configuration or None if decided is not None else None,
        gain=winner_gain(state) if _is_closed(state, "reference", "winner") else None,
        finalists=picking_gains(state),
        controls=control_gains(state),
        incumbent=incumbent,
        long_run=long_run_gain(state),
        long_run_label=None if long_run is None else long_run.variant.label,
        conditions=conditions(state),
        seemed=promise(state) if is_share else None,
        luck=luck(state) if is_share else None,
        over_incumbent=over_incumbent,
    )
