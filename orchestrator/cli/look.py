"""`status`, `report` and `best`: how a run stands, its results, and what it recommends."""

import os
import select
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any, Literal

from typer import Argument, Option

from budgets.formatting import printable, shell_word
from budgets.ledger import LEDGER, LedgerCorruptError
from budgets.verdict import recommendation
from objectives import registry
from objectives.api import Knobs, ObjectiveSpec
from objectives.files import replace
from orchestrator.cli.options import Typed, named_file, switch
from orchestrator.cli.output import Answer, silence
from orchestrator.config import Config, to_toml
from orchestrator.look.answer import answer
from orchestrator.look.compare import Comparison
from orchestrator.look.json_documents import best_document, plain_values
from orchestrator.look.json_documents import document as run_document
from orchestrator.look.page import page_html, page_markdown
from orchestrator.look.run import Run
from orchestrator.look.sections import knobs_table, page_of
from orchestrator.look.terminal import Screen, can_paint, looks, pause, status_lines, told
from orchestrator.look.text import cautions
from orchestrator.records.runs import find_run, load_state, runs_below


def status(
    typed: Typed,
    watch: bool = switch("--watch", "Follow the run until it is over; Ctrl-C ends the watching."),
) -> Answer | None:
    """Show how RUN stands; of a directory of runs, a line for each. Writes nothing.

    Without RUN: how the latest stands, and a line for each run.
    """
    place = typed.root if typed.run is None else Path(typed.run)
    rows = [] if watch or os.path.lexists(place / LEDGER) else list(_rows(place))
    listed = ["  ".join(row.values()) for row in rows]
    if typed.run is not None and rows:
        return Answer(rows, listed)
    directory = typed.directory()
    if watch and typed.as_json:
        raise ValueError("--watch prints lines: leave out --json")
    if watch:
        try:
            _watch(directory)
        except (KeyboardInterrupt, BrokenPipeError):
            silence(sys.stdout)  # its reader may have gone
        return None
    found = _view(directory)
    others = ["", "Every run:", *listed] if listed[1:] else []
    return Answer(partial(run_document, found), [*status_lines(found), *others])


def _view(directory: Path) -> Run:
    return Run(load_state(directory), datetime.now(UTC), directory)


def _rows(root: Path) -> Iterator[dict[str, str]]:
    """Yield the name, phase, standing and directory of each run below."""
    for directory in runs_below(root):
        try:
            run = _view(directory)
            name, phase, stands = run.plan.run_id, str(run.plan.phase), answer(run).title
        except (LedgerCorruptError, OSError, ValueError):
            name, phase, stands = directory.name, directory.parent.name, "cannot be read"
        yield {"run": name, "phase": phase, "stands": stands, "directory": str(directory)}


def _watch(directory: Path) -> None:
    """Show a picture on a terminal, or lines in a pipe, until the run is over."""
    on_screen = can_paint(sys.stdout)
    known = ""
    output = select.poll()
    output.register(sys.stdout.fileno(), 0)  # errors, such as a reader that has gone
    views = looks(directory)
    with Screen() if on_screen else nullcontext() as screen:
        while True:
            began = process_time()
            lines, seen = next(views)
            if screen is not None:
                screen.show(lines, seen)
            else:
                if seen.standing.kind != known:
                    known = seen.standing.kind
                    lines += status_lines(seen)
                print(*map(printable, lines), sep="\n", end="\n" * bool(lines), flush=True)
            if seen.is_over or output.poll(1000 * pause(began)):
                return


