"""The budget report as Markdown for a person. No disk."""

from collections.abc import Iterable, Iterator, Sequence

from budgets.blocks import Block, Heading, Items, Table, Text, markdown
from budgets.campaign.text import campaign_blocks
from budgets.pace import GOOD_ACCURACY, Timing
from budgets.plain import PROGRAM, plain
from budgets.proxy.text import proxy_blocks
from budgets.report.failures import Failures
from budgets.report.liveness_text import check_blocks
from budgets.report.model import Balance, BudgetReport, GenerationRow
from budgets.verdict.finalists import IN_WORDS
from budgets.verdict.findings_text import finding_blocks
from budgets.words import duration, number

RECALIBRATE = (
    f'Recalibrate: `{PROGRAM} calibrate --again --reason "..."` with the same --objective and '
    "--set."
)
"""What mends an estimate."""

BESIDE = (
    "The evaluations themselves took what was estimated: the difference lies beside them, where "
    "another calibration does not help."
)
"""What is known where only the clock was estimated badly."""


def to_markdown(report: BudgetReport, knobs: dict[str, float] | None = None) -> str:
    """The report for a person. `knobs` are the recommendation's decoded values."""
    phase = report.phase if report.tier is None else f"{report.phase}, tier {report.tier}"
    happened = [*evaluation_lines(report), *timing_lines(report.timing), *notes(report)]
    blocks: list[Block] = [
        Text(f"# {plain(report.run_id)}: {plain(report.objective)}, {phase}"),
        Text(f"**{plain(report.sentence)}**"),
        *([] if report.follows is None else [Text(plain(report.follows))]),
        Text(
            f"Generation {report.generations_finished} of {report.generations_planned} on "
            f"{plain(report.devices)}. {_eta(report)}"
        ),
        Heading("Budget"),
        balances(report),
        Text("\n".join(happened)),
        *_failures(report),
        *evidence(report),
        *_recommendation(report, knobs),
    ]
    for title, entries in (
        ("Rules that fired", report.triggers),
        ("Overrides", report.overrides),
        ("Amendments", report.amendments),
        ("Salvaged", report.salvaged),
    ):
        if entries:
            blocks += [Heading(title), Items([plain(entry) for entry in entries])]
    blocks.append(Text(f"Ledger: {report.records} records, head `{report.head}`."))
    return "\n".join([*markdown(blocks), ""])


def evidence(report: BudgetReport) -> list[Block]:
    """What it found, and what that rests on."""
    if report.campaign is not None:
        return campaign_blocks(report.campaign)
    proxy = [] if report.proxy is None else list(proxy_blocks(report.proxy))
    if report.phase == "check":
        return proxy or check_blocks(report.check)
    found = () if report.findings is None else finding_blocks(report.findings)
    return [*found, *_scores(report), *proxy]


def _eta(report: BudgetReport) -> str:
    if report.decision != "continue" or report.remaining_hours is None:
        return ""
    return f"About {duration(report.remaining_hours * 3600)} of evaluations are still to run."


def amount(balance: Balance, value: float | None) -> str:
    """A number of that currency: whole evaluations, hours to a third of a second."""
    if value is None:
        return "no cap"
    return f"{value:.0f}" if balance.currency.startswith("evaluations") else f"{value:.4f}"


def spent(balances: Iterable[Balance]) -> str:
    """`8 of 16 evaluations; 0.0263 device-hours`, of every currency that counts."""
    return "; ".join(
        f"{amount(b, b.spent)}{'' if b.cap is None else f' of {amount(b, b.cap)}'} {b.label}"
        for b in balances
        if b.counts
    )


def balances(report: BudgetReport, caption: str = "", head: str = "") -> Table:
    """Each currency that counts: what is spent, set aside, left, and its cap."""
    rows = [
        (b.label, *(amount(b, value) for value in (b.spent, b.reserved, b.free, b.cap)))
        for b in report.balances
        if b.counts
    ]
    return Table(caption, [head, ">spent", ">reserved", ">free", ">cap"], rows)


