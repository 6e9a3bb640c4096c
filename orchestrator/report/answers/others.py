"""Runs that search nothing: a calibration, a check, a campaign."""

from statistics import stdev

from budgets.campaign.effects import CampaignReport
from budgets.liveness import Liveness
from budgets.statistics.comparison import percent
from budgets.statistics.spread import sd_interval
from orchestrator.report.answers.asked import Asked, command
from orchestrator.report.answers.cost import cost
from orchestrator.report.model import Answer
from orchestrator.report.numbers import time_in_words


def calibrated(asked: Asked) -> Answer:
    """The baseline's score, its noise and its time."""
    results = [r for g in asked.state.generations for r in g.results()]
    scores = [r.score for r in results if r.score is not None]
    seconds = asked.report.eval_seconds
    took = "" if seconds is None else f" One evaluation takes {time_in_words(seconds)}."
    return Answer(
        title="Calibrated" if scores else "Not calibrated",
        sentence=asked.report.sentence,
        meaning="the configuration with nothing tuned was measured, for others to be compared with",
        luck="",
        found=_baseline(scores) + took,
        sure=_spread(scores),
        cost=cost(asked),
        next="See what a search would take, and what it could tell.",
        commands=(asked.of_objective("plan", "phase1"),),
        mood="good" if scores else "trouble",
    )


def _baseline(scores: list[float]) -> str:
    if not scores:
        return "Nothing: every evaluation of the baseline failed."
    return f"The baseline scores {sum(scores) / len(scores):.5g}, the mean of {len(scores)} seeds."


def _spread(scores: list[float]) -> str:
    """How far one configuration's scores differ, which is what a gain must stand out from."""
    if len(scores) < 2:
        return "One seed says nothing of how far scores differ from seed to seed."
    sd = stdev(scores)
    low, high = sd_interval(sd, len(scores))
    return (
        f"From seed to seed the score varies with a standard deviation of {sd:.3g}; {len(scores)} "
        f"seeds leave {low:.3g} to {high:.3g} possible (95%)."
    )


def checked(asked: Asked) -> Answer:
    """Which knobs move the score."""
    found = asked.report.check
    alive = 0 if found is None else len(found.names("alive"))
    return Answer(
        title="Checked" if found is not None or asked.report.proxy is not None else "Not checked",
        sentence=asked.report.sentence,
        meaning=(
            "each knob was moved alone, either way, on the same seeds"
            if asked.report.proxy is None
            else "candidates were evaluated short and in full, on the same seeds"
        ),
        luck="",
        found=_knobs(found) if asked.report.proxy is None else asked.report.sentence,
        sure=_sure(asked, found),
        cost=cost(asked),
        next=_search(found),
        commands=(asked.of_objective("phase1", "--tier", "target"),),
        mood="good" if alive or asked.report.proxy is not None else "bad",
    )


def _knobs(found: Liveness | None) -> str:
    if found is None:
        return "Nothing: the baseline was not measured."
    alive = found.names("alive")
    if not alive:
        return f"No: none of {len(found.knobs)} knobs is shown to move the score."
    return f"Yes: {', '.join(alive)} {'moves' if len(alive) == 1 else 'move'} the score."


def _sure(asked: Asked, found: Liveness | None) -> str:
    if found is None:
        return "See Verdict for what the comparison rests on."
    rate = percent(asked.state.plan.thresholds.alive_level)
    unproven = found.names("unproven")
    missed = f" Not shown either way: {', '.join(unproven)}." if unproven else ""
    return (
        f"On {found.seeds} seeds. Of the knobs said to move the score {rate} at most is expected "
        f"to be luck.{missed}"
    )


def _search(found: Liveness | None) -> str:
    dead = () if found is None else found.names("dead")
    if dead:
        return f"Search, and leave out what does nothing: {', '.join(dead)}."
    unproven = () if found is None else found.names("unproven")
    if unproven:
        return f"Search. On how many seeds {', '.join(unproven)} would show, Verdict below says."
    return "Search over these knobs."


def compared(asked: Asked, found: CampaignReport) -> Answer:
    """What a campaign's conditions and factors do to the score."""
    differing = _differing(found)
    is_any = bool(differing or found.found)
    return Answer(
        title="Effects found" if is_any else "No effect found",
        sentence=asked.report.sentence,
        meaning="conditions were evaluated on the same seeds and compared seed by seed",
        luck="",
        found=_effects(found, differing),
        sure=_certainty(found),
        cost=cost(asked),
        next=_more(found, is_any),
        commands=(f"{command('report', asked.run)} --png effects",),
        mood="good" if is_any else "open",
    )


def _differing(found: CampaignReport) -> int:
    """Conditions that are beyond chance from a control."""
    return sum(any(c.difference.is_found for c in row.comparisons) for row in found.rows)


def _effects(found: CampaignReport, differing: int) -> str:
    said = []
    if found.effects:
        said.append(f"{len(found.found)} of {len(found.effects)} effects are beyond chance")
    if found.controls:
        others = sum(bool(row.comparisons) for row in found.rows)
        said.append(f"{differing} of {others} conditions differ from a control beyond chance")
    if not said:
        return "There is no control and no factor to compare by: only the scores."
    return f"{'Yes' if differing or found.found else 'No'}: {'; '.join(said)}."


def _certainty(found: CampaignReport) -> str:
    if len(found.seeds) == 1:
        return "Not at all: with one seed nothing can be told from luck."
    said = (
        f"On {len(found.seeds)} seeds, {1 - found.level:.0%} intervals; of what is called beyond "
        f"chance {found.rate:.0%} at most is expected to be luck."
    )
    if found.detectable_percent is None:
        return said
    return f"{said} A main effect of {found.detectable_percent:.2g}% is seen 8 times of 10."


def _more(found: CampaignReport, is_any: bool) -> str:
    if found.unsettled:
        return "Some conditions are not settled: repeat the command that began it."
    if is_any:
        return "Take the better level of what moves the score. To show it, draw the effects:"
    return "More seeds in its file would show smaller effects. To show these, draw them:"
