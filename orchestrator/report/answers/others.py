"""Runs that search nothing: a calibration, a check."""

from math import sqrt
from statistics import fmean, stdev

from budgets.calibration import ONE_SCORE, measure
from budgets.liveness import EndEffect, KnobFinding, Liveness
from budgets.statistics.detectable import detectable
from budgets.statistics.spread import sd_interval
from budgets.words import about, counted, first_few, listed, percent, sentence_case
from orchestrator.planning.plan import no_share
from orchestrator.planning.request import VERDICT_SEEDS
from orchestrator.report.answers.afterwards import After
from orchestrator.report.answers.asked import Asked
from orchestrator.report.answers.cost import cost
from orchestrator.report.measured import measured_in
from orchestrator.report.model import Answer


def calibrated(asked: Asked) -> Answer:
    """The baseline's score, its noise and its time."""
    results = [r for g in asked.state.generations for r in g.results()]
    scores = [r.score for r in results if r.score is not None]
    return Answer(
        title="Baseline measured" if scores else "Baseline not measured",
        sentence=_baseline(asked, scores),
        meaning="The baseline was evaluated, for searches to be compared with.",
        found=_noise(asked, scores),
        sure=_spread(asked, scores),
        cost=cost(asked),
        next="See what a search would take, and what it could tell.",
        commands=(asked.of_objective("plan", "phase1"),),
        mood="good" if scores else "trouble",
    )


def _baseline(asked: Asked, scores: list[float]) -> str:
    if not scores:
        return f"All {asked.settled} evaluations of the baseline failed."
    what = sentence_case(measured_in(asked.state))
    return (
        f"{what} of the baseline: {fmean(scores):.5g}, the mean of {counted(len(scores), 'seed')} "
        "(lower is better)."
    )


def _noise(asked: Asked, scores: list[float]) -> str:
    if not scores:
        return "Nothing: no evaluation has a score."
    seconds = asked.report.eval_seconds
    took = "" if seconds is None else f" One evaluation takes {about(seconds)}."
    if len(scores) < 2 or no_share(measure(asked.state)):
        return f"The baseline's score.{took}"
    noise, sd = abs(stdev(scores) / fmean(scores)), stdev(scores)
    return (
        f"The baseline's score, and its noise: from seed to seed it varies by {percent(noise, 3)} "
        f"(a standard deviation of {sd:.3g}).{took}"
    )


def _spread(asked: Asked, scores: list[float]) -> str:
    """How well the noise is known, and what gain stands out from it."""
    if len(scores) < 2:
        return "One seed says nothing of how far scores differ from seed to seed."
    mean, sd = abs(fmean(scores)), stdev(scores)
    if why := no_share(measure(asked.state)):
        return f"No gain can be told: {why}."
    if not sd:
        return f"All {len(scores)} seeds gave one score: {ONE_SCORE}."
    low, high = (percent(bound / mean, 3) for bound in sd_interval(sd, len(scores)))
    limits = asked.state.plan.thresholds
    seen = percent(detectable(sqrt(2) * sd / mean, VERDICT_SEEDS, limits.go_level), 3)
    return (
        f"95% sure that the noise is from {low} to {high}. With the noise as measured, a search's "
        f"comparison on {VERDICT_SEEDS} fresh seeds would see a true gain of {seen} 8 times of 10; "
        f"a Go needs {percent(limits.go_gain)}."
    )


def checked(asked: Asked) -> Answer:
    """Which knobs move the score."""
    found, proxy = asked.report.check, asked.report.proxy
    alive = () if found is None else found.names("alive")
    way = _search(asked, found)
    return Answer(
        title="Checked" if proxy is not None else _title(found),
        sentence=asked.report.sentence if found is None else _moving(found),
        meaning=(
            "Each knob was moved alone, either way, on the same seeds."
            if proxy is None
            else "Candidates were evaluated short and in full, on the same seeds."
        ),
        found=_sizes(found) if proxy is None else asked.report.sentence,
        sure=_sure(asked, found),
        cost=cost(asked),
        next=way.said,
        commands=way.commands,
        mood="good" if alive or proxy is not None else "bad",
    )


