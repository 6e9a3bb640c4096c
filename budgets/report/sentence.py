"""Where a run stands, in one sentence that claims no more than was measured."""

from typing import assert_never

from budgets.campaign.effects import CampaignReport, campaign_of
from budgets.campaign.text import campaign_sentence
from budgets.course import next_step
from budgets.plain import PROGRAM
from budgets.proxy.report import proxy_report
from budgets.proxy.text import proxy_sentence
from budgets.report.liveness import liveness
from budgets.rules.triggers import Verdict
from budgets.state import RunState
from budgets.verdict.findings import title
from budgets.verdict.gains import incumbent_gain


def sentence(state: RunState, verdict: Verdict, campaign: CampaignReport | None = None) -> str:
    """The verdict in words; of one that goes on how far it is: no ledger says if somebody has it.

    `campaign` is the state's, where it is known already.
    """
    match verdict.decision:
        case "continue":
            return _so_far(state)
        case "pause":
            return f"Paused: {verdict.reason}.{_way_on(verdict)}"
        case "stop":
            return f"Stopped: {verdict.reason}.{_way_on(verdict)}{_way_to_more(state, verdict)}"
        case "done":
            campaign = campaign or campaign_of(state, is_over=True)
            return _finished(state) if campaign is None else campaign_sentence(campaign)
        case _:
            assert_never(verdict.decision)


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


def _way_on(verdict: Verdict) -> str:
    rules = [t.rule for t in verdict.triggers if t.overridable]
    if not rules:
        return ""
    options = " ".join(f"--override {rule}" for rule in rules)
    return f' Look into it; to go on all the same, repeat the command with {options} --reason "..."'


def _way_to_more(state: RunState, verdict: Verdict) -> str:
    if all(trigger.rule != "budget" for trigger in verdict.triggers):
        return ""
    return (
        f" To allow more: {PROGRAM} amend {state.plan.run_id}, with the cap and a "
        "--reason; then repeat the command."
    )


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
