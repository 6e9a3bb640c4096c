"""`doctor`, `init`, `explain` and `plan`: what is here, and what a configuration comes to."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer import Context, Option

from budgets.formatting import PROGRAM, command, counted, plain, printable, shell_word, table
from budgets.plan import Devices
from budgets.storage import write_aside
from objectives.api import Objective
from objectives.registry import kind
from orchestrator.cli import flags
from orchestrator.cli.errors import EXIT_BAD_INPUT
from orchestrator.cli.flags import overrides_of, requested, resolved
from orchestrator.cli.options import Json, Reason
from orchestrator.cli.terminal import print_json, print_line, print_markdown
from orchestrator.config import LONGEST_SHOWN, TRAINING, Config, as_shown
from orchestrator.plan.history import BUDGET
from orchestrator.plan.resolve import check_beginning, slots_of


def doctor(
    context: Context,
    file: flags.File = None,
    quick: Annotated[
        bool, Option("--quick", help="Do not import the packages, such as torch.")
    ] = False,
    tier: flags.Tier = None,
    objective: flags.Objective = None,
    settings: flags.Settings = None,
    runs_dir: flags.RunsDir = None,
    executor: flags.Executor = None,
    address: flags.Address = None,
    device: flags.Device = None,
    workers: flags.Workers = None,
    as_json: Json = False,
) -> None:
    """Whether all that a run needs is here, and the command that fixes what is not. Writes nothing.

    Exit code 2 when something needed is missing.
    """
    from orchestrator import doctor as looking

    sections = looking.examine(resolved(context, file, settings), quick=quick)
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
    as_json: Json = False,
) -> None:
    """A commented configuration file to begin with.

    Writes nothing but the file --out.
    """
    text = (files("orchestrator.cli") / f"templates/{template}.toml").read_text(encoding="utf-8")
    text = text.replace("python -m orchestrator", PROGRAM)
    if out is not None:
        if out.exists() or out.is_symlink():
            raise ValueError(f"--out {out}: there is something already; name another file")
        from orchestrator.look.page import named_file

        named_file("--out", out)
        write_aside(out, text.replace("THIS-FILE", shell_word(str(out))).encode())
        explain = command("explain", str(out))
        said = printable(f"{out} is written. See it with: {explain}")
    if as_json:
        found = {"text": text} if out is None else {"file": str(out)}
        print_json({"template": template, **found})
    else:
        print_line(text.rstrip() if out is None else said)


def explain(
    context: Context,
    file: flags.File = None,
    objective: flags.Objective = None,
    preset: flags.Preset = None,
    profile: flags.Profile = None,
    settings: flags.Settings = None,
    as_json: Json = False,
) -> None:
    """Every value of a configuration and where it is from, the knobs, and what would be started.

    Writes nothing.
    """
    from orchestrator.start import start_of, to_lines

    config = resolved(context, file, settings)
    check_beginning(config)
    document, lines = explained(config)
    start = start_of(config)
    if as_json:
        print_json({**document, "evaluation": start})
    else:
        print_markdown("\n".join([*lines, "", *to_lines(start)]))


def explained(config: Config) -> tuple[dict[str, Any], list[str]]:
    """As JSON and as Markdown; what is set comes before the defaults."""
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
        if section == TRAINING and name in config.alone:
            source += ", for a training by itself"
        elif section == TRAINING and name in unused_budgets:
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


def plan(
    context: Context,
    file: flags.File = None,
    count: Annotated[
        int | None,
        Option("--devices", metavar="N", min=1, help="On so many of these devices."),
    ] = None,
    verbose: Annotated[bool, Option("--verbose", help="And what it rests on.")] = False,
    fit: Annotated[bool, Option("--fit", help="What fits into --window.")] = False,
    out: Annotated[
        Path | None,
        Option("--out", metavar="FILE", help="With --fit: write the first that fits."),
    ] = None,
    tier: flags.Tier = None,
    run_id: flags.RunId = None,
    seed: flags.Seed = None,
    follows: flags.From = None,
    variant: flags.Variant = None,
    objective: flags.Objective = None,
    preset: flags.Preset = None,
    profile: flags.Profile = None,
    settings: flags.Settings = None,
    runs_dir: flags.RunsDir = None,
    track: flags.Track = None,
    override: flags.Override = None,
    reason: Reason = "",
    max_evals: flags.MaxEvals = None,
    max_device_hours: flags.MaxDeviceHours = None,
    max_hours: flags.MaxHours = None,
    max_cost: flags.MaxCost = None,
    window: flags.Window = None,
    executor: flags.Executor = None,
    address: flags.Address = None,
    device: flags.Device = None,
    workers: flags.Workers = None,
    assume_eval_seconds: flags.EvalSeconds = None,
    as_json: Json = False,
) -> None:
    """What a search or a campaign would cost, and could tell; all tiers without --tier.

    Writes nothing, but with --out FILE what fits into a configuration.
    """
    if out is not None and not fit:
        raise ValueError("--out goes with --fit")
    config = requested(context, file, settings)
    overrides_of(override, reason)  # those of the search itself would be refused now
    if config.campaign is not None:
        if fit or count is not None:
            raise ValueError("--fit, --devices: of a search, and the file has a campaign")
        _plan_campaign(config, as_json=as_json)
    elif fit:
        _fit(config, _devices(config, count), out, as_json=as_json)
    else:
        _plan_search(config, _devices(config, count), as_json=as_json, in_full=verbose)


def _devices(config: Config, count: int | None) -> Devices:
    """This machine's devices, or so many of their kind."""
    from orchestrator.execution.engine import devices_of

    devices = devices_of(slots_of(config))
    return devices if count is None else devices.model_copy(update={"count": count})