def _title(found: Liveness | None) -> str:
    if found is None:
        return "Not checked"
    count = len(found.names("alive"))
    return f"{count or 'None'} of {counted(len(found.knobs), 'knob')} {_move(count)} the score"


def _move(count: int) -> str:
    return "moves" if count == 1 else "move"


def _moving(found: Liveness) -> str:
    """`x9 and x8 move the score; x1 does nothing to it; the other 7 are not shown to.`"""
    alive, dead = found.names("alive"), found.names("dead")
    left = len(found.knobs) - len(alive) - len(dead)
    if not alive and not dead:
        return "None of the knobs is shown to move the score."
    said = [f"{listed(alive)} {_move(len(alive))} the score"] if alive else []
    if dead:
        does, what = "does" if len(dead) == 1 else "do", "it" if alive else "the score"
        said.append(f"{listed(dead)} {does} nothing to {what}")
    if left:
        said.append(f"the other {left} {'is' if left == 1 else 'are'} not shown to move it")
    return f"{'; '.join(said)}."


def _sizes(found: Liveness | None) -> str:
    """By how much each knob moves it, which way; the largest first."""
    if found is None:
        return "Nothing: the baseline was not measured."
    alive = [one for one in found.knobs if one.verdict == "alive"]
    if not alive:
        return f"No: none of {counted(len(found.knobs), 'knob')} is shown to move the score."
    return f"Yes: {first_few([_size(one, found) for one in alive], 4)}. Lower scores are better."


def _size(own: KnobFinding, found: Liveness) -> str:
    return f"{own.knob} {', '.join(_at(end, found) for end in own.ends if end.moves)}"


def _at(end: EndEffect, found: Liveness) -> str:
    """`3.1% worse at its low end`."""
    assert end.difference is not None, "one that moves the score was measured"
    where = f"at its {end.end} end"
    if found.centre == "recommendation":
        where = f"a step {'down' if end.end == 'low' else 'up'}"
    side = "better" if end.difference < 0 else "worse"
    if not found.baseline:
        return f"{abs(end.difference):.3g} {side} {where}"
    return f"{percent(abs(end.difference / found.baseline), 3)} {side} {where}"


def _sure(asked: Asked, found: Liveness | None) -> str:
    if found is None:
        return "See Verdict for what the comparison rests on."
    rate = percent(asked.state.plan.thresholds.alive_level)
    left = len(found.names("unproven"))
    missed = f" {left} {'is' if left == 1 else 'are'} not shown either way." if left else ""
    return (
        f"Measured on {counted(found.seeds, 'seed')}, each compared with the {found.centre} there. "
        f"Of the knobs said to move the score {rate} at most are expected to be luck.{missed}"
    )


def _search(asked: Asked, found: Liveness | None) -> After:
    search = (asked.of_objective("phase1", "--tier", "target"),)
    if found is None:
        return After("Search over these knobs.", search)
    if dead := found.names("dead"):
        return After(f"Search, and leave out what does nothing: {listed(dead, 5)}.", search)
    unproven = [one for one in found.knobs if one.verdict == "unproven"]
    if not unproven:
        return After("Search over these knobs.", search)
    needed = [one.seeds_needed for one in unproven if one.seeds_needed is not None]
    if not found.names("alive") and needed:
        said = f"Check again with more seeds: {min(needed)} would show the first, if it is real."
        return After(said, (asked.of_objective("space", "check", "--seeds", str(min(needed))),))
    return After(
        f"Search over all {len(found.knobs)}: the other {len(unproven)} may matter too, by less "
        f"than {counted(found.seeds, 'seed')} can show.",
        search,
    )