def evaluation_lines(report: BudgetReport) -> list[str]:
    """How evaluations ended, what was lost, how long they take, how much of the slots was idle."""
    statuses = ", ".join(f"{n} {status}" for status, n in report.evaluations_by_status.items())
    lines = [f"Evaluations: {statuses or 'none settled'}."]
    if report.failures is not None and report.failures.attempts:
        lines += _rate_lines(report.failures)
    if report.lost_attempts:
        lines.append(
            f"{report.lost_attempts} attempts were lost or cancelled and cost "
            f"{_device_time(report.lost_device_hours)}."
        )
    if report.overrun_device_hours:
        lines.append(f"{_device_time(report.overrun_device_hours)} went beyond their reservation.")
    if report.overrun_hours:
        lines.append(f"The run was open for {report.overrun_hours:.4g} hours beyond its cap.")
    if report.eval_seconds is not None:
        expected = report.expected_seconds
        against = "" if expected is None else f" (expected: {expected:.1f} s)"
        lines.append(f"A healthy evaluation takes {report.eval_seconds:.1f} s{against}.")
    if report.slot_hours:
        idle, whole = 3600 * report.idle_hours, 3600 * report.slot_hours
        lines.append(
            f"The slots were there for {whole:.1f} device-seconds: {idle:.1f} of them passed idle "
            f"({idle / whole:.0%}), {3600 * report.wasted_hours:.1f} gave no score."
        )
    return lines


def _device_time(hours: float) -> str:
    """In seconds where hours would be next to nothing."""
    return f"{hours:.4g} device-hours" if hours >= 0.001 else f"{3600 * hours:.2g} device-seconds"


def timing_lines(found: Timing | None) -> list[str]:
    """Estimated, actual and accuracy; and what to do where the accuracy is out of bounds."""
    if found is None:
        return []
    said = (
        f"Estimated {duration(3600 * found.estimated_hours)} for what is done, it took "
        f"{duration(3600 * found.actual_hours)} (and {duration(3600 * found.startup_hours)} to "
        f"start): accuracy {found.accuracy:.0f}%. Device-hours: "
        f"{found.estimated_device_hours:.4f} estimated, {found.actual_device_hours:.4f} used."
    )
    if found.is_good:
        return [said]
    if not found.is_telling:
        return [f"{said} Of less than a minute that says nothing."]
    low, high = GOOD_ACCURACY
    mend = BESIDE if found.is_good_on_devices else RECALIBRATE
    return [f"{said} Good is {low:.0f} to {high:.0f}%. {mend}"]


def _rate_lines(found: Failures) -> list[str]:
    """How many evaluations failed, how many attempts were lost, and what was tried again."""
    lines = [
        f"{found.failed} of {found.evaluations} evaluations failed by their configuration "
        f"({found.failure_rate:.1%}), {found.lost} of {found.attempts} attempts by the "
        f"infrastructure ({found.loss_rate:.1%})."
    ]
    for way, again in (("elsewhere", found.elsewhere), ("lighter", found.lighter)):
        if again.healthy + again.failed + again.owed:
            lines.append(
                f"Tried again {way}: {again.healthy} became healthy, {again.failed} failed, "
                f"{again.owed} are owed."
            )
    return lines


def _failures(report: BudgetReport) -> Iterator[Block]:
    if report.failures is None or not report.failures.kinds:
        return
    rows = [
        (kind.whose, kind.what, kind.attempts, kind.final, plain(kind.example))
        for kind in report.failures.kinds
    ]
    yield Heading("Failures")
    yield Table("", ["whose", "what", ">attempts", ">final", "for example"], rows)


