"""What was asked for in each run, and where it ran, fact by fact."""

from collections.abc import Iterator, Mapping, Sequence

from budgets.words import number
from orchestrator.compare.model import Fact, Part
from orchestrator.report.model import KnobView, Report
from orchestrator.report.provenance import FINGERPRINT


def facts(reports: Sequence[Report]) -> tuple[Fact, ...]:
    """Every fact that is on record of any of the runs, in the order in which it comes up."""
    known = [dict(_facts_of(own)) for own in reports]
    names = dict.fromkeys(name for own in known for name in own)
    found = [
        Fact(part=part, name=name, values=tuple(own.get((part, name)) for own in known))
        for part, name in names
    ]
    order: tuple[Part, ...] = ("objective", "data", "space", "search", "budget", "machine")
    return tuple(sorted(found, key=lambda fact: order.index(fact.part)))


def _facts_of(own: Report) -> Iterator[tuple[tuple[Part, str], str]]:
    identity, source = own.identity, own.provenance
    limits = {
        name if name.endswith("limit") else f"{name} limit": value
        for name, value in source.limits.items()
    }
    yield from _all("objective", {"objective": identity.objective, **source.settings})
    yield from _all("data", source.data)
    yield from _all("space", {knob.name: _range(knob) for knob in own.knobs})
    yield from _all("search", {"phase": identity.phase, "tier": identity.tier or "none"})
    yield from _all("search", {n: v for n, v in source.search.items() if n != FINGERPRINT})
    yield from _all("budget", {**source.caps, **limits})
    yield from _all("machine", {"devices": source.devices, **source.versions})
    if source.calibration is not None:
        yield ("machine", "calibration"), source.calibration


def _all(part: Part, named: Mapping[str, str]) -> Iterator[tuple[tuple[Part, str], str]]:
    yield from (((part, name), value) for name, value in named.items())


def _range(knob: KnobView) -> str:
    """`log10, 0.0001 to 0.1, baseline 0.003`."""
    step = f", every {knob.step}" if knob.step != 1 else ""
    return (
        f"{knob.kind}, {number(knob.low, 4)} to {number(knob.high, 4)}{step}, "
        f"baseline {number(knob.baseline, 4)}"
    )
