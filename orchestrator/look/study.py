"""A search as an Optuna study, for people to explore in optuna-dashboard."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.look.answer import answer
from orchestrator.look.run import Run

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

BEST_TRIAL = (
    "The best trial is the best of many noisy scores, not what is recommended: only the "
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
        study = optuna.create_study(
            storage=storage, study_name=run.plan.run_id, direction=run.plan.direction
        )
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
            knobs = run.plan.space.decode(point)
            yield create_trial(
                state=TrialState.FAIL if score is None else TrialState.COMPLETE,
                value=score,
                params={  # without a last bit beyond its range
                    knob.name: min(max(knobs[knob.name], knob.low), knob.high) for knob in run.knobs
                },
                distributions=distributions,
                user_attrs={"generation": generation.number, "candidate": candidate},
            )