def report(
    typed: Typed,
    runs: list[str] | None = Argument(None, metavar="[RUN]...", help="Default: the latest."),
    as_html: bool = switch("--html", "Write one page, into the run's reports/ or to --out."),
    out: Path | None = Option(
        None, "--out", metavar="FILE", help="Write FILE.html or .md; `-`: print Markdown."
    ),
    rebuild: bool = switch("--rebuild", "Also write the run's report files again."),
) -> Answer:
    """Show the results of a run, or of several side by side. Writes nothing without an option."""
    found = [find_run(name, typed.root) for name in runs or (None,)]
    places = list({place.resolve(): place for place in found}.values())
    run, *others = views = list(map(_view, places))
    if rebuild:
        from orchestrator.look.reports import rebuild as rebuild_files

        for place in places:
            rebuild_files(place, datetime.now(UTC))
    several = Comparison(views) if others else None
    contents = partial(run_document, run) if several is None else several.document
    if not (as_html or out):
        text = page_markdown(several.page()) if several else ""
        return Answer(contents, *(told(run) if several is None else ((), text)))
    if out is not None and str(out) != "-":
        named_file(out, ".html", ".htm", *([] if as_html else [".md"]))
    is_html = as_html or (out is not None and out.suffix.lower() in (".html", ".htm"))
    page = page_of(run, with_plots=is_html) if several is None else several.page()
    text = page_html(page) if is_html else page_markdown(page)
    if str(out) == "-":
        return Answer(contents, [text.rstrip("\n")])
    path = out or places[0] / "reports" / f"{'compare' if others else 'report'}.html"
    if out is None:
        path.parent.mkdir(mode=0o700, exist_ok=True)
    replace(path, text.encode("utf-8", "replace"))
    url = path.resolve().as_uri()
    lines = [str(path), *[f"Open it in a browser: {url}"] * is_html]
    return Answer({"file": str(path), "bytes": path.stat().st_size, "url": url}, lines)


def best(
    typed: Typed,
    form: Literal["toml", "flags"] | None = Option(
        None, "--as", help="A file with this baseline, or command-line arguments."
    ),
) -> Answer:
    """Show the configuration that a search recommends, after a No-Go the baseline."""
    run = _view(typed.directory("phase1", "phase2"))
    plan, spec, said = run.plan, run.plan.objective, answer(run)
    if not run.is_search:
        raise ValueError(f"{plan.run_id} is a {plan.phase} run: only a search recommends something")
    if not run.state.completed:
        raise ValueError(f"{plan.run_id} recommends nothing yet: no generation is complete")
    values = {k.name: k.baseline if k.recommended is None else k.recommended for k in run.knobs}
    is_baseline = recommendation(run.state) is None  # after a No-Go
    which = "the baseline" if is_baseline else "the best candidate"
    source = f"{plan.run_id}: {which}. {said.headline}"
    document = partial(_recommended, run)
    if form == "toml":
        return Answer(document, [_as_toml(spec, None if is_baseline else values, source)])
    if form == "flags":
        if not (arguments := registry.load(spec).arguments(values)):
            raise ValueError(f"--as flags: {spec.name} takes no arguments")
        print(printable(source), file=sys.stderr)
        return Answer(document, [" ".join(map(shell_word, arguments))])
    known = [f"{name}: {text}" for name, text in said.parts.items() if name != "Next"]
    return Answer(document, [said.headline, *known], "".join(knobs_table(run, values)))


def _recommended(run: Run) -> dict[str, Any]:
    """Return the JSON document; it contains `best.json`."""
    own = {"run_id": run.plan.run_id, "directory": str(run.directory), "cautions": cautions(run)}
    return {**own, "knobs": plain_values(run.knobs), **best_document(run)}


def _as_toml(spec: ObjectiveSpec, recommended: Knobs | None, comment: str) -> str:
    """Return a configuration file with the recommended baseline, or the one it has.

    Raises ValueError where it cannot be moved, and SetupError if the objective cannot be loaded.
    """
    moved = spec if recommended is None else registry.load(spec).with_baseline(recommended)
    if moved is None:
        raise ValueError(f"--as toml: {spec.name} has no settings for another baseline. See --json")
    settings = {f"training.{name}": value for name, value in registry.unusual(moved).items()}
    if spec.name != Config().objective:  # `train` reads the file too
        settings = {"objective": spec.name, **settings}
    return to_toml(settings, comment).rstrip("\n")
