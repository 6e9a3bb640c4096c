"""Where a run stands, in one sentence that claims no more than was measured."""

import re
from typing import assert_never

from budgets.accounts import MS_PER_HOUR
from budgets.campaign.effects import CampaignReport, campaign_of
from budgets.campaign.text import campaign_sentence
from budgets.course import next_step
from budgets.events import Fired
from budgets.liveness import liveness
from budgets.plain import PROGRAM
from budgets.proxy.report import proxy_report
from budgets.proxy.text import proxy_sentence
from budgets.rules.triggers import Ruling
from budgets.state import RunState
from budgets.verdict.findings import title
from budgets.verdict.gains import incumbent_gain
from budgets.words import rounded_up


def sentence(state: RunState, ruling: Ruling, campaign: CampaignReport | None = None) -> str:
    """The ruling in words; of one that goes on how far it is: no ledger says if somebody has it.

    `campaign` is the state's, where it is known already.
    """
    match ruling.decision:
        case "continue":
            return _so_far(state)
        case "pause":
            return f"Paused: {ruling.reason}.{_way_on(state, ruling)}"
        case "stop":
            more = _way_to_more(state, ruling)
            return f"Stopped: {ruling.reason}.{_way_on(state, ruling)}{more}"
        case "done":
            campaign = campaign or campaign_of(state, is_over=True)
            return _finished(state) if campaign is None else campaign_sentence(campaign)
        case _:
            assert_never(ruling.decision)


_COMPARING = {
    "reference": "evaluating the baseline on fresh seeds",
    "finalists": "comparing the finalists on fresh seeds",
    "winner": "comparing the winner with the baseline on further fresh seeds",
    "rung": "trying the winner on more FLOPs",
}


def _so_far(state: RunState) -> str:
    done, planned = state.finished, state.plan.resolved.generations
    if state.plan.phase in ("check", "campaign"):
        settled = state.accounts.evaluations + state.accounts.apart
        whole = state.plan.resolved.evaluations + state.plan.apart
        return f"{settled} of {whole} evaluations settled."
    comparing = _COMPARING.get(next_step(state))
    if comparing is None:
        return f"{done} of {planned} generations finished."
    ended = "" if state.ended is None else f" ({state.ended.rule} ended the search)"
    return f"{done} of {planned} generations finished{ended}, {comparing}."


def corrected(state: RunState, ruling: Ruling) -> str:
    """What becomes of a mended script, where that is what failures ask for."""
    if all(trigger.rule not in _OF_FAILURES for trigger in ruling.triggers):
        return ""
    if is_baseline_broken(state):
        return (
            "Mend it and repeat the command: a changed script or setting is calibrated anew; if "
            'something else was wrong, calibrate with the same options and --again --reason "..."'
        )
    if "code" not in state.plan.objective.get("settings", {}):
        return ""
    return "A corrected script is another plan: begin it with --fork-run, or --run-id NAME"


_OF_FAILURES = ("crash_rate", "sustained_nan", "too_few_healthy")


def is_baseline_broken(state: RunState) -> bool:
    """Whether a calibration has no score at all: there is nothing to let through."""
    results = (result for generation in state.generations for result in generation.results())
    return state.plan.phase == "calibration" and all(result.score is None for result in results)


def _way_on(state: RunState, ruling: Ruling) -> str:
    anew = corrected(state, ruling)
    if anew and is_baseline_broken(state):
        return f" {anew}."
    said = f" Look into it. {anew}." if anew else ""
    rules = [t.rule for t in ruling.triggers if t.overridable]
    if not rules:
        return said
    options = " ".join(f"--override {rule}" for rule in rules)
    way = f'o go on all the same, repeat the command with {options} --reason "..."'
    return f"{said} T{way}" if said else f" Look into it; t{way}"


