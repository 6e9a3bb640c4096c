"""`doctor`, `init`, `explain` and `dry-run`: what is here, and what a configuration comes to."""

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer
from typer import Argument, Context, Option

from budgets.formatting import PROGRAM, command, counted, plain, printable, shell_word, table
from budgets.storage import write_aside
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
from orchestrator.cli.rules_table import rule_rows, rules_table
from orchestrator.cli.terminal import print_json, print_line, print_markdown
from orchestrator.config import LONGEST_SHOWN, Config, as_shown
from orchestrator.look.page import named_file
from orchestrator.plan.resolve import check_beginning
from orchestrator.records.recorded import find_run, load_state


@taking(FILE, keys("search.tier"), PLACE, TUNED, MACHINE)
def doctor(
    context: Context,
    quick: Annotated[
        bool, Option("--quick", help="Leave out what takes seconds, such as importing torch.")
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
    "smoke",
    "phase1",
    "phase2",
    "campaign",
    "factorial",
    "nanochat",
    "command",
    "function",
]

TEMPLATES = files("orchestrator.cli") / "templates"


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
    text = template_text(template)
    if out is None:
        if as_json:
            print_json({"template": template, "text": text})
        else:
            print_line(text.rstrip())
        return
    if out.exists() or out.is_symlink():
        raise ValueError(f"--out {out}: there is something already; name another file")
    named_file("--out", out)
    text = text.replace("THIS-FILE", shell_word(str(out)))
    write_aside(out, text.encode())
    if as_json:
        print_json({"template": template, "file": str(out)})
    else:
        print_line(printable(f"{out} is written. See it with: {command('explain', str(out))}"))


def template_text(template: Template) -> str:
    """The file's text, with THIS-FILE for its name."""
    assert template in get_args(Template)
    text = (TEMPLATES / f"{template}.toml").read_text(encoding="utf-8")
    return text.replace("python -m orchestrator", PROGRAM)


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
    if run is None or _is_a_configuration(Path(run)):
        file = None if run is None else Path(run)
        explain_file(resolved_of(context, file), as_json=as_json)
        return
    if any(is_given(context, option.name) for option in TUNED):
        raise ValueError(
            f"--objective, --set, --preset, --profile are for a configuration file, got {run!r}"
        )
    directory = find_run(run, root)
    state = load_state(directory)
    rows = rule_rows(state)
    if as_json:
        print_json({"directory": str(directory), "rules": rows})
        return
    seen = {row["rule"]: row["seen"] for row in rows if row["seen"]}
    evidence = [plain(f"- {rule}: {one['evidence']}") for rule, one in seen.items()]
    title = f"# Rules of {plain(state.plan.run_id)}"
    print_markdown("\n".join([title, "", *rules_table(rows), "", *evidence]))


def _is_a_configuration(named: Path) -> bool:
    """Also one that is not there, by its name: a run has no such id."""
    return named.is_file() or (named.suffix == ".toml" and not named.is_dir())


def values_document(resolved: Config) -> dict[str, Any]:
    """Each key with value and source."""
    return {
        key: {"value": value, "source": resolved.source(key)}
        for key, value in resolved.all_values().items()
    }


def values_page(resolved: Config) -> Iterator[str]:
    """A table for each table of the file: of what is set, then of the defaults."""
    every = resolved.all_values()
    defaults = {key: value for key, value in every.items() if resolved.source(key) == "default"}
    yield from _tables(resolved, {k: v for k, v in every.items() if k not in defaults})
    yield from ("", "# Defaults")
    yield from _tables(resolved, defaults)


def _tables(resolved: Config, values: Mapping[str, Any]) -> Iterator[str]:
    tables: dict[str, list[tuple[str, ...]]] = {}
    for key, value in values.items():
        name, dot, _ = key.partition(".")
        rows = (_row(resolved, key, own, part) for own, part in _lines(key, value))
        tables.setdefault(name if dot else "", []).extend(rows)
    for name, found in tables.items():
        yield from ("", f"## [{name}]" if name else "## Above all tables", "")
        yield from table(("key", "value", "from"), found)


def _lines(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The value by its name in the table; one that is a table itself, and long, part by part."""
    name = key.rpartition(".")[2] if key.count(".") == 1 else key
    if isinstance(value, Mapping) and len(json.dumps(value, default=str)) > LONGEST_SHOWN:
        yield from ((f"{name}.{inner}", part) for inner, part in value.items())
    else:
        yield name, value


def _row(resolved: Config, key: str, name: str, value: Any) -> tuple[str, ...]:
    source = f"{plain(resolved.source(key))}{_note(resolved, key)}"
    return plain(name), plain(as_shown(value)), source


def _note(resolved: Config, key: str) -> str:
    """Where something is set that nothing here has."""
    table, _, name = key.partition(".")
    if table == "training" and name in resolved.alone:
        return ", for a training by itself"
    unused = resolved.unused(key)
    return f", {unused}" if unused and resolved.source(key) != "default" else ""


def explain_file(resolved: Config, *, as_json: bool) -> None:
    """Print every value with its origin, and what the file amounts to.

    Raises ValueError on what no command could begin.
    """
    check_beginning(resolved)
    objective = resolved.tuned
    rows = knob_rows(objective)
    file = None if resolved.file is None else str(resolved.file)
    document: dict[str, Any] = {"file": file, "values": values_document(resolved), "knobs": rows}
    document["objective"] = objective.spec.model_dump(mode="json")
    title = plain(file or "The defaults")
    lines = [f"# {title}", *values_page(resolved), "", *knob_table(kind(objective.spec), rows)]
    if resolved.campaign is not None:
        from orchestrator.matrix.campaign import terms_of
        from orchestrator.matrix.campaign_plan import runs_document, runs_page

        terms_of(resolved)  # refuses what could not be begun
        document["campaign"] = runs_document(resolved)
        lines += ["", *runs_page(resolved)]
    if as_json:
        print_json(document)
    else:
        print_markdown("\n".join(lines))


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


def knob_table(name: str, rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The rows for a person."""
    yield from (f"# {plain(name)}: {counted(len(rows), 'knob')}", "")
    yield from table(("knob", "kind", ">low", ">high", ">baseline"), map(_cells, rows))


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    ends = (f"{row[name]:.4g}" for name in ("low", "high", "baseline"))
    return row["name"], row["kind"], *ends


@taking(FILE, PLACE, TUNED, keys("backend.device", panel="Machine"))
def show_dry_run(
    context: Context,
    knobs: Annotated[
        str | None,
        Option("--knobs", metavar="A=1,B=2", help="In their own units; default: the baseline."),
    ] = None,
    seed: Annotated[
        int,
        Option("--evaluation-seed", metavar="SEED", min=0, help="Seed of this evaluation."),
    ] = 1,
    as_json: Json = False,
) -> None:
    """What one evaluation would start: arguments, directory, environment. Writes nothing."""
    from orchestrator.dry_run import dry_run, imagined, knobs_given, to_lines

    resolved = resolved_of(context)
    chosen = resolved.tuned
    place = imagined(Path(resolved.runs_dir), resolved.backend.device, resolved.backend.threads)
    found = dry_run(chosen, knobs_given(knobs, chosen.space), seed, place)
    if as_json:
        print_json(found)
    else:
        for line in to_lines(found):
            print_line(printable(line))
    if found["missing"]:
        raise typer.Exit(EXIT_BAD_INPUT)
