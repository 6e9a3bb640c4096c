"""`doctor`: everything that a run needs, looked at, with the command that mends it."""

import shlex
from typing import Annotated

import typer
from rich.markdown import Markdown
from typer import Option

from orchestrator.doctor.examine import Subject, examine
from orchestrator.doctor.finding import as_dict, nothing_is_missing
from orchestrator.doctor.text import to_markdown
from orchestrator.options import (
    DEFAULT_ROOT,
    Address,
    AllowNetworkFs,
    DeviceName,
    Json,
    ObjectiveName,
    Root,
    Settings,
    Threads,
    Workers,
    load_objective,
)
from orchestrator.terminal import console, print_json

EXIT_MISSING = 2


def doctor(
    objective: ObjectiveName = "nanochat",
    settings: Settings = None,
    root: Root = DEFAULT_ROOT,
    address: Address = None,
    device: DeviceName = "auto",
    workers: Workers = None,
    threads: Threads = None,
    allow_network_fs: AllowNetworkFs = False,
    quick: Annotated[
        bool, Option("--quick", help="Leave out what takes seconds: importing torch and others.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Whether all that a run needs is here, and what mends what is not. Touches nothing.

    Exit code 2 when something needed is missing.
    """
    subject = Subject(
        objective=load_objective(objective, settings),
        root=root,
        device=device,
        workers=workers,
        threads=threads,
        address=address,
        allow_network_fs=allow_network_fs,
        options="".join(f" --set {shlex.quote(setting)}" for setting in settings or ()),
        quick=quick,
    )
    sections = examine(subject)
    if as_json:
        print_json(as_dict(sections))
    else:
        console().print(Markdown(to_markdown(sections)))
    if not nothing_is_missing(sections):
        raise typer.Exit(EXIT_MISSING)
