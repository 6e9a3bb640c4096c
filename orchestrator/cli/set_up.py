"""`doctor`, `init` and `explain`: what is here, and what a configuration says."""

import json
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer import Context, Option

from budgets.formatting import PROGRAM, command, counted, plain, printable, shell_word, table
from budgets.storage import write_aside
from objectives.api import Objective
from objectives.registry import kind
from orchestrator.cli.errors import EXIT_BAD_INPUT
from orchestrator.cli.options import Json, named_file, resolved
from orchestrator.cli.terminal import print_json, print_line, print_markdown
from orchestrator.config import LONGEST_SHOWN, TRAINING, Config, as_shown
from orchestrator.plan.resolve import check_beginning
from orchestrator.plan.times import BUDGET


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

    sections = looking.examine(resolved(context), quick=quick)
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
        Path | None, Option("--out", metavar="FILE", help="Write it there, if there is nothing.")
    ] = None,
) -> None:
    """A commented configuration file to begin with.

    Writes nothing but the file --out.
    """
    text = (files("orchestrator.cli") / f"templates/{template}.toml").read_text(encoding="utf-8")
    text = text.replace("python -m orchestrator", PROGRAM)
    if out is None:
        print_line(text.rstrip())
        return
    if out.exists() or out.is_symlink():
        raise ValueError(f"--out {out}: there is something already; name another file")
    write_aside(named_file(out), text.replace("THIS-FILE", shell_word(str(out))).encode())
    print_line(printable(f"{out} is written. See it with: {command('explain', str(out))}"))


def explain(context: Context, as_json: Json = False) -> None:
    """Every value of a configuration and where it is from, the knobs, and what would be started.

    Writes nothing.
    """
    from orchestrator.start import start_of, to_lines

    config = resolved(context)
    check_beginning(config)
    document, lines = explained(config)
    start = start_of(config)
    if as_json:
        print_json({**document, "evaluation": start})
    else:
        print_markdown("\n".join([*lines, "", *to_lines(start)]))


def explained(config: Config) -> tuple[dict[str, Any], list[str]]:
    """Return the configuration as JSON and as Markdown, which has the defaults last."""
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
    columns = ("key", "value", "from")
    lines = [f"# {plain(file or 'The defaults')}", ""]
    lines += table(columns, _rows(config, given)) if given else ["Nothing is set."]
    lines += ["", "# Defaults", "", *table(columns, _rows(config, defaults)), ""]
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

        terms = terms_of(config)
        document["campaign"] = runs_document(terms)
        lines += ["", *runs_page(terms)]
    return document, lines


def _rows(config: Config, values: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield key, value and origin; a long table as a value has a row for each part."""
    settings = config.tuned.spec.settings
    budgets = [name for name in BUDGET if settings.get(name) is not None]
    for key, value in values.items():
        table_name, _, name = key.partition(".")
        source = plain(config.source(key))
        if table_name == TRAINING and name in config.alone:
            source += ", for a training by itself"
        elif table_name == TRAINING and name in budgets[1:]:
            source += f", not used: {budgets[0]} comes first"
        parts = {key: value}
        if isinstance(value, Mapping) and len(json.dumps(value, default=str)) > LONGEST_SHOWN:
            parts = {f"{key}.{inner}": part for inner, part in value.items()}
        yield from ((plain(own), plain(as_shown(part)), source) for own, part in parts.items())


def knob_rows(objective: Objective) -> list[dict[str, Any]]:
    """Return a row for each knob, in the order of the space."""
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
