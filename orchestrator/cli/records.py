"""`amend`, `verify`, `export`, `serve` and `track`: commands on runs that are there."""

import os
import sys
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from socket import create_server

from typer import Argument, Option

from budgets.formatting import counted, printable, shell_word
from budgets.ledger import SYSTEM_CLOCK, move_command, set_aside_command
from orchestrator.cli.options import Typed, named_file, switch
from orchestrator.cli.output import EXIT_CORRUPT, EXIT_STORAGE, Answer, print_json
from orchestrator.records.runs import REPEAT, find_run, load_state

PORT = 8321


def verify(
    typed: Typed,
    salvage: Path | None = Option(
        None, "--salvage", metavar="DIR", help="Copy the records before the damage to DIR."
    ),
) -> Answer:
    """Replay a run from its ledger; name the first divergence. Only --salvage writes."""
    directory = typed.directory()
    if salvage is not None:
        return _salvage(directory, salvage)
    from orchestrator.verify import verify as replay  # imports cma

    found = replay(directory)
    if found.divergence is not None:
        return Answer(asdict(found), [f"FAIL  {found.divergence}"], code=EXIT_CORRUPT)
    attempts = f"{found.files} attempts agree with their files, {found.without_files} have none"
    lines = [f"ok    {found.records} records follow from each other; {attempts}"]
    return Answer(asdict(found), [*lines, f"head  {found.head}"])


def _salvage(source: Path, out: Path) -> Answer:
    """Copy the whole records of a damaged or rolled back ledger to a new directory."""
    from orchestrator.look.reports import rebuild
    from orchestrator.run.directory import salvage

    records, lost_bytes, why = salvage(source, out)
    rebuild(out, datetime.now(UTC))
    lines = (
        f"Kept {records} records in {out}.",
        f"Lost: {lost_bytes} bytes. Why: {why}.",
        "Its next session settles what is open, from the results in eval/ where they are.",
        "To go on, put it in the old one's place and repeat the run's command:",
        f"  {set_aside_command(source)} && {move_command(out, source)}",
    )
    kept = {"out": str(out), "records": records, "lost_bytes": lost_bytes, "why": why}
    return Answer(kept, lines)


def amend(
    typed: Typed, run: str = Argument(..., metavar="RUN", help="Run id or directory.")
) -> Answer:
    """Change the caps of a run that is not running, on record. Then repeat the run's command."""
    from orchestrator.look import text
    from orchestrator.look.answer import answer
    from orchestrator.look.json_documents import document as document_of
    from orchestrator.look.run import Run
    from orchestrator.plan.resolve import caps_for
    from orchestrator.run.directory import amend as amend_run

    directory, config = find_run(run, typed.root), typed.config
    changes = {**dict(caps_for(config, 1)), "evaluations": config.budget.max_evals}
    state = amend_run(directory, changes, typed.reason, SYSTEM_CLOCK)
    view = Run(state, datetime.now(UTC), directory)
    planned = counted(state.plan.resolved.generations, "generation")
    said = f"{directory}: amended. Planned: {planned}, {text.amended(state.amended[-1])}"
    return Answer(lambda: document_of(view), [said, answer(view).headline, REPEAT])


def table(typed: Typed) -> Answer:
    """Print every evaluation as a row of CSV: status, score, cost, knobs, metrics."""
    from orchestrator.look.reports import export_rows, to_csv

    rows = export_rows(load_state(typed.directory()))
    return Answer(rows, to_csv(rows).splitlines())


def optuna(
    typed: Typed,
    out: Path = Option(..., "--out", metavar="FILE", help="A new file."),
) -> Answer:
    """Write a search as an Optuna study: a trial per candidate, for optuna-dashboard."""
    from orchestrator.look.json_documents import BEST_TRIAL, as_study
    from orchestrator.look.run import Run

    directory = typed.directory("phase1", "phase2")
    view = Run(load_state(directory), datetime.now(UTC), directory)
    said = f"{as_study(view, named_file(out, is_new=True))} trials written to {out}. Look: "
    look = f"optuna-dashboard sqlite:///{shell_word(str(out.absolute()))}"
    return Answer(None, [said + look, BEST_TRIAL])


def slurm(
    typed: Typed,
    out: Path | None = Option(None, "--out", metavar="DIR", help="Default: the campaign's name."),
    write: bool = switch("--write", "Create it; without: only show it."),
) -> Answer:
    """Show SLURM jobs of FILE's runs, and a script that submits them; --write writes them."""
    from orchestrator import slurm as jobs  # imports numpy

    config = typed.config
    if config.file is None:
        raise ValueError("export slurm: expected a FILE; see init")
    directory, texts = jobs.exported(config, out)
    if not write:
        said = f"{directory} was not written: repeat it with --write."
        return Answer(None, [said], texts[jobs.README])
    jobs.write(directory, texts)
    submit = f"Submit it with: {directory}/{jobs.SUBMIT}"
    return Answer(None, [f"{directory} is written.", submit])


def serve(
    typed: Typed,
    place: str | None = Argument(None, metavar="RUN|DIR", help="A run, or a directory of runs."),
    port: int = Option(PORT, "--port", metavar="N", min=0, max=65535, help="0: one that is free."),
) -> None:
    """Show runs in a browser on this machine, updated while they run. Writes nothing."""
    from orchestrator.look import serve as serving  # imports uvicorn

    is_directory = place is None or os.path.isdir(place)
    site = serving.Site(Path(place or typed.root) if is_directory else find_run(place, typed.root))
    try:
        listener = create_server((serving.HOST, port), backlog=128)
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise ValueError(f"--port: {port} cannot be used ({why}): name another, or 0") from error
    number = listener.getsockname()[1]
    url = f"http://{serving.HOST}:{number}{site.home}"
    if typed.as_json:
        print_json({"url": url, "directory": str(site.root), "port": number, "pid": os.getpid()})
    else:
        print(f"Showing {shell_word(str(site.root))} at {url}")
        print("Anybody who knows that address can read it. Ctrl-C ends it.")
    sys.stdout.flush()  # a program that started it reads the address from a pipe
    with listener, suppress(KeyboardInterrupt):
        serving.serve(site, listener)


def track(
    typed: Typed,
    to: list[str] = Option(..., metavar="NAME", help="tensorboard, wandb or mlflow. Repeatable."),
    watch: bool = switch("--watch", "Follow a run until it is over."),
) -> Answer:
    """Log a run, finished or running, to files in its trackers/. Replaces earlier ones."""
    from orchestrator.look.track import SINKS, follow

    names = [name for name in SINKS if name in to]
    if unknown := sorted(set(to).difference(SINKS)):
        raise ValueError(f"--to: expected {', '.join(SINKS)}, got {unknown[0]!r}")
    for name in names:
        if not (spec := find_spec(name)) or spec.origin is None:  # W&B leaves folders of its name
            raise ValueError(f"--to: {name} is missing: pip install 'cmaes-orchestrator[{name}]'")
    directory = typed.directory()
    errors = follow(directory, names, lambda line: print(printable(line), file=sys.stderr), watch)
    place = directory / "trackers"
    return Answer(
        {"directory": str(place), "errors": {name: errors.get(name) for name in names}},
        [f"{name}: sent to {place / name}" for name in names if name not in errors],
        code=EXIT_STORAGE if errors else 0,
    )
