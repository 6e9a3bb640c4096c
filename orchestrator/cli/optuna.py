"""`export optuna`: a search as an Optuna study, to be explored in optuna-dashboard."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from typer import Option

from budgets.formatting import counted, printable, shell_word
from orchestrator.cli.options import DEFAULT_ROOT, Json, Root, RunName
from orchestrator.cli.terminal import print_json, print_line
from orchestrator.look.notebook import BEST_TRIAL
from orchestrator.look.notebook import as_study as write_study
from orchestrator.look.run import Run
from orchestrator.records.recorded import find_run, load_state


def as_study(
    out: Annotated[Path, Option("--out", "-o", metavar="FILE.db", help="A new SQLite file.")],
    run: RunName = None,
    root: Root = DEFAULT_ROOT,
    as_json: Json = False,
) -> None:
    """A search as an Optuna study: a trial per candidate, for optuna-dashboard.

    Writes the file --out. The best trial there is the luckiest, not what is recommended.
    """
    directory = find_run(run, root)
    trials = write_study(Run(load_state(directory), datetime.now(UTC), directory), out)
    look = f"optuna-dashboard sqlite:///{shell_word(str(out.absolute()))}"
    if as_json:
        print_json({"file": str(out), "trials": trials, "view": look})
        return
    print_line(printable(f"{counted(trials, 'trial')} written to {out}. Look: {look}"))
    print_line(BEST_TRIAL)
