"""A CMA-ES search that spends a budget: plan, run, resume, verify."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.look.notebook import LoadedRun


__all__ = ["load"]


def load(run: "str | Path", *, runs_dir: "str | Path" = "artifacts/cmaes") -> "LoadedRun":
    """The run in a directory, or with an id among those in `runs_dir`, to look into.

    `.run` has every number that people are shown; `.evaluations`, `.generations`,
    `.recommendation`; as frames with pandas. Raises ValueError where there is none.
    """
    from orchestrator.look import notebook  # not before somebody asks

    return notebook.load(run, runs_dir=runs_dir)
