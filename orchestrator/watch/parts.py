"""The parts of a run's view, each as lines: where it stands, what it found, what it spent."""

from collections.abc import Iterator

from budgets.report.markdown import amount
from budgets.report.model import Balance
from budgets.report.pace_text import clock, per_cent, track
from budgets.words import duration, precise_duration
from orchestrator.watch.glyphs import (
    BAD,
    FAINT,
    GOOD,
    ODD,
    STRONG,
    Glyphs,
    Line,
    Piece,
    bar,
    sparkline,
)
from orchestrator.watch.snapshot import Arm, Ended, GenerationScores, Scores, Snapshot

BAR = 24
"""Columns of a bar at most."""

WIDE = 70
"""Columns from which on there is room for one beside how much is done."""

AMOUNTS, LEAST_BAR = 44, 8
"""Columns of what is said of a currency; with fewer than these there is no bar."""


def who(found: Snapshot) -> Line:
    """Which run it is, and whether somebody carries it out."""
    tier = "" if found.tier is None else f", tier {found.tier}"
    return (
        (f"{found.phase} {found.run_id}", STRONG),
        (f"{tier}, {found.objective}: ", None),
        (found.whose, ODD if found.way_on else None),
    )


def where(found: Snapshot, width: int, glyphs: Glyphs) -> Line:
    """What it does now, and how much of all is done."""
    done = found.pace.progress
    pieces: list[Piece] = [(found.course, STRONG)]
    if width >= WIDE:
        pieces.append((f"  {bar(BAR, done, 0.0, glyphs)}", None))
    return (*pieces, (f"  {per_cent(done)} done", None))


def when(found: Snapshot) -> Line:
    """When it will be over, and whether it keeps to its plan."""
    pace, pieces = found.pace, list[Piece]()
    if not found.is_over and pace.remaining_hours is not None:
        left = f"{duration(3600 * pace.remaining_hours)} left, "
        if found.standing == "running" and pace.eta is not None:
            left += f"ends at {clock(pace.eta, found.now.astimezone())}, "
        pieces.append((left, None))
        if said := track(pace):
            pieces.append((f"{said}, ", ODD if said.startswith("off") else None))
    return (*pieces, (f"{duration(3600 * pace.elapsed_hours)} open", None))


def evaluations(found: Snapshot) -> Line:
    """How many are ok, failed, lost, in flight, left; how many an hour."""
    counts, rate = found.counts, found.pace.evals_per_hour
    pieces: list[Piece] = [(f"{counts.ok} ok", None)]
    if counts.failed:
        kinds = ", ".join(f"{number} {status}" for status, number in counts.failed.items())
        pieces.append((f", {sum(counts.failed.values())} failed ({kinds})", BAD))
    if counts.lost:
        pieces.append((f", {counts.lost} lost", ODD))
    pieces.append((f", {counts.in_flight} in flight, {counts.to_come} left", None))
    if rate is not None:
        pieces.append((f", {rate:,.0f} an hour", None))
    return tuple(pieces)


def mean(found: Snapshot, glyphs: Glyphs) -> list[Line]:
    """The last mean beside the baseline and its noise."""
    known = found.scores
    band, baseline = known.band, known.baseline
    noise = "" if band is None else f" {glyphs.about} {(band[1] - band[0]) / 2:.2g}"
    base = "" if baseline is None else f"the baseline, {baseline:.5g}{noise}"
    last = next((g for g in reversed(known.generations) if g.mean is not None), None)
    if last is not None and last.mean is not None and found.phase != "calibration":
        so_far = "" if last.is_told else " so far"
        return [((f"mean{so_far} {last.mean:.5g}", STRONG), *_beside(last, base, known.band))]
    return [((base, None),)] if base else []


def best(known: Scores) -> list[Line]:
    """The best score beside what luck gives."""
    if known.best is None:
        return []
    luck = known.best_by_luck
    by_luck = "" if luck is None else f"; luck alone would give {luck:.5g}"
    return [((f"best {known.best:.5g}", STRONG), (by_luck, None))]


def _beside(last: GenerationScores, base: str, band: tuple[float, float] | None) -> Iterator[Piece]:
    if not last.is_full:
        yield (" of short evaluations", None)
    elif base and band is not None:
        style = {"better": GOOD, "worse": BAD, None: None}[last.outside]
        yield (
            f", {last.outside} than the noise of " if last.outside else ", in the noise of ",
            style,
        )
        yield (base, None)
    elif base:
        yield (f"; {base}", None)


def means(known: Scores, width: int, glyphs: Glyphs) -> list[Line]:
    """A sparkline of generation means, and where each lies beside the baseline's noise."""
    told = [g for g in known.generations if g.is_told and g.mean is not None][-width:]
    if len(told) < 2:
        return []
    line = sparkline([g.mean if g.is_full else None for g in told], known.band or (), glyphs)
    marks = "".join({"better": "v", "worse": "^", None: "-"}[g.outside] for g in told)
    if known.band is None:
        return [((line, None),)]
    legend = "  v better than the baseline's noise, - inside, ^ worse"
    return [((line, None),), ((marks, None), (legend, FAINT))]


def budget(balances: tuple[Balance, ...], width: int, glyphs: Glyphs) -> list[Line]:
    """A line a currency: spent, reserved, cap."""
    shown = [one for one in balances if one.counts]
    name = 2 + max((len(one.label) for one in shown), default=0)
    return [_balance(one, name, width, glyphs) for one in shown]


def _balance(one: Balance, name: int, width: int, glyphs: Glyphs) -> Line:
    pieces: list[Piece] = [(f"{one.label:{name}s}", None)]
    columns = min(BAR, width - name - AMOUNTS)
    if columns >= LEAST_BAR:
        share = (one.spent / one.cap, one.reserved / one.cap) if one.cap else None
        filled = " " * columns if share is None else bar(columns, *share, glyphs)
        pieces.append((f"{filled}  ", None))
    reserved = f" + {amount(one, one.reserved)} reserved" if one.reserved else ""
    cap = "no cap" if one.cap is None else f"of {amount(one, one.cap)}"
    pieces.append((f"{amount(one, one.spent)} spent{reserved}, {cap}", None))
    return tuple(pieces)


def arms(found: tuple[Arm, ...]) -> list[Line]:
    """What is compared on fresh seeds."""
    lines: list[Line] = []
    for arm in found:
        mean = "" if arm.mean is None else f", mean {arm.mean:.5g}"
        lines.append(((f"{arm.name}: {arm.settled} of {arm.planned}{mean}", None),))
    return lines


def notes(found: Snapshot) -> Iterator[Line]:
    """Rules that fired, devices withdrawn, overrides; the last of each first."""
    kinds = (
        ("rule ", found.triggers, BAD),
        ("withdrawn ", found.withdrawn, ODD),
        ("overridden ", found.overrides, None),
    )
    for number in range(max(len(texts) for _, texts, _ in kinds)):
        for word, texts, style in kinds:
            if number < len(texts):
                yield ((word, style), (texts[number], None))


def recent(ended: tuple[Ended, ...]) -> list[Line]:
    """The last attempts that are over."""
    return [_ended(one) for one in ended]


def _ended(one: Ended) -> Line:
    is_well = one.score is not None
    result = f"{one.status} {one.score:.5g}" if one.score is not None else str(one.status)
    again = ", retried" if one.is_again else ""
    why = f": {one.cause}" if one.cause else ""
    return (
        (f"{one.what}  ", None),
        (result, None if is_well else BAD),
        (
            f"  in {precise_duration(one.seconds)}{again}{', recovered' * one.is_recovered}{why}",
            FAINT,
        ),
    )
