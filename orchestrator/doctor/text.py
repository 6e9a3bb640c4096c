"""What `doctor` found, as Markdown for a terminal."""

from collections.abc import Iterable

from budgets.plain import plain
from budgets.table import table
from orchestrator.doctor.finding import Finding, Section, counted, nothing_is_missing


def to_markdown(sections: tuple[Section, ...]) -> str:
    """A table for each section, then what is to be done, most needed first."""
    lines = ["# Doctor", ""]
    for section in sections:
        rows = table(("item", "state", "seen"), map(_row, section.findings))
        lines += [f"## {section.title}", "", *rows, ""]
    return "\n".join([*lines, *_mends(sections), _conclusion(sections), ""])


def _row(finding: Finding) -> tuple[str, ...]:
    state = finding.state if finding.state in ("ok", "absent") else f"**{finding.state}**"
    return plain(finding.item), state, plain(finding.seen)


def _mends(sections: Iterable[Section]) -> list[str]:
    findings = [finding for section in sections for finding in section.findings]
    wanted = [one for state in ("missing", "unknown") for one in findings if one.state == state]
    optional = [one for one in findings if one.state == "absent" and one.mend]
    lines = []
    for title, some in (("To mend", wanted), ("If you want it", optional)):
        if some:
            lines += [f"## {title}", ""]
            lines += [f"- {_items(some, mend)}: {plain(mend)}" for mend in _each(some)]
            lines.append("")
    return lines


def _each(findings: Iterable[Finding]) -> list[str]:
    """Their commands, each once, in their order."""
    return list(dict.fromkeys(one.mend for one in findings))


def _items(findings: Iterable[Finding], mend: str) -> str:
    return ", ".join(f"{plain(one.item)} ({one.state})" for one in findings if one.mend == mend)


def _conclusion(sections: tuple[Section, ...]) -> str:
    counts = counted(sections)
    listed = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    verdict = "Nothing that a run needs is missing" if nothing_is_missing(sections) else "Not ready"
    return f"{verdict}: {listed}."