def notes(report: BudgetReport) -> list[str]:
    """What does not happen to every run."""
    lines = []
    if report.deadline is not None:
        left = duration(3600 * (report.deadline_hours or 0.0))
        lines.append(
            f"Deadline: evaluations are over by {report.deadline:%Y-%m-%d %H:%M:%S} UTC, {left} "
            "after the last record."
        )
    if report.late_attempts:
        lines.append(
            f"{report.late_attempts} attempts that were given up as lost came late: charged, and "
            "told to nobody."
        )
    lines += [f"Device withdrawn: {plain(entry)}." for entry in report.withdrawn]
    if report.clock_jumps_seconds:
        jumps = ", ".join(f"{seconds:+.0f} s" for seconds in report.clock_jumps_seconds)
        lines.append(
            f"The wall's clock jumped ({jumps}), or the machine slept: times of day are off, "
            "durations and charges are not."
        )
    return lines


def _scores(report: BudgetReport) -> Iterator[Block]:
    basis = "Lower is better."
    if report.baseline is not None:
        spread = "" if report.baseline.sd is None else f", sd {report.baseline.sd:.4g}"
        basis += (
            f"\nBaseline: {report.baseline.mean:.5g} over {report.baseline.seeds} seeds{spread}."
        )
    yield Heading("Scores")
    yield Text(basis)
    counts = [">healthy", ">failed", ">step size", ">eval seconds"]
    rows = [_score_row(row, bar) for row, bar in zip(report.rows, _bars(report), strict=True)]
    yield Table("", [">generation", ">best", ">mean", *counts, "<mean"], rows)
    yield from luckiest(report)


def luckiest(report: BudgetReport) -> Iterator[Text]:
    """What the best score is worth as evidence, where no findings say it."""
    own, noise = report.luckiest_score, report.luckiest_of_noise
    if report.findings is None and own is not None and noise is not None:
        yield Text(
            f"Luckiest score: {own:.5g}. Were every candidate just the baseline, the luckiest "
            f"would be expected near {noise:.5g}: how much of the rest is true, only fresh seeds "
            "tell."
        )


def _score_row(row: GenerationRow, bar: str) -> tuple[str, ...]:
    cells = (row.best, row.mean, row.healthy, row.failed, row.sigma, row.eval_seconds)
    name = f"{row.generation} short" if row.short else f"{row.generation}"
    return name, *(number(cell, 4) for cell in cells), bar


def _bars(report: BudgetReport) -> list[str]:
    """Each generation's mean as a bar between the lowest and the highest mean, of full ones."""
    means = [row.mean for row in report.rows if row.mean is not None and not row.short]
    if not means:
        return ["" for _ in report.rows]
    low, high = min(means), max(means)
    widths = (
        0
        if row.mean is None or row.short
        else 1 + round(11 * (row.mean - low) / ((high - low) or 1.0))
        for row in report.rows
    )
    return ["█" * width for width in widths]


def _recommendation(report: BudgetReport, knobs: dict[str, float] | None) -> Iterator[Block]:
    is_no_go = report.findings is not None and report.findings.grade == "no_go"
    if knobs is None and not is_no_go:
        return
    yield Heading("Recommendation")
    if knobs is None:
        yield Text("Nothing is recommended: keep the baseline.")
        return
    point: Sequence[float] = report.recommendation or ()
    rows = [
        (plain(name), f"{value:.4g}", f"{_ruler(unit)} {unit:.2f}")
        for (name, value), unit in zip(knobs.items(), point, strict=True)
    ]
    yield Text("\n".join(where_from(report)))
    yield Table("", ["knob", ">value", "place in its range"], rows)


def where_from(report: BudgetReport) -> list[str]:
    """What the recommendation is."""
    arm = report.findings.arm if report.findings is not None else None
    if arm is not None:
        return [f"What won on fresh seeds: {IN_WORDS.get(arm.split()[0], plain(arm))}."]
    return [
        "The mean of the search distribution over its last third of generations. It has not been",
        "scored on fresh seeds.",
    ]


def _ruler(unit: float) -> str:
    place = min(int(unit * 11), 10)
    return "·" * place + "●" + "·" * (10 - place)
