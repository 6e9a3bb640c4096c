"""Weights & Biases: a run written offline into the run's directory, to be synced by hand.

Where a person has set `WANDB_MODE=online`, their account is told directly. Nothing is ever asked:
without an account it fails.
"""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from orchestrator.trackers.figures import Figures
from orchestrator.trackers.place import empty
from orchestrator.trackers.sink import Beginning
from orchestrator.trackers.terms import Value

if TYPE_CHECKING:
    from wandb import Run

MOST_TAG = 64  # characters; it refuses a longer one
PROJECT = "cmaes-orchestrator"


class WeightsAndBiases:
    """One W&B run a ledger."""

    _run: "Run"

    def begin(self, run: Beginning) -> int:
        """A run offline cannot be continued, so it is written again from its first step."""
        mode = os.environ.get("WANDB_MODE", "offline")
        is_offline = mode in ("offline", "dryrun")
        if is_offline:
            empty(run.directory)
        own = run.directory / ".own"
        for name in ("WANDB_CONFIG_DIR", "WANDB_CACHE_DIR", "WANDB_DATA_DIR"):
            os.environ.setdefault(name, str(own))
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
        os.environ.pop("WANDB_SERVICE", None)  # of a program that has a W&B run of its own
        import wandb

        settings = wandb.Settings(
            mode=mode,  # wandb refuses what it does not know
            silent=True,
            console="off",
            disable_code=True,
            disable_git=True,
            save_code=False,
            symlink=False,
            x_disable_meta=True,
            x_disable_stats=True,
            x_disable_machine_info=True,
            x_save_requirements=False,
        )
        self._run = wandb.init(
            dir=run.directory.parent,
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            id=run.key[:16],
            name=run.run_id,
            job_type=run.phase,
            tags=[tag[:MOST_TAG] for tag in (run.phase, run.tier, run.objective) if tag],
            config=dict(run.config),
            resume=None if is_offline else "allow",
            settings=settings,
        )
        return 0 if is_offline else run.told

    def log(self, batch: Sequence[Figures]) -> None:
        for figures in batch:
            self._run.log({**figures.values, "_timestamp": figures.at}, step=figures.step)

    def end(self, summary: Mapping[str, Value], *, is_over: bool) -> None:
        self._run.log({}, commit=True)  # else the last step's figures would go over it
        self._run.summary.update(dict(summary))
        self._run.finish(exit_code=0 if is_over else 1)
