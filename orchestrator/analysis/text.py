"""What an analysis says, as Markdown for a person."""

from collections.abc import Iterator
from math import floor, log10

from budgets.plain import plain
from budgets.table import table
from orchestrator.analysis.analyze import Analysis
from orchestrator.analysis.sensitivity import Coefficient, Estimate, KnobEstimate

MOST_PAIRS = 5
"""Correlations that are named."""


def to_markdown(analysis: Analysis) -> str:
    """All of it, the search's distribution first."""
    lines = [
        f"# {plain(analysis.run_id)}: which knobs matter, around the recommendation",
        "",
        f"From {analysis.generations} finished generations, replayed from the ledger. Nothing was "
        f"evaluated for this.{_instead(analysis)}",
        "",
        "## The search's distribution",
        "",
        *_distribution(analysis),
        "",
        "## An estimate from the paid evaluations",
        "",
        *_estimate(analysis),
        "",
    ]
    return "\n".join(lines)


def _instead(analysis: Analysis) -> str:
    if analysis.recommended:
        return ""
    return " The run recommends nothing: what the search stood for at last takes its place."


def _distribution(analysis: Analysis) -> Iterator[str]:
    found, first = analysis.landscape, analysis.first
    yield (
        f"Step size {found.sigma:.3g}, at first {first.sigma:.3g}. The longest axis has "
        f"{found.condition:.3g} times the variance of the shortest; on pure noise one search of "
        f"this size in twenty reaches more than {analysis.by_chance.condition:.3g}."
    )
    yield ""
    columns = ("knob", ">recommendation", ">sd below", ">sd above", ">sd of its range")
    yield from table((*columns, ">of the first"), _knobs(analysis))
    yield ""
    yield _correlations(analysis)


def _knobs(analysis: Analysis) -> Iterator[list[str]]:
    for place, knob in enumerate(analysis.space.knobs):
        unit, sd = analysis.recommendation[place], analysis.landscape.deviations[place]
        values = (knob.decode(min(max(u, 0.0), 1.0)) for u in (unit, unit - sd, unit + sd))
        share = sd / analysis.first.deviations[place]
        yield [plain(knob.name), *(f"{value:.4g}" for value in values), f"{sd:.3f}", f"{share:.0%}"]


def _correlations(analysis: Analysis) -> str:
    limit = analysis.by_chance.correlation
    chance = f"on pure noise one search of this size in twenty has one beyond {limit:.2f}"
    strong = [pair for pair in analysis.pairs() if abs(pair[0]) > limit]
    named = ", ".join(
        f"{plain(a)} and {plain(b)} {r:+.2f}"
        for r, a, b in (strong or analysis.pairs())[:MOST_PAIRS]
    )
    if strong:
        return f"Knobs that go together: {named}; {chance}."
    return f"No two knobs go together beyond chance: {chance}. The strongest: {named}."


def _estimate(analysis: Analysis) -> list[str]:
    found = analysis.estimate
    if found is None:
        return [
            f"{analysis.evaluations} evaluations are too few to tell what each of "
            f"{len(analysis.names)} knobs does: `--evaluate` measures it."
        ]
    return [_basis(found), "", *_table(found), "", *_conclusion(found)]


def _basis(found: Estimate) -> str:
    bend = (
        " Bend: what it costs besides to be one off the recommendation, either way; at its "
        "optimum a knob has no slope."
        if found.bends
        else " They are too few to tell bends, and at its optimum a knob has no slope."
    )
    return (
        f"An estimate, not a measurement: least squares on {found.evaluations} scores of "
        f"generations {found.first} to {found.last}, each less its generation's mean. Slope: the "
        "change of the score where a knob goes up by one standard deviation (sd) of these points."
        f"{bend} Each with its standard error, from what stays unexplained (sd {found.noise:.3g}, "
        f"{found.freedom} degrees of freedom). Beyond |t| {found.t_limit:.1f} it stands above its "
        f"error; of all that do, a share of {found.rate:g} at most is expected to be luck."
    )


def _table(found: Estimate) -> list[str]:
    titles = (">slope", ">t", ">bend", ">t") if found.bends else (">slope", ">t")
    return table(("knob", ">sd", *titles, ""), map(_row, found.knobs))


def _row(knob: KnobEstimate) -> list[str]:
    cells = [plain(knob.knob), f"{knob.deviation:.3f}"]
    for coefficient in knob.coefficients:
        cells += [_value(coefficient), _t(coefficient)]
    return [*cells, "stands" if knob.stands else ""]


def _value(coefficient: Coefficient) -> str:
    """To two digits of its error."""
    value, error = coefficient.value, coefficient.error
    if not 1e-6 < error < 10:
        return f"{value:+.2g} ± {error:.2g}"
    digits = 1 - floor(log10(error))
    return f"{value:+.{digits}f} ± {error:.{digits}f}"


def _t(coefficient: Coefficient) -> str:
    if coefficient.t is not None and coefficient.sureness < 1e6:
        return f"{coefficient.t:+.1f}"
    return "∞" if coefficient.value else "0"  # beyond it, what is unexplained is rounding


def _conclusion(found: Estimate) -> Iterator[str]:
    if stand := found.names(stand=True):
        yield f"- Above their error: {', '.join(map(plain, stand))}."
    if fall := found.names(stand=False):
        yield (
            f"- Not above it: {', '.join(map(plain, fall))}. That is no proof that they do "
            "nothing; `--evaluate` measures each on its own."
        )