def _way_to_more(state: RunState, ruling: Ruling) -> str:
    budget = next((trigger for trigger in ruling.triggers if trigger.rule == "budget"), None)
    if budget is None:
        return ""
    more = more_of(state, budget.fired())
    least = "" if more.endswith("MORE") else " (that much at least)"
    return (
        f' To allow more: {PROGRAM} amend {state.plan.run_id} {more} --reason "..."{least}; then '
        "repeat the command."
    )


_FLAG = re.compile(r"\((--(?:max-[a-z-]+|window))\)")


def more_of(state: RunState, fired: Fired) -> str:
    """`--max-hours 0.0485`: the cap in the way of what fires now, and the least that would do."""
    accounts, found = state.accounts, _FLAG.search(fired.evidence)
    flag, caps = "--max-evals" if found is None else found[1], accounts.caps
    device_hours = accounts.used_device_hours
    cap, used = {
        "--max-device-hours": (caps.device_hours, device_hours),
        "--max-hours": (caps.hours, accounts.committed_wall_ms / MS_PER_HOUR),
        "--max-cost": (caps.cost, device_hours * accounts.price_per_device_hour),
    }.get(flag, (None, 0.0))
    if cap is None:
        return f"{flag} MORE"
    # what is free of a cap that is overdrawn is 0, not less
    return f"{flag} {rounded_up(max(cap - fired.limit, used) + fired.observed)}"


def _finished(state: RunState) -> str:
    evaluations, failed = state.accounts.evaluations, sum(len(g.failed) for g in state.generations)
    if state.plan.phase == "calibration":
        if failed == evaluations:
            return f"Not calibrated: all {evaluations} evaluations of the baseline failed."
        return f"Calibrated: {evaluations - failed} healthy evaluations of the baseline."
    if state.plan.phase == "check":
        return _checked(state)
    if (decided := state.decided) is not None:
        return f"{title(decided.grade, decided.no_go)}: {decided.evidence}.{_survival(state)}"
    plumbing = f"All {evaluations} evaluations are settled, {failed} of them failed."
    if same := same_scores(state):
        plumbing = f"{plumbing} {same}"
    elif state.plan.tier == "min":
        plumbing = f"{plumbing} The plumbing works."
    if state.plan.tier == "min":
        return f"{plumbing} Tier min is too small to say Go."
    return (
        f"{plumbing} The recommendation has not been scored on fresh seeds against the baseline, "
        "so this is no Go yet."
    )


def same_scores(state: RunState) -> str:
    """That the knobs change nothing, where all scores of a search are one number; else nothing."""
    scores = [r.score for g in state.generations for r in g.results() if r.score is not None]
    if len(scores) < 2 or len(set(scores)) > 1:
        return ""
    return (
        f"All {len(scores)} scores are the same number, {scores[0]:.5g}: the knobs do not seem to "
        "reach the score. See: dry-run, space check."
    )


def _survival(state: RunState) -> str:
    """Whether the winner of the followed run is better than the baseline on fresh seeds too."""
    found = incumbent_gain(state)
    if found is None:
        return ""
    if found.is_shown:
        return f" The winner of phase 1 survives on {found.pairs} fresh seeds."
    why = f"its gain on {found.pairs} fresh seeds may be chance"
    if found.is_loss:
        why = f"it is worse than the baseline on {found.pairs} fresh seeds"
    if not found.pairs:
        why = "it has no score on fresh seeds"
    return f" The winner of phase 1 does not survive: {why}."


def _checked(state: RunState) -> str:
    if (proxy := proxy_report(state)) is not None:
        return proxy_sentence(proxy)
    found = liveness(state)
    assert found is not None, "no check is finished without its baseline"
    parts = {
        "dead": found.names("dead"),
        "unproven": found.names("unproven"),
        "unstable": found.unstable_ends,
    }
    named = "".join(f"; {what}: {', '.join(names)}" for what, names in parts.items() if names)
    where = " around the recommendation" if found.centre == "recommendation" else ""
    return f"{len(found.names('alive'))} of {len(found.knobs)} knobs move the score{where}{named}."
