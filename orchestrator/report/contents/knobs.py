"""Every knob: from the baseline to what is recommended, and what the scores say of it."""

from collections.abc import Iterator

from budgets.blocks import Table, Text
from budgets.plain import command, plain
from budgets.report.markdown import where_from
from budgets.words import number
from orchestrator.report.contents.blocks import Block, Figure, Ruler
from orchestrator.report.model import KnobView, Marginal, Report


def knobs(report: Report, figures: list[Figure]) -> list[Block]:
    """The section, or that nothing is tuned."""
    if not report.knobs:
        return [Text("This run's objective has no knobs.")]
    return [_what(report), _table(report), *figures, *_marginals(report)]


def _what(report: Report) -> Text:
    found = report.budget.findings
    if found is not None and found.grade == "no_go":
        return Text(
            "Nothing is recommended: the baseline stays. What was compared with it, "
            f"`{command('best', report.identity.named)}` shows."
        )
    if all(knob.recommended is None for knob in report.knobs):
        return Text("Nothing is recommended yet, or by this kind of run.")
    return Text(" ".join(where_from(report.budget)))


def _table(report: Report) -> Table:
    is_any = any(knob.recommended is not None for knob in report.knobs)
    moves = [">recommended", ">moved"] if is_any else []
    columns = ["knob", "scale", ">low", ">high", ">baseline", *moves, "place in its range"]
    caption = "Knobs: baseline and recommendation" if is_any else "Knobs: ranges and baseline"
    return Table(caption, columns, [_row(knob, is_any=is_any) for knob in report.knobs])


def _row(knob: KnobView, *, is_any: bool) -> list[object]:
    values = [knob.low, knob.high, knob.baseline]
    cells: list[object] = [plain(knob.name), knob.kind, *map(number, values)]
    if is_any:
        cells += [number(knob.recommended, 4), _moved(knob)]
    return [*cells, Ruler(knob.baseline_unit, knob.recommended_unit)]


def _moved(knob: KnobView) -> str:
    """By what share of its range."""
    if knob.recommended_unit is None:
        return "-"
    end = "" if knob.at_end is None else f", {knob.at_end} end"
    return f"{knob.recommended_unit - knob.baseline_unit:+.0%}{end}"


def _marginals(report: Report) -> Iterator[Block]:
    told = [one for one in report.marginals if one.slope is not None]
    if not told:
        return
    yield Table(
        "What a knob does to the score by the paid evaluations: the change of the score where it "
        "goes up by one standard deviation of the candidates. An estimate, not an experiment",
        ["knob", ">slope", ">error", "above its error"],
        [_marginal(one) for one in told],
    )
    line = f"{command('analyze', report.identity.named)} --evaluate"
    yield Text(f"`{line}` measures each knob on its own.")


def _marginal(one: Marginal) -> list[str]:
    stands = {True: "yes", False: "no", None: "-"}[one.stands]
    assert one.slope is not None, "only these are shown"
    error = number(one.slope_error, 2)
    return [plain(one.knob), f"{one.slope:+.3g}", error, stands]
