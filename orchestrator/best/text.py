"""What a search recommends, for a terminal and as JSON."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from budgets.formatting import command, percent
from budgets.stats import Gain
from budgets.verdict.findings_text import in_words
from orchestrator.best.configuration import Configuration, KnobValue, moved
from orchestrator.best.scale import usual_times
from orchestrator.look.next_step import widening
from orchestrator.look.reports import best_document
from orchestrator.look.run import Run
from orchestrator.plan.resolve import found_as
from orchestrator.records.cautions import cautions
from orchestrator.records.planned import spec_of
from orchestrator.records.range_ends import range_ends
from orchestrator.records.recommended import Best, Evidence


def as_dict(
    best: Best, directory: Path, recommended: Configuration, candidate: Configuration
) -> dict[str, Any]:
    """The whole of it; `recommendation` is as in `best.json`, so `search.known` takes this too."""
    plan, evidence = best.state.plan, best.evidence
    return {
        "run_id": plan.run_id,
        "directory": str(directory),
        "phase": plan.phase,
        "tier": plan.tier,
        "objective": recommended.objective,
        "standing": best.standing,
        "headline": best.headline,
        "recommended": {"is": _what(best), **recommended.as_dict()},
        "candidate": candidate.as_dict(),
        "evidence": None if evidence is None else _evidence_dict(evidence),
        "why_not": recommended.why,
        "cautions": cautions(best.state),
        **best_document(Run(best.state, datetime.now(UTC), directory)),
    }


def _what(best: Best) -> str:
    return "baseline" if best.standing == "no_go" else "candidate"


def _evidence_dict(evidence: Evidence) -> dict[str, Any]:
    """The gain as a share of the baseline's score, and in the score's own unit."""
    return {
        "seeds": evidence.gain.pairs,
        "confidence": 1 - evidence.gain.level,  # of each bound
        "gain": _bounds(evidence, 1.0),
        "gain_in_score": _bounds(evidence, _scale(evidence)),
        "score": evidence.score,
        "baseline_score": evidence.baseline_score,
        "rung": _rung_dict(evidence.rung, evidence.rung_label),
    }


def _rung_dict(rung: Gain | None, label: str | None) -> dict[str, Any] | None:
    if rung is None:
        return None
    bounds = {"mean": rung.mean, "lower": rung.lower, "upper": rung.upper}
    return {"label": label, "seeds": rung.pairs, **bounds}


def _scale(evidence: Evidence) -> float | None:
    """What a gain is a share of."""
    return None if evidence.baseline_score is None else abs(evidence.baseline_score)


def _bounds(evidence: Evidence, scale: float | None) -> dict[str, float | None]:
    own = {name: getattr(evidence.gain, name) for name in ("mean", "lower", "upper")}
    return {n: None if v is None or scale is None else v * scale for n, v in own.items()}


def to_lines(best: Best, directory: Path, candidate: Configuration) -> Iterator[str]:
    """A page of a terminal at most, what is not confirmed first."""
    plan = best.state.plan
    yield best.headline
    yield from (f"But: {said}" for said in cautions(best.state))
    yield f"{plan.run_id}, {plan.phase}{f', tier {plan.tier}' if plan.tier else ''}: {directory}"
    is_no_go = best.standing == "no_go"
    yield from ("", _title(best), "", *_table(candidate.knobs), "")
    yield from _evidence_lines(best.evidence)
    if candidate.why:
        yield f"No arguments or settings: {candidate.why}."
    elif candidate.arguments:
        of_what = "Its arguments, though not recommended: " if is_no_go else "As arguments: "
        yield f"{of_what}{candidate.flags()}"
    yield from _ways_on(best, found_as(directory, plan), candidate)


def _title(best: Best) -> str:
    if best.standing == "no_go":
        return "The best candidate of the search, which is not recommended:"
    return "Recommended:" if best.standing == "confirmed" else "What the search stands for:"


def _table(knobs: Sequence[KnobValue]) -> Iterator[str]:
    rows = [("knob", "value", "baseline", "moved")]
    rows += [(k.name, f"{k.value:.6g}", f"{k.baseline:.6g}", moved(k)) for k in knobs]
    widths = [max(len(row[place]) for row in rows) for place in range(3)]
    for name, value, baseline, far in rows:
        yield f"  {name:{widths[0]}}  {value:>{widths[1]}}  {baseline:>{widths[2]}}  {far}"


def _evidence_lines(evidence: Evidence | None) -> Iterator[str]:
    if evidence is None:
        return
    yield f"Gain over the baseline on fresh seeds: {in_words(evidence.gain)}."
    absolute = _bounds(evidence, _scale(evidence))
    if evidence.score is not None and absolute["mean"] is not None:
        yield (
            f"Score {evidence.score:.5g} against {evidence.baseline_score:.5g}: lower by "
            f"{absolute['mean']:.4g}{_range(absolute)}."
        )
    if evidence.gain.lower is not None:
        sure = percent(1 - evidence.gain.level)
        yield f"Each bound holds with {sure} confidence."
    if evidence.rung is not None:
        yield f"With {evidence.rung_label}: {in_words(evidence.rung)}."


def _range(bounds: dict[str, float | None]) -> str:
    lower, upper = bounds["lower"], bounds["upper"]
    return "" if lower is None or upper is None else f" ({lower:.4g} to {upper:.4g})"


def _ways_on(best: Best, run: str, candidate: Configuration) -> Iterator[str]:
    own = command("best", run) + (" --anyway" if best.standing == "no_go" else "")
    forms = [name for name, there in _forms(candidate) if there]
    yield f"Other forms: {own} {' | '.join(forms)}"
    times = usual_times(spec_of(best.state.plan))
    how = "longer" if times > 1 else "once more"
    yield f"Train it {how}: {own} --train --times {times:g} --compare"
    wider = widening(best.state.plan, range_ends(best.state))
    if wider is not None:
        yield f"{wider.said.rstrip('.')}: {wider.commands[0]}"


def _forms(candidate: Configuration) -> Iterator[tuple[str, bool]]:
    yield "--json", True
    yield "--toml", candidate.training is not None
    yield "--flags", bool(candidate.arguments)
