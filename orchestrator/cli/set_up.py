"""`doctor`, `init`, `explain` and `dry-run`: what is here, and what a configuration comes to."""

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer import Argument, Context, Option

from budgets.events import Fired
from budgets.formatting import (
    PROGRAM,
    command,
    counted,
    number,
    plain,
    printable,
    shell_word,
    table,
)
from budgets.plan import Thresholds
from budgets.rules import RULES, TABLE, Reading, is_overridden, readings
from budgets.state import RunState
from budgets.storage import write_aside
from budgets.verdict import Condition, conditions
from objectives.api import Objective
from objectives.registry import kind
from orchestrator.cli.errors import EXIT_BAD_INPUT
from orchestrator.cli.options import (
    DEFAULT_ROOT,
    FILE,
    MACHINE,
    PLACE,
    TUNED,
    Json,
    Root,
    is_given,
    keys,
    resolved_of,
    taking,
)
from orchestrator.cli.terminal import print_json, print_line, print_markdown
from orchestrator.config import LONGEST_SHOWN, Config, as_shown
from orchestrator.look import words
from orchestrator.plan.resolve import check_beginning
from orchestrator.plan.times import BUDGET
from orchestrator.records.recorded import find_run, load_state


@taking(FILE, keys("search.tier"), PLACE, TUNED, MACHINE)
def doctor(
    context: Context,
    quick: Annotated[
        bool, Option("--quick", help="Do not import the packages, such as torch.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Whether all that a run needs is here, and the command that fixes what is not. Writes nothing.

    Exit code 2 when something needed is missing.
    """
    from orchestrator import doctor as looking

    sections = looking.examine(resolved_of(context), quick=quick)
    if as_json:
        print_json(looking.as_dict(sections))
    else:
        print_markdown(looking.to_markdown(sections))
    if not looking.nothing_is_missing(sections):
        raise typer.Exit(EXIT_BAD_INPUT)


Template = Literal[
    "smoke", "phase1", "phase2", "campaign", "factorial", "nanochat", "command", "function"
]


def init(
    template: Annotated[Template, Option("--template", help="What the file describes.")],
    out: Annotated[
        Path | None,
        Option("--out", metavar="FILE", help="Write it there, if there is nothing."),
    ] = None,
    as_json: Json = False,
) -> None:
    """A commented configuration file to begin with.

    Writes nothing but the file --out.
    """
    text = (files("orchestrator.cli") / f"templates/{template}.toml").read_text(encoding="utf-8")
    text = text.replace("python -m orchestrator", PROGRAM)
    if out is None:
        if as_json:
            print_json({"template": template, "text": text})
        else:
            print_line(text.rstrip())
        return
    if out.exists() or out.is_symlink():
        raise ValueError(f"--out {out}: there is something already; name another file")
    from orchestrator.look.page import named_file

    named_file("--out", out)
    text = text.replace("THIS-FILE", shell_word(str(out)))
    write_aside(out, text.encode())
    if as_json:
        print_json({"template": template, "file": str(out)})
    else:
        print_line(printable(f"{out} is written. See it with: {command('explain', str(out))}"))


@taking(TUNED)
def explain(
    context: Context,
    run: Annotated[
        str | None,
        Argument(metavar="FILE|RUN", help="A configuration; or a run, to see its rules."),
    ] = None,
    root: Root = DEFAULT_ROOT,
    as_json: Json = False,
) -> None:
    """Every value of a configuration, where it is from, and the knobs; or a run's rules.

    Writes nothing.
    """
    file = None if run is None else Path(run)
    # a file that is not there is told by its name: no run has such an id
    if file is None or file.is_file() or (file.suffix == ".toml" and not file.is_dir()):
        config = resolved_of(context, file)
        check_beginning(config)
        document, lines = explained(config)
    elif any(is_given(context, option.name) for option in TUNED):
        raise ValueError(
            f"--objective, --set, --preset, --profile are for a configuration file, got {run!r}"
        )
    else:
        document, lines = _rules_of(find_run(run, root))
    if as_json:
        print_json(document)
    else:
        print_markdown("\n".join(lines))


def _rules_of(directory: Path) -> tuple[dict[str, Any], list[str]]:
    """What each rule sees in the run."""
    state = load_state(directory)
    rows = rule_rows(state)
    seen = {row["rule"]: row["seen"] for row in rows if row["seen"]}
    evidence = [
        plain(f"- {rule}: {one['evidence']}") for rule, one in seen.items() if one["evidence"]
    ]
    title = f"# Rules of {plain(state.plan.run_id)}"
    document = {"directory": str(directory), "rules": rows}
    return document, [title, "", *rules_table(rows), "", *evidence]


def explained(config: Config) -> tuple[dict[str, Any], list[str]]:
    """Every value with its origin, what is set before the defaults; the knobs; all runs."""
    objective, values = config.tuned, config.all_values()
    sources = {key: config.source(key) for key in values}
    knobs, file = knob_rows(objective), None if config.file is None else str(config.file)
    document: dict[str, Any] = {
        "file": file,
        "values": {k: {"value": v, "source": sources[k]} for k, v in values.items()},
        "knobs": knobs,
        "objective": objective.spec.model_dump(mode="json"),
    }
    defaults = {key: value for key, value in values.items() if sources[key] == "default"}
    given = {key: value for key, value in values.items() if key not in defaults}
    lines = [f"# {plain(file or 'The defaults')}", *_tables(config, given)]
    lines += ["", "# Defaults", *_tables(config, defaults), ""]
    lines += [f"# {plain(kind(objective.spec))}: {counted(len(knobs), 'knob')}", ""]
    lines += table(
        ("knob", "kind", ">low", ">high", ">baseline"),
        (
            (row["name"], row["kind"], *(f"{row[n]:.4g}" for n in ("low", "high", "baseline")))
            for row in knobs
        ),
    )
    if config.campaign is not None:
        from orchestrator.matrix.campaign import terms_of
        from orchestrator.matrix.campaign_plan import runs_document, runs_page

        terms_of(config)  # raises where none can be made
        document["campaign"] = runs_document(config)
        lines += ["", *runs_page(config)]
    return document, lines


def _tables(config: Config, values: Mapping[str, Any]) -> Iterator[str]:
    """A table for each table of the file; of a long table as a value, a row for each part."""
    tables: dict[str, list[tuple[str, ...]]] = {}
    settings = config.tuned.spec.settings
    used, *unused_budgets = [one for one in BUDGET if settings.get(one) is not None] or [""]
    for key, value in values.items():
        section, dot, _ = key.partition(".")
        name = key.rpartition(".")[2] if key.count(".") == 1 else key
        parts = {name: value}
        if isinstance(value, Mapping) and len(json.dumps(value, default=str)) > LONGEST_SHOWN:
            parts = {f"{name}.{inner}": part for inner, part in value.items()}
        source = plain(config.source(key))
        if section == "training" and name in config.alone:
            source += ", for a training by itself"
        elif section == "training" and name in unused_budgets:
            source += f", not used: {used} comes first"
        elif source != "default" and (unused := config.unused(key)):
            source += f", {unused}"
        rows = ((plain(own), plain(as_shown(part)), source) for own, part in parts.items())
        tables.setdefault(section if dot else "", []).extend(rows)
    for name, found in tables.items():
        yield from ("", f"## [{name}]" if name else "## Above all tables", "")
        yield from table(("key", "value", "from"), found)


def knob_rows(objective: Objective) -> list[dict[str, Any]]:
    """One row a knob, in the order of the space."""
    return [
        {
            "name": knob.name,
            "kind": knob.kind,
            "low": knob.decode(0.0),
            "high": knob.decode(1.0),
            "baseline": knob.typed(knob.baseline),
        }
        for knob in objective.space.knobs
    ]


def rule_rows(state: RunState | None = None) -> list[dict[str, Any]]:
    """Every rule with its limits, and what it sees in the run; without one, the defaults."""
    limits = Thresholds() if state is None else state.plan.thresholds
    seen = {} if state is None else _seen(state)
    return [
        {
            "rule": name,
            "about": words.ABOUT[name],
            "limits": rule.limits(limits),
            "defaults": rule.limits(Thresholds()),
            "decision": rule.decision,
            "overridable": rule.overridable,
            "seen": seen.get(name),
        }
        for name, rule in TABLE.items()
    ]


def _seen(state: RunState) -> dict[str, dict[str, Any]]:
    """What each rule that has something to look at observes; of several batches where it fires."""
    found: list[tuple[Fired | Reading | Condition, str, bool, bool]] = []
    for one in sorted(readings(state), key=lambda reading: reading.fires):
        said = words.seen(state, one) if one.fires else ""
        found.append((one, said, one.fires, one.fires and is_overridden(state, one)))
    if state.ended is not None:
        found.append((state.ended, words.seen(state, state.ended), True, False))
    for asked in conditions(state):
        found.append((asked, words.condition(state, asked), not asked.met, False))
    return {
        one.rule: {
            "observed": one.observed,
            "limit": one.limit,
            "evidence": said,
            "fires": fires,
            "overridden": overridden,
        }
        for one, said, fires, overridden in found
    }


def rules_table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """As Markdown; with what the rules see, where any of the rows has that."""
    columns = ["rule", "looks at", "limits", "leads to"]
    if any(row["seen"] for row in rows):
        columns += [">observed / limit", "fires"]
    return table(columns, (_cells(row)[: len(columns)] for row in rows))


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    limits, leads_to = [], row["decision"]
    for name, value in row["limits"].items():
        own, default = (number(one, 6, "none") for one in (value, row["defaults"][name]))
        limits.append(f"`{name}` {own}" + f" (default {default})" * (own != default))
    if row["rule"] in RULES:
        leads_to += ", can be overridden" if row["overridable"] else ", no override"
    seen = row["seen"] or {"observed": None, "limit": None, "fires": None, "overridden": False}
    observed, limit = (number(seen[name], 4) for name in ("observed", "limit"))
    if seen["observed"] is not None and seen["limit"] is not None:
        observed += f" / {limit}"
    fires = {None: "-", False: "no", True: "**yes**"}[seen["fires"]]
    fires = "overridden" if seen["overridden"] else fires
    return row["rule"], row["about"], ", ".join(limits) or "-", leads_to, observed, fires


@taking(FILE, PLACE, TUNED, keys("backend.device", panel="Machine"))
def show_dry_run(
    context: Context,
    knobs: Annotated[
        str | None,
        Option("--knobs", metavar="A=1,B=2", help="In their own units; default: the baseline."),
    ] = None,
    as_json: Json = False,
) -> None:
    """What one evaluation would start: arguments, directory, environment. Writes nothing."""
    from orchestrator.dry_run import dry_run, imagined, knobs_given, to_lines

    config = resolved_of(context)
    place = imagined(Path(config.runs_dir), config.backend.device, config.backend.threads)
    found = dry_run(config.tuned, knobs_given(knobs, config.tuned.space), 1, place)
    if as_json:
        print_json(found)
    else:
        for line in to_lines(found):
            print_line(printable(line))
    if found["missing"]:
        raise typer.Exit(EXIT_BAD_INPUT)
