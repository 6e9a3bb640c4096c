"""What a person's questions are answered from, and the commands that the answers name."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from budgets.plain import command
from budgets.report.model import BudgetReport
from budgets.report.sentence import more_of
from budgets.rules.table import Reading
from budgets.state import RunState
from objectives.api import SetupError
from orchestrator.best.widening import Widening, widening
from orchestrator.config.asked import found_as
from orchestrator.config.command_words import UntoldError, objective_words
from orchestrator.config.document import as_assigned
from orchestrator.records.range_ends import range_ends
from orchestrator.report.again import again

BEGAN = "the command that began it"


@dataclass(frozen=True)
class Asked:
    """A run as it stands."""

    state: RunState
    report: BudgetReport
    directory: Path
    last: datetime | None = None  # when its last record is from

    @property
    def failed(self) -> int:
        """Evaluations that ended without a score, those beside the search included."""
        return sum(len(batch.failed) for batch in self.state.batches())

    @property
    def settled(self) -> int:
        """Evaluations that are over."""
        return self.state.accounts.evaluations + self.state.accounts.apart

    @property
    def planned(self) -> int:
        """Evaluations that are planned, at most."""
        return self.state.plan.resolved.evaluations + self.state.plan.apart

    @property
    def searches(self) -> bool:
        """Whether it looks for something, and does not only measure."""
        return self.state.plan.search is not None

    @property
    def is_smoke_test(self) -> bool:
        """Whether it tries out that everything works, and asks no more."""
        return self.state.plan.phase == "phase1" and self.state.plan.tier == "min"

    @property
    def healthy(self) -> int:
        """Those of the search, the check or the campaign that have a score."""
        return self.report.evaluations_by_status.get("ok", 0)

    @cached_property
    def run(self) -> str:
        """How a command finds it: by its name where that is enough."""
        return found_as(self.directory, self.state.plan)

    @cached_property
    def beginning(self) -> tuple[str, ...]:
        """The command that begins it, or takes it up; empty where its ledger does not tell."""
        with suppress(UntoldError, ValueError):
            return (command(*again(self.directory, self.state)),)
        return ()

    def of_objective(self, *words: str, settings: Mapping[str, Any] | None = None) -> str:
        """A command about what the run tunes, with these settings instead of the run's own."""
        return command(*words, *self._options(settings or {}))

    def _options(self, changed: Mapping[str, Any]) -> tuple[str, ...]:
        """--objective and --set; a file's name to fill in where a ledger must not tell them."""
        own = self.state.plan.objective
        objective = {**own, "settings": {**own["settings"], **changed}}
        with suppress(UntoldError, SetupError, ValueError):
            return tuple(
                objective_words(self.state.plan.model_copy(update={"objective": objective}))
            )
        sets = (word for key, value in changed.items() for word in ("--set", _assigned(key, value)))
        return ("--config", "FILE", *sets)

    @cached_property
    def widening(self) -> Widening | None:
        """The way on where its best lies at the end of a range."""
        return widening(self.state.plan, self.run, range_ends(self.state))

    def overriding(self, rules: list[str]) -> tuple[str, ...]:
        """Taken up although these rules fired."""
        options = "".join(f" --override {rule}" for rule in rules)
        return tuple(f'{line}{options} --reason "WHY"' for line in self.beginning)

    def amending(self, trigger: Reading) -> str:
        """The command that allows more, with the cap that was in the way."""
        return f'{command("amend", self.run)} {more_of(self.state, trigger.fired())} --reason "WHY"'


def _assigned(key: str, value: Any) -> str:
    return f"{key}={as_assigned(value)}"
