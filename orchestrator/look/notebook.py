"""A run for other tools: an object with data frames for a notebook, and an Optuna study."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from budgets.events import Settled
from budgets.formatting import printable
from budgets.verdict import recommendation
from orchestrator.look.answer import answer
from orchestrator.look.run import Run
from orchestrator.records.objective import best_point
from orchestrator.records.runs import find_run, load_state
from orchestrator.records.tables import COLUMNS, columns_of, export_rows

if TYPE_CHECKING:
    import pandas as pd
    from optuna.trial import FrozenTrial


def load(run: str | Path, *, runs_dir: str | Path = "artifacts/cmaes") -> "LoadedRun":
    """Return the run in a directory, or with an id among those in `runs_dir`, as it stands now.

    It stays as it was: load it again to see more. Raises ValueError where there is none, and
    LedgerCorruptError where its ledger is damaged.
    """
    directory = find_run(str(run), Path(runs_dir))
    return LoadedRun(Run(load_state(directory), datetime.now(UTC), directory))


@dataclass(frozen=True, repr=False)
class LoadedRun:
    """A run as its ledger had it when it was loaded. Nothing here writes to it."""

    run: Run  # every number that a report, JSON or a page has

    @property
    def evaluations(self) -> list[Settled]:
        """The attempts that are over, as the ledger has them: the search's, then comparisons'."""
        return list(self.run.state.ends())

    @property
    def recommendation(self) -> dict[str, float] | None:
        """The knobs that are recommended; None before a generation is told, and after a No-Go."""
        point = recommendation(self.run.state)
        return None if point is None else self.run.space.decode(point)

    @property
    def best(self) -> dict[str, float] | None:
        """The knobs of the best there is: what is recommended, or was compared before a No-Go.

        Never those of the best score that was seen, which is selected for its noise.
        """
        point = best_point(self.run.state, compared=True)
        return None if point is None else self.run.space.decode(point)

    def evaluations_frame(self) -> "pd.DataFrame":
        """Return a row an attempt, with its knobs as `knob.NAME`, its metrics as `metric.NAME`.

        `comparison` is empty for the search. Raises ImportError without pandas.
        """
        rows = export_rows(self.run.state)
        return _pandas().DataFrame(rows, columns=columns_of(rows) or list(COLUMNS))

    def generations_frame(self) -> "pd.DataFrame":
        """Return a row a generation. Raises ImportError without pandas."""
        return _pandas().DataFrame(map(asdict, self.run.generations))

    def _repr_html_(self) -> str:
        own = answer(self.run)
        said = {f"{self.run.plan.run_id}: {own.title}": own.sentence, **own.parts}
        said["Command"] = own.commands[0] if own.commands else ""
        cells = ((escape(printable(name)), escape(printable(it))) for name, it in said.items())
        return f"<table>{''.join(f'<tr><th>{name}<td>{it}' for name, it in cells)}</table>"


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise ImportError("frames need pandas: pip install 'cmaes-orchestrator[frames]'") from None
    return pandas


# As an Optuna study, for people to explore in optuna-dashboard

BEST_TRIAL = (
    "The best trial is the lowest of many noisy scores, not what is recommended: only the "
    "comparison on fresh seeds, of which the verdict speaks, is evidence of a gain."
)


def as_study(run: Run, out: Path) -> int:
    """Write a search as an Optuna study into the SQLite file `out`; return the number of trials.

    A trial is a candidate of a full generation that is over, its value the mean over its seeds.
    Raises ValueError on a run that searches nothing, on a file that is there, and without Optuna.
    """
    if not run.is_search:
        raise ValueError(f"{run.plan.run_id} is a {run.plan.phase} run: expected a search")
    if out.exists() or not out.parent.is_dir():
        raise ValueError(f"--out: expected a new file in a directory that is there, got {out}")
    try:
        import optuna
    except ImportError:
        message = "optuna is not installed: pip install 'cmaes-orchestrator[optuna]'"
        raise ValueError(message) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    trials, storage = list(_trials(run)), f"sqlite:///{out.absolute()}"
    about = {"verdict": answer(run).sentence, "best_trial": BEST_TRIAL}
    try:
        study = optuna.create_study(storage=storage, study_name=run.plan.run_id)  # minimizes
        for name, value in (about | {"ledger_head": run.state.head}).items():
            study.set_user_attr(name, value)
        study.add_trials(trials)
    except BaseException:
        out.unlink(missing_ok=True)  # half a study
        raise
    return len(trials)


def _trials(run: Run) -> Iterator["FrozenTrial"]:
    from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
    from optuna.trial import TrialState, create_trial

    distributions: dict[str, BaseDistribution] = {
        knob.name: IntDistribution(int(knob.low), int(knob.high), step=knob.step)
        if knob.kind == "int"
        else FloatDistribution(knob.low, knob.high, log=knob.kind == "log10")
        for knob in run.knobs
    }
    for generation in run.state.generations:
        scores = zip(generation.points, generation.scores(), strict=True)
        for candidate, (point, score) in enumerate(scores):
            if None in (generation.result(candidate, one) for one in generation.seeds[candidate]):
                continue
            knobs = run.space.decode(point)
            yield create_trial(
                state=TrialState.FAIL if score is None else TrialState.COMPLETE,
                value=score,
                params={  # without a last bit beyond its range
                    knob.name: min(max(knobs[knob.name], knob.low), knob.high) for knob in run.knobs
                },
                distributions=distributions,
                user_attrs={"generation": generation.number, "candidate": candidate},
            )
