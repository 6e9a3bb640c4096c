"""`doctor`, `init`, `explain` and `plan`: what is here, and what a run would spend."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from typer import Option

from budgets.formatting import PROGRAM, command, counted, plain, shell_word, table
from budgets.plan import Devices
from objectives.files import replace
from objectives.registry import kind
from objectives.settings import cut
from orchestrator.cli.options import Typed, named_file, switch
from orchestrator.cli.output import EXIT_BAD_INPUT, Answer
from orchestrator.config import TRAINING, Config, as_shown
from orchestrator.plan.resolve import slots_of, window_of


def doctor(typed: Typed) -> Answer:
    """Show what is missing on this machine and how to fix it; exit code 2 if something is."""
    from orchestrator.doctor import examine, told

    document, page = told(examine(typed.config))
    return Answer(document, page=page, code=0 if document["ready"] else EXIT_BAD_INPUT)


HOW = f"""#   {PROGRAM} explain THIS-FILE   every value, and where it is from
#   {PROGRAM} plan THIS-FILE      what it would take, before anything is paid
#   {PROGRAM} run THIS-FILE       runs it; the same command resumes
"""
Template = Literal["smoke", "phase1", "phase2", "campaign", "factorial"]


def init(
    typed: Typed,
    template: Template = Option(..., "--template", help="What the file describes."),
    out: Path | None = Option(None, "--out", metavar="FILE", help="A new file."),
) -> Answer:
    """Print a commented configuration file to begin with, or write it to --out."""
    text = (files("orchestrator.cli") / "templates.toml").read_text(encoding="utf-8")
    own = text.partition(f"### {template}\n")[2].partition("\n\n###")[0].replace("HOW", HOW)
    own = own.rstrip() + "\n"
    if out is None:
        return Answer(None, own.splitlines())
    replace(named_file(out, is_new=True), own.replace("THIS-FILE", shell_word(str(out))).encode())
    return Answer(None, [f"{out} is written. See it with: {command('explain', str(out))}"])


def explain(typed: Typed) -> Answer:
    """Show every value of a configuration and where it is from, and the knobs. Writes nothing."""
    window_of(typed.config.budget)  # raises on a wrong one
    document, lines = explained(typed.config)
    return Answer(document, page="\n".join(lines))


def explained(config: Config) -> tuple[dict[str, Any], list[str]]:
    """Return the configuration as JSON and as Markdown, which has the defaults last."""
    values, objective = config.all_values(), config.tuned
    names, knobs = ("name", "kind", "low", "high", "baseline"), objective.space.knobs
    rows = [(k.name, k.kind, k.decode(0.0), k.decode(1.0), k.typed(k.baseline)) for k in knobs]
    document = {
        "values": {k: {"value": v, "source": config.source(k)} for k, v in values.items()},
        "knobs": [dict(zip(names, row, strict=True)) for row in rows],
    }
    shown = ((name, scale, *(f"{end:.4g}" for end in ends)) for name, scale, *ends in rows)
    lines = [
        *(f"# {plain(str(config.file or 'The defaults'))}", ""),
        *table(("key", "value", "from"), _rows(config, values)),
        *("", f"# {plain(kind(objective.spec))}: {counted(len(knobs), 'knob')}", ""),
        *table(("knob", "kind", ">low", ">high", ">baseline"), shown),
    ]
    return document, lines


LONGEST_SHOWN = 200  # characters of a value


def _rows(config: Config, values: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield key, value and origin, defaults last; a table as a value has a row for each part."""
    lengths = (f"{TRAINING}.{name}" for name in config.tuned.budget_settings)
    first, *unused = [*filter(values.get, lengths)] or [""]  # how long it trains
    for key in sorted(values, key=lambda key: config.source(key) == "default"):
        note = f", not used: {first} comes first" if key in unused else ""
        own = values[key]
        parts = (
            {f"{key}.{name}": part for name, part in own.items()} if isinstance(own, dict) else {}
        )
        for name, part in (parts or {key: own}).items():
            shown = cut(as_shown(part), LONGEST_SHOWN)
            yield plain(name), plain(shown), plain(config.source(key)) + note


def plan(
    typed: Typed,
    count: int | None = Option(None, "--devices", metavar="N", min=1, help="Plan for N devices."),
    verbose: bool = switch("--verbose", "Show the whole checklist."),
    fit: bool = switch("--fit", "Show what fits into --window."),
) -> Answer:
    """Plan a search (every tier, unless one is named) or a campaign. Writes nothing."""
    config = typed.request
    _ = typed.overrides  # raises on one without --reason
    devices = slots_of(config)
    if count is not None:
        devices = devices.model_copy(update={"count": count})
    if config.campaign is not None and (fit or count):
        raise ValueError("--fit, --devices: they are of a search, and this is a campaign")
    if fit:
        return _fitting(config, devices)
    warnings = [*config.tuned.preflight()]
    if config.campaign is not None:
        from orchestrator.matrix.campaign import campaign_from, campaign_plan

        campaign = campaign_from(config)
        document, page = campaign_plan(config, campaign, in_full=verbose)
    else:
        from orchestrator.plan.page import page_of, page_text
        from orchestrator.plan.phase2 import followed, objections

        earlier = followed(Path(config.runs_dir), config, devices.kind)
        warnings += [] if earlier is None else objections(earlier).values()
        planned = page_of(config, devices, earlier)
        document = planned.model_dump(mode="json", exclude={"times": {"calibration"}})
        page = page_text(planned, in_full=verbose)
    said = [f"Warning: {warning}." for warning in warnings]
    return Answer({**document, "warnings": warnings}, said, page)


def _fitting(config: Config, devices: Devices) -> Answer:
    """Return what fits into the window, and the options that ask for it."""
    from orchestrator.plan.fit import Wanted, available, best, choices, fit_text
    from orchestrator.plan.forecast import times_here
    from orchestrator.plan.phase2 import followed

    root, hours = Path(config.runs_dir), available(config, datetime.now(UTC))
    times = times_here(root, config.tuned, devices, config.evaluation.assume_eval_seconds)
    found = choices(Wanted(config, devices, times, hours, followed(root, config, devices.kind)))
    document = {
        "available_hours": hours,
        "fits": best(found) is not None,
        "choices": [choice.as_dict() for choice in found],
        "prior": times.prior,
    }
    return Answer(document, [f"Note: {times.prior}."] * bool(times.prior), fit_text(found, hours))
