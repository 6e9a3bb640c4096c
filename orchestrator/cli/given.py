"""What was given on a command line, as one configuration."""

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from typer import Context

from budgets.fold import ImpossibleEventError
from budgets.ledger.chain import LedgerCorruptError
from budgets.plain import command
from budgets.rules import RULES
from budgets.terms import Plan
from objectives import registry, secrets
from orchestrator.cli.options import (
    DEFAULT_ROOT,
    named,
)
from orchestrator.config import OPTIONS, Config, Flags, Layers, parse_assignments, resolve
from orchestrator.planning.names import Overrides
from orchestrator.planning.plan import check_beginning
from orchestrator.records.planned import spec_of
from orchestrator.records.recorded import find_run, first_plan, ledgers, load_state

PhaseName = Literal["phase1", "phase2"]

BESIDE_TABLES = ("budget", "evaluation", "backend", "backpressure")
"""Whose keys say how something is evaluated, and not what."""


@dataclass(frozen=True)
class Asked:
    """A command's options and file, parsed."""

    config: Config
    overrides: Overrides
    accept_drift: bool
    as_json: bool


def asked_for_any(context: Context, *, as_json: bool) -> Asked:
    """What the command line and its file ask for: a search of either phase, or a campaign.

    `--from` and `--variant` are of a phase 2: nobody has to say so too.
    """
    follows = any(is_given(context, named(key)) for key in ("search.from", "search.variant"))
    phase = {"search.phase": ("phase2", "--from")} if follows else {}
    return _of_a_file(context, resolved_of(context, flags=phase), as_json=as_json)


def asked_for_file(context: Context, file: Path, *, as_json: bool) -> Asked:
    """What a file describes, whichever phase or campaign it is."""
    return _of_a_file(context, resolved_of(context, file), as_json=as_json)


def _of_a_file(context: Context, config: Config, *, as_json: bool) -> Asked:
    """Raises ValueError on an option that would do nothing in the campaign of a file."""
    drift = [("search.accept_drift", "--accept-drift")] if context.params["accept_drift"] else []
    for key, source in (*config.sources.items(), *drift):
        if source.startswith("--") and (unused := config.unused(key)):
            said = f"{source} {key}" if source == "--set" else source
            raise ValueError(f"{said} is {unused}. Leave it out")
    return _asked(context, config, as_json=as_json)


def asked_for(context: Context, phase: PhaseName, *, as_json: bool) -> Asked:
    """What is asked for of a phase. Raises ValueError on what cannot be."""
    config = resolved_of(context, flags={"search.phase": (phase, phase)})
    if config.campaign is not None:
        other = command("run", str(config.file))
        raise ValueError(f"{config.file} describes a campaign, not a search: {other}")
    return _asked(context, config, as_json=as_json)


def _asked(context: Context, config: Config, *, as_json: bool) -> Asked:
    options = context.params
    check_beginning(config)
    overrides = overrides_of(options["override"], options["reason"])
    return Asked(config, overrides, options["accept_drift"], as_json)


def resolved_of(context: Context, file: Path | None = None, flags: Flags | None = None) -> Config:
    """The file with everything that is said beside it. Raises ValueError on what cannot be.

    Only options that were really given count: the others leave the file its say.
    """
    options = context.params
    said = {parameter.name: parameter.opts[0] for parameter in context.command.params}
    given = {**(flags or {})}
    for key in OPTIONS:
        if is_given(context, name := named(key)):
            given[key] = (options[name], said[name])
    resolved = resolve(
        _following(
            Layers(
                file=file or options.get("config"),
                assignments=options.get("settings") or (),
                flags=given,
            )
        )
    )
    if resolved.campaign is not None and resolved.file is None:
        raise ValueError(
            "--set: a campaign is described in a file, got [campaign] or [factors] alone. Begin "
            f"with one: {command('init', '--template', 'campaign')}"
        )
    return resolved


def only_of(tables: Collection[str], context: Context) -> None:
    """Raises ValueError where `--set` says a key that means nothing to this command."""
    for key in parse_assignments(context.params["settings"] or ()):
        if key.partition(".")[0] not in tables:
            known = ", ".join(f"{table}.*" for table in tables)
            raise ValueError(f"--set: expected {known}, got {key}")


def _following(given: Layers) -> Layers:
    """With what the run tuned that a phase 2 follows, where nobody says what is tuned."""
    flags = {key: value for key, (value, _) in given.flags.items()}
    said = parse_assignments(given.assignments) | flags
    run = said.get("search.from")
    is_tuned = given.file is not None or "objective" in said
    if is_tuned or said.get("search.phase") != "phase2" or not isinstance(run, str):
        return given
    root, variant = Path(said.get("runs_dir", DEFAULT_ROOT)), said.get("search.variant")
    try:
        plan = load_state(find_run(run, root, "phase1")).plan
    except (LedgerCorruptError, ImpossibleEventError, ValueError, OSError):
        if (follower := _follower(root, Path(run).name, variant)) is None:
            raise
        plan = follower
    spec = spec_of(plan)
    settings = {f"training.{key}": value for key, value in registry.unusual(spec).items()}
    return replace(given, followed=(Path(run).name, {"objective": spec.name, **settings}))


def _follower(root: Path, run: str, variant: str | None) -> Plan | None:
    """A phase 2 on record that followed the run so, and therefore tunes the same."""
    for path in ledgers(root, "phase2"):
        with suppress(LedgerCorruptError, ValueError, OSError):  # of another run, perhaps
            plan = first_plan(path)
            source = None if plan is None else plan.source
            if source is not None and (source.run_id, source.variant) == (run, variant):
                return plan
    return None


def is_given(context: Context, name: str) -> bool:
    """Whether the command line says that option."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def names_of(text: str | None) -> tuple[str, ...]:
    """`A,B` as the names it lists."""
    return () if text is None else tuple(name.strip() for name in text.split(","))


def numbers_of(flag: str, text: str, most: int = 4096) -> tuple[int, ...]:
    """`1,4` as whole numbers, each once, in order. Raises ValueError, with the flag."""
    words = [word.strip() for word in text.split(",")]
    if not all(w.isascii() and w.isdecimal() and 1 <= int(w) <= most for w in words):
        raise ValueError(
            f"{flag}: expected whole numbers from 1 to {most}, split by commas, got {text!r}"
        )
    return tuple(sorted({int(word) for word in words}))


def overrides_of(
    rules: list[str] | None, reason: str, *, again: bool = False
) -> tuple[tuple[str, str], ...]:
    """Each rule with the reason, which may also be that of calibrating `again`.

    Raises ValueError on one without the other.
    """
    if rules and not reason.strip():
        raise ValueError("--override needs --reason: why may the run go on?")
    if again and not reason.strip():
        raise ValueError("--again needs --reason: why is the calibration there is not enough?")
    if reason and not (rules or again):
        raise ValueError(
            "--reason goes on record with --override (which rule may the run pass?) or calibrate "
            "--again"
        )
    for_record(reason)
    for rule in rules or ():
        if rule not in RULES:
            raise ValueError(f"--override {rule}: expected one of {', '.join(RULES)}")
    return tuple((rule, reason) for rule in rules or ())


def for_record(reason: str) -> str:
    """The reason as it is. Raises ValueError on what no ledger should keep."""
    if not reason.isprintable() or secrets.redacted(reason, {}) != reason:
        raise ValueError(
            f"--reason goes on record: expected one printable line without secrets, got {reason!r}"
        )
    return reason
