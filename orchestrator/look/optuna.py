"""A search as an Optuna study, for people to explore in optuna-dashboard."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from budgets.events import Status
from budgets.state import Generation
from orchestrator.look import text
from orchestrator.look.answer import answer
from orchestrator.look.rows import Knob
from orchestrator.look.run import Run

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

LUCK = (
    "The best trial is the luckiest of many noisy scores, not what is recommended: only the "
    "comparison on fresh seeds, of which the verdict speaks, is evidence of a gain."
)


def export(run: Run, out: Path) -> int:
    """Write the study as the SQLite file `out`; return its number of trials.

    A trial is a candidate of a full generation, its value the mean score over its seeds. What has
    not ended yet is left out. Raises ValueError on a run that searches nothing, on a file that is
    there already, and without Optuna.
    """
    if not run.is_search:
        raise ValueError(f"{run.plan.run_id} is a {run.plan.phase} run: expected a search")
    if out.exists() or not out.parent.is_dir():
        raise ValueError(f"--out: expected a new file in a directory that is there, got {out}")
    try:
        import optuna
    except ImportError:
        raise ValueError(
            "export optuna: optuna is not installed. Get it with: "
            "pip install 'cmaes-orchestrator[optuna]'"
        ) from None
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        study = optuna.create_study(
            storage=f"sqlite:///{out.absolute()}", study_name=run.plan.run_id, direction="minimize"
        )
        for name, value in _about(run).items():
            study.set_user_attr(name, value)
        trials = list(_trials(run))
        study.add_trials(trials)
    except BaseException:
        out.unlink(missing_ok=True)  # half a study
        raise
    finally:
        optuna.logging.set_verbosity(verbosity)
    return len(trials)


def _about(run: Run) -> dict[str, Any]:
    own = answer(run)
    return {
        "verdict": own.title,
        "sentence": own.sentence,
        "best_trial": LUCK,
        "spent": text.spent(run),
        "baseline_score": None if run.baseline is None else run.baseline.mean,
        "noise_band": run.noise_band,
        "luck_so_far": run.luck_so_far,
        "ledger_head": run.state.head,
    }


def _trials(run: Run) -> Iterator["FrozenTrial"]:
    from optuna.trial import TrialState, create_trial

    distributions = {knob.name: _distribution(knob) for knob in run.knobs}
    times = _times(run)
    for generation in (own for own in run.state.generations if own.is_full):
        for candidate, score in enumerate(generation.scores()):
            status = _status(generation, candidate)
            if status is None:
                continue
            values = run.space.decode(generation.points[candidate])
            trial = create_trial(
                state=TrialState.FAIL if score is None else TrialState.COMPLETE,
                value=score,
                params={knob.name: _within(knob, values[knob.name]) for knob in run.knobs},
                distributions=distributions,
                user_attrs={
                    "generation": generation.number,
                    "candidate": candidate,
                    "status": str(status),
                },
            )
            trial.datetime_start, trial.datetime_complete = times[generation.number, candidate]
            yield trial


def _status(generation: Generation, candidate: int) -> Status | None:
    """`ok`, or how the first of its evaluations failed; None where one is not over."""
    ends = [generation.result(candidate, seed) for seed in generation.seeds_of(candidate)]
    if None in ends:
        return None
    return next((end.status for end in ends if end and end.status is not Status.OK), Status.OK)


def _times(run: Run) -> dict[tuple[int, int], tuple[datetime, datetime]]:
    """When each candidate began and ended, by the clock that leaves out breaks of the run."""
    found: dict[tuple[int, int], tuple[datetime, datetime]] = {}
    for one in run.ended:
        if one.comparison is None:
            began, ended = (
                run.began + timedelta(seconds=moment or 0.0) for moment in (one.began, one.ended)
            )
            key = (one.generation, one.candidate)
            first, last = found.get(key, (began, ended))
            found[key] = (min(first, began), max(last, ended))
    return found


def _distribution(knob: Knob) -> "BaseDistribution":
    from optuna.distributions import FloatDistribution, IntDistribution

    if knob.kind == "int":
        return IntDistribution(int(knob.low), int(knob.high), step=knob.step)
    return FloatDistribution(knob.low, knob.high, log=knob.kind == "log10")


def _within(knob: Knob, value: float) -> float:
    """Without a last bit beyond its range."""
    return min(max(value, knob.low), knob.high)
