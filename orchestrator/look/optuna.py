"""A search as an Optuna study, for people to explore in optuna-dashboard."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from budgets.events import Status
from orchestrator.look.answer import answer
from orchestrator.look.rows import Attempt
from orchestrator.look.run import Run

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

LUCK = (
    "The best trial is the luckiest of many noisy scores, not what is recommended: only the "
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
    trials, storage = list(_trials(run)), f"sqlite:///{out.absolute()}"
    about = {"verdict": answer(run).sentence, "best_trial": LUCK, "ledger_head": run.state.head}
    try:
        study = optuna.create_study(storage=storage, study_name=run.plan.run_id)  # minimizes
        for name, value in about.items():
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
    attempts: dict[tuple[int, int], list[Attempt]] = defaultdict(list)
    for one in run.ended:
        if one.comparison is None:
            attempts[one.generation, one.candidate].append(one)
    for (number, candidate), own in sorted(attempts.items()):
        generation = run.state.generation(number)
        ends = [one.status for one in own if one.is_final]
        if len(ends) < len(generation.seeds[candidate]):
            continue
        score, knobs = generation.score(candidate), own[0].knobs
        failed = [end for end in ends if end is not Status.OK]
        about: dict[str, Any] = {"generation": number, "candidate": candidate}
        trial = create_trial(
            state=TrialState.FAIL if score is None else TrialState.COMPLETE,
            value=score,
            params={  # without a last bit beyond its range
                knob.name: min(max(knobs[knob.name], knob.low), knob.high) for knob in run.knobs
            },
            distributions=distributions,
            user_attrs=about | {"status": str(failed[0]) if failed else "ok"},
        )
        began, ended = min(one.began for one in own), max(one.ended or 0.0 for one in own)
        trial.datetime_start = run.began + timedelta(seconds=began)
        trial.datetime_complete = run.began + timedelta(seconds=ended)
        yield trial