def _plan_search(config: Config, devices: Devices, *, as_json: bool, in_full: bool) -> None:
    """Print what would be spent."""
    from orchestrator.plan.page import page_of, page_text
    from orchestrator.plan.phase2 import followed

    warnings = [*config.tuned.preflight()]
    earlier = followed(Path(config.runs_dir), config, devices.kind)
    if earlier is not None:
        warnings += earlier.objections.values()
    page = page_of(config, devices, None if earlier is None else earlier.succession(config))
    warnings += page.warnings
    if as_json:
        print_json({**page.as_dict(), "warnings": warnings})
        return
    print_markdown(page_text(page, in_full=in_full))
    _warn(warnings)


def _plan_campaign(config: Config, *, as_json: bool) -> None:
    """Print what the campaign of a file would take."""
    from orchestrator.matrix.campaign import campaign_name
    from orchestrator.matrix.campaign_plan import campaign_plan, runs_document, runs_page

    warnings = config.tuned.preflight()
    document, lines = campaign_plan(config, datetime.now(UTC))
    if as_json:
        print_json({**runs_document(config), **document})
        return
    title = f"# Campaign {plain(campaign_name(config))} of {config.objective}"
    print_markdown("\n".join([title, "", *runs_page(config), "", *lines]))
    _warn(warnings)


def _warn(warnings: list[str] | tuple[str, ...]) -> None:
    for warning in warnings:
        print_line(printable(f"Warning: {warning}."))


def _fit(config: Config, devices: Devices, out: Path | None, *, as_json: bool) -> None:
    """Print what fits; write the first where a file is named, and nothing else."""
    from orchestrator.plan import fit
    from orchestrator.plan.history import calibration_here
    from orchestrator.plan.phase2 import foreseen
    from orchestrator.plan.times import times_here

    root, there = Path(config.runs_dir), fit.available(config.budget, datetime.now(UTC))
    times = times_here(root, config.tuned, devices, config.evaluation.assume_eval_seconds)
    wanted = fit.Wanted(
        config,
        devices,
        times,
        there,
        foreseen(root, config, devices.kind),
        calibrated=lambda objective: calibration_here(root, objective, devices),
    )
    found = fit.choices(wanted)
    changes = None if out is None else _written(config, out, found, there)
    prior = None if times.prior is None else times.prior.sentence()
    if as_json:
        document = {
            "available_hours": there.hours,
            "fits": fit.best(found) is not None,
            "choices": [choice.as_dict() for choice in found],
            "prior": prior,
            "profiles": fit.profiles(config.tuned, times, there),
            "applied": changes,
        }
        print_json(document)
        return
    print_markdown(fit.fit_text(found, there))
    if prior is not None:
        print_line(printable(f"Note: {prior}."))
    if changes is not None:
        print_line(printable(changes) if changes else f"{out} says so already.")


def _written(config: Config, out: Path, found: Sequence[Any], there: Any) -> str:
    """Write the first that fits; what changes in the file. Raises ValueError where nothing fits."""
    from orchestrator.look.page import named_file
    from orchestrator.plan import fit

    if (choice := fit.best(found)) is None:
        raise ValueError(f"--out: {fit.too_short(found, there)}")
    if fit.read(named_file("--out", out)) and config.file != out:
        raise ValueError(
            f"--out: {out} is there, and this plan knows nothing of what it says: plan with "
            f"{out} too, or name a new file"
        )
    values: dict[str, Any] = {**_given(config), **fit.chosen(choice)}
    if config.evaluation.assume_eval_seconds is not None and choice.plan.calibration is not None:
        values["evaluation.assume_eval_seconds"] = choice.plan.calibration.median_seconds
    return fit.write(out, values)


def _given(config: Config) -> dict[str, Any]:
    """What is no default, by dotted key: a preset's and a profile's values follow from its name."""
    values = config.all_values()
    return {
        key: values[key]
        for key, source in config.sources.items()
        if not source.startswith(("preset ", "profile ")) and values.get(key) is not None
    }
