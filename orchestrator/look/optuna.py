"""A search as an Optuna study, for people to explore in optuna-dashboard."""

from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from budgets.events import Status
from orchestrator.look.answer import answer
from orchestrator.look.rows import Attempt
from orchestrator.look.run import Run

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

BEST_TRIAL = (
    "The best trial is the lowest of many noisy scores, not what is recommended: only the "
    "comparison on fresh seeds, of which the verdict speaks, is evidence of a gain."
)


def export(run: Run, out: Path) -> int:
    """Write the study as the SQLite file `out`; return its number of trials.

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
    own = sorted((one for one in run.ended if one.comparison is None), key=_candidate)
    found = (_trial(run, *key, list(ends)) for key, ends in groupby(own, _candidate))
    trials = [trial for trial in found if trial is not None]
    about = {"verdict": answer(run).sentence, "best_trial": BEST_TRIAL}
    try:
        storage = f"sqlite:///{out.absolute()}"
        study = optuna.create_study(storage=storage, study_name=run.plan.run_id)  # minimizes
        for name, value in (about | {"ledger_head": run.state.head}).items():
            study.set_user_attr(name, value)
        study.add_trials(trials)
    except BaseException:
        out.unlink(missing_ok=True)  # half a study
        raise
    return len(trials)


def _candidate(one: Attempt) -> tuple[int, int]:
    return one.generation, one.candidate


def _trial(run: Run, number: int, candidate: int, own: list[Attempt]) -> "FrozenTrial | None":
    """None of a candidate that is not over."""
    from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
    from optuna.trial import TrialState, create_trial

    generation, ends = run.state.generation(number), [one.status for one in own if one.is_final]
    if len(ends) < len(generation.seeds[candidate]):
        return None
    score, knobs = generation.score(candidate), own[0].knobs
    distributions: dict[str, BaseDistribution] = {
        knob.name: IntDistribution(int(knob.low), int(knob.high), step=knob.step)
        if knob.kind == "int"
        else FloatDistribution(knob.low, knob.high, log=knob.kind == "log10")
        for knob in run.knobs
    }
    status = next((end for end in ends if end is not Status.OK), Status.OK)
    about: dict[str, Any] = {"generation": number, "candidate": candidate, "status": str(status)}
    trial = create_trial(
        state=TrialState.FAIL if score is None else TrialState.COMPLETE,
        value=score,
        params={  # without a last bit beyond its range
            knob.name: min(max(knobs[knob.name], knob.low), knob.high) for knob in run.knobs
        },
        distributions=distributions,
        user_attrs=about,
    )
    trial.datetime_start = run.began + timedelta(seconds=min(one.began for one in own))
    ended = max(one.ended or 0.0 for one in own)
    trial.datetime_complete = run.began + timedelta(seconds=ended)
    return trial
