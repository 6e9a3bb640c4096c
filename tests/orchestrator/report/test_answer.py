"""What a person asks first, for each way in which a run can stand."""

import re
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from budgets.events import Concluded, Fired, Overridden, Status
from budgets.ledger.chain import LEDGER
from budgets.report.model import budget_report
from budgets.terms import Calibration, Caps, Envelope
from orchestrator.records.recorded import load_state
from orchestrator.report.answer import answer
from orchestrator.report.answers.asked import Asked
from orchestrator.report.answers.campaigns import compared
from orchestrator.report.answers.others import calibrated
from orchestrator.report.answers.standing import running
from orchestrator.report.collect import report
from orchestrator.report.model import Answer
from tests.budgets.conftest import GENERATIONS, Story, small_plan, told_of
from tests.ledgers import cut
from tests.orchestrator.campaign.conftest import trained
from tests.orchestrator.report.conftest import KNOBS, in_two_knobs, judged

if TYPE_CHECKING:
    from tests.conftest import Command

USUAL = Path("artifacts/cmaes/phase1/judged")
NAN = Status.NAN
GAIN = (0.98, 0.978, 0.982, 0.979, 0.981, 0.98, 0.98, 0.98)
NOISE = (0.02, -0.02, 0.015, -0.015, 0.01, -0.01, 0.0, 0.0)
KEPT, LOST = ((1.0, 1.0), (0.98, 0.98)), ((1.0, 1.0), (1.01, 1.01))
AROUND = tuple(0.995 + noise for noise in NOISE)
ALIVE = 3 * ((1.0, 1.2, 1.1, 1.3),)
NEAR = 3 * ((1.0, 1.002, 1.001, 1.003),)


def asked(story: Story, directory: Path = USUAL) -> Answer:
    return answer(story.state, budget_report(story.state), directory)


VERDICTS: dict[str, dict[str, Any]] = {
    "Go that persists": {"winner": GAIN, "rung": KEPT},
    "Go; persistence not shown": {"winner": GAIN, "rung": ((1.0, 1.0), (0.995, 0.994))},
    "No-Go, dead space": {"generations": NEAR, "winner": AROUND},
    "No-Go, below noise": {"generations": ALIVE, "winner": AROUND},
    "No-Go, smaller than asked": {"winner": tuple(score + 0.012 for score in GAIN)},
    "No-Go, does not persist": {"winner": GAIN, "rung": LOST},
    "No-Go, pathological": {"winner": (NAN, NAN, *GAIN[2:])},
    "No-Go, unstable": {
        "generations": (*(2 * ((1.0, 1.1, 1.2, 1.3),)), (1.0, 1.1, 1.2, NAN)),
        "winner": GAIN,
    },
}


@pytest.mark.parametrize("title", VERDICTS)
def test_every_verdict_is_named_and_explained_in_place(title: str) -> None:
    found = asked(judged(**VERDICTS[title]))
    assert found.title == title
    moods = {"Go that persists": "good", "Go; persistence not shown": "caution"}
    assert found.mood == moods.get(title, "bad")
    assert found.found.startswith(
        {"No-Go, smaller than asked": "Too little"}.get(
            title, "No" if found.mood == "bad" else "Yes"
        )
    )
    assert found.meaning
    assert found.next
    assert all(line.startswith("python -m orchestrator ") for line in found.commands)
    assert len(found.commands) >= 1


@pytest.mark.parametrize("title", VERDICTS)
def test_an_answer_says_what_its_ledger_says(title: str) -> None:
    """The gain, its bound and the number of seeds are those of the decision on record."""
    story = judged(**VERDICTS[title])
    own, found = story.state.decided, asked(story)
    assert own is not None
    assert own.gain is not None
    said = re.search(r"([\d.]+)% (better|worse) than the baseline", found.sentence)
    assert said is not None
    sign = 1 if said[2] == "better" else -1
    assert sign * float(said[1]) == pytest.approx(100 * own.gain, rel=0.01)
    pairs = re.search(r"(\d) (of 8 )?fresh seeds", found.sentence)
    assert pairs is not None


def test_a_go_says_how_sure_it_is_and_what_luck_would_have_shown() -> None:
    found = asked(judged(winner=GAIN, rung=KEPT))
    assert found.sure.startswith("99% sure of 1.87% or more. Best estimate 2%, measured on 8 new")
    assert "With 4 x FLOPs 100% of the gain is kept (2 seeds)." in found.sentence
    assert "by luck alone the best of as many baselines would seem about" in found.luck
    assert not found.but


def test_a_no_go_says_what_it_could_have_seen() -> None:
    found = asked(judged(generations=ALIVE, winner=AROUND))
    assert found.sentence.startswith("No gain is shown: on 8 fresh seeds")
    assert found.sentence.endswith("0.5% better than the baseline, which may be chance.")
    assert found.but.startswith("a gain of up to 2.03%")
    assert "cannot be ruled out with 8 seeds" in found.but
    assert "would have been seen 8 times of 10" in found.sure
    assert "Score" not in found.found


def test_a_control_that_is_not_beaten_is_said_right_after_the_verdict() -> None:
    equal = tuple(score - 0.001 for score in GAIN[:5])
    found = asked(judged(winner=GAIN, rung=KEPT, control=5 * (1.02,), equal=equal))
    assert "the simpler \N{LEFT DOUBLE QUOTATION MARK}synapses off at equal" in found.but
    assert "beats it" in found.but
    assert "may be chance" not in found.but  # the control is better on every seed alike
    assert found.next.startswith("Use \N{LEFT DOUBLE QUOTATION MARK}synapses off at equal")


def test_what_is_below_noise_is_sent_to_as_many_seeds_as_its_advice_names() -> None:
    story = judged(generations=ALIVE, winner=AROUND)
    found = asked(story)
    count = re.search(r"--confirm-seeds (\d+)", found.next)
    assert count is not None
    assert f"--confirm-seeds {count[1]} --eval-seed 124" in found.commands[0]
    assert "--run-id judged-" in found.commands[0]


def test_a_run_elsewhere_than_usual_is_named_by_its_directory() -> None:
    story = judged(winner=GAIN, rung=KEPT)
    assert "best judged" in asked(story).commands[1]
    assert "best '/else where/judged'" in asked(story, Path("/else where/judged")).commands[1]


def test_a_plan_alone_has_not_begun(finished_run: Path, tmp_path: Path) -> None:
    (tmp_path / LEDGER).write_bytes((finished_run / LEDGER).read_bytes().splitlines(True)[0])
    found = report(tmp_path).answer
    assert (found.title, found.mood) == ("Planned, not begun", "open")
    assert found.found == "Nothing yet."


def test_a_run_in_which_nothing_has_ended_says_so() -> None:
    story = Story(in_two_knobs())
    found = asked(story)
    assert found.title == "In progress"
    assert found.found == "Nothing yet: no evaluation has ended."
    assert found.commands[0] == "python -m orchestrator status judged --watch"


def test_a_run_that_goes_on_says_what_it_seems_and_that_this_is_no_evidence() -> None:
    found = asked(told_of(in_two_knobs(), generations=GENERATIONS[:2]))
    assert (found.title, found.mood) == ("In progress", "open")
    assert "Not known yet" in found.found
    assert "Only fresh seeds will tell." in found.luck
    assert "%" not in found.luck
    assert "no evidence" in found.sure
    assert found.meaning.startswith("As of its last record. It may have been interrupted")
    assert "nothing paid is lost" in found.otherwise
    assert "while another process has the run" in found.otherwise
    assert "the comparison on fresh seeds included." in found.sentence


def test_a_comparison_under_way_is_not_judged_yet() -> None:
    found = asked(told_of(in_two_knobs(), finalists={"average": 0.98, "mean": 0.99}))
    assert "under way" in found.sure
    assert "comparing the winner with the baseline" in found.sentence


def test_a_paused_run_names_the_rule_and_the_way_on() -> None:
    story = Story(small_plan(space={"knobs": KNOBS}))
    story.ask()
    for candidate in range(3):
        story.evaluate(candidate, Status.ERROR)
    found = asked(story, Path("artifacts/cmaes/phase1/small"))
    assert found.title == "Paused by rule crash_rate"
    assert found.mood == "trouble"
    assert found.sentence.startswith("All 3 evaluations that ran failed (8 planned), for example: ")
    assert "3 of 3 evaluations of generation 0 so far failed" in found.meaning
    assert "rule crash_rate looks at how many evaluations of a generation fail" in found.meaning
    assert found.found == "Nothing: none of 3 evaluations has a score."
    assert found.sure.startswith("There is nothing to be sure of")
    assert found.commands[0] == "python -m orchestrator explain small"
    assert "fixed" in found.otherwise
    assert "--override crash_rate --reason" in found.commands[1]


def test_a_paused_script_is_told_that_a_corrected_one_is_another_plan() -> None:
    script = {"name": "python:train:f", "settings": {"code": "0" * 64}}
    story = Story(small_plan(space={"knobs": KNOBS}, objective=script))
    story.score(Status.ERROR, Status.ERROR, 1.0, 1.1)
    assert "A corrected script is another plan: begin it with --fork-run" in asked(story).otherwise


def test_a_calibration_of_failures_alone_is_to_be_mended() -> None:
    shape = Envelope(population=1, generations=1, seeds_per_candidate=3)
    alone = {"phase": "calibration", "tier": None, "search": None, "calibration": None}
    story = Story(small_plan(space={"knobs": KNOBS}, resolved=shape, **alone))
    story.ask(seeds=(1, 2, 3))
    for seed in (1, 2, 3):
        story.evaluate(0, Status.ERROR, seed=seed)
    found = asked(story)
    assert "Mend it and repeat the command" in found.next
    assert not any("--override" in line for line in found.commands)


def test_a_run_that_cannot_go_on_says_so() -> None:
    story = Story(small_plan(space={"knobs": KNOBS}))
    story.ask()
    for candidate in range(4):
        story.evaluate(candidate, Status.ERROR)
    found = asked(story, Path("artifacts/cmaes/phase1/small"))
    assert found.title == "Paused by rules crash_rate and too_few_healthy"
    assert found.next.startswith("This run cannot go on")
    assert not any("--override" in line for line in found.commands)


def test_a_run_that_its_window_or_a_cap_stops_is_told_which_to_raise() -> None:
    shape = Envelope(population=4, generations=2, seeds_per_candidate=1)
    plan = small_plan(
        space={"knobs": KNOBS},
        nominal=shape,
        resolved=shape,
        caps=Caps(evaluations=8, device_hours=0.0055),
    )
    story = Story(plan)
    story.score(1.0, 1.1, 1.2, 1.3)
    story.tell()
    found = asked(story, Path("artifacts/cmaes/phase1/small"))
    assert found.title == "Stopped by rule budget"
    assert "--max-device-hours" in found.sentence
    assert found.commands[0] == (
        'python -m orchestrator amend small --max-device-hours 0.00723 --reason "WHY"'
    )


def test_tier_min_is_a_smoke_test_and_sends_to_target(run: Path) -> None:
    found = report(run).answer
    assert (found.title, found.mood) == ("Smoke test over, 1 of 16 failed", "open")
    assert found.found.startswith("Everything works")
    assert found.luck == ""
    assert "phase1 --tier target --objective sphere" in found.commands[0]
    assert "120 evaluations" in found.next
    assert "plan phase1 --objective sphere" in found.commands[1]


def test_a_smoke_test_in_which_nothing_failed_is_passed() -> None:
    story = Story(in_two_knobs(tier="min", confirmation=None))
    story.finish()
    story.say(Concluded(reason="all 12 planned evaluations are settled"))
    found = asked(story)
    assert (found.title, found.mood) == ("Smoke test passed", "good")
    assert found.sentence == "All 12 evaluations gave a score."


def test_a_smoke_test_whose_scores_are_all_the_same_is_not_passed() -> None:
    story = Story(in_two_knobs(tier="min", confirmation=None))
    for _ in range(story.state.plan.resolved.generations):
        story.score(*(2.5,) * story.state.plan.resolved.population)
        story.tell()
    story.say(Concluded(reason="all 12 planned evaluations are settled"))
    found = asked(story)
    assert (found.title, found.mood) == ("All scores are the same", "caution")
    assert found.found.startswith("All 12 scores are the same number, 2.5: the knobs do not seem")
    assert ["dry-run" in found.commands[0], "space check" in found.commands[1]] == [True, True]


def test_a_search_that_a_cap_made_smaller_says_why_it_stopped() -> None:
    why = "--max-evals 14 pays for 3 of 5 generations"
    plan = in_two_knobs(confirmation=None, reasons=(why,), caps=Caps(evaluations=14))
    story = Story(plan)
    story.finish()
    story.say(Concluded(reason="all 12 planned evaluations are settled"))
    found = asked(story)
    assert f"It stopped at 12 because {why} (of 4 evaluations each)." in found.sentence
    assert found.cost.startswith("12 evaluations of the 14 allowed;")


def test_without_a_comparison_the_way_to_one_is_named() -> None:
    story = Story(in_two_knobs(confirmation=None))
    story.finish()
    story.say(Concluded(reason="all 12 planned evaluations are settled"))
    found = asked(story)
    assert found.title == "Finished, no verdict"
    assert "No comparison" in found.meaning
    assert found.commands == (
        "python -m orchestrator best judged --train --times 1 --seeds 8 --compare",
    )


def test_a_campaign_says_which_effects_there_are(campaign: Path) -> None:
    found = report(campaign).answer
    state = load_state(campaign)
    assert found.title == "dimension moves the score"
    assert budget_report(state).sentence.endswith(found.sentence)
    assert "are settled" not in found.sentence
    assert found.found.startswith("Yes: dimension 3 against 2: 0.31% better")
    assert found.next.startswith("Take dimension 3: each is the better level")
    assert "--png effects" in found.commands[0]


def test_a_control_that_differs_from_another_is_one_of_those_named(campaign: Path) -> None:
    state = load_state(campaign)
    budget = budget_report(state)
    found = budget.campaign
    assert found is not None
    rows = []
    for row in found.rows:
        sure = [
            one.model_copy(
                update={"difference": one.difference.model_copy(update={"is_found": True})}
            )
            for one in row.comparisons
        ]
        rows.append(row.model_copy(update={"comparisons": tuple(sure), "is_control": True}))
    own = compared(Asked(state, budget, campaign), found.model_copy(update={"rows": tuple(rows)}))
    (named,) = [row.name for row in rows if row.comparisons]
    assert own.found.endswith(f"; against {found.controls[0]}: better {named}.")


@pytest.mark.needs("matplotlib")
def test_scores_that_nothing_is_compared_with_are_no_effect_that_is_missing(
    tmp_path: Path, command: "Command"
) -> None:
    directory = trained(tmp_path, {"noise": [0.01]}, control=False).directory
    found = report(directory).answer
    assert found.title == "Scores measured"
    assert "luck" not in found.sure
    assert "file" not in found.next
    drawn = command(*shlex.split(found.commands[0])[3:], "--out", str(tmp_path / "a.png"))
    assert drawn.code == 0


def test_a_run_that_ends_another_day_says_which(campaign: Path) -> None:
    cut(campaign, 9, keep_head=True)
    state = load_state(campaign)
    budget, last = budget_report(state), datetime(2026, 3, 1, 12, tzinfo=UTC)
    for hours, until in ((1.0, "13:00"), (12.5, "2026-03-02 00:30"), (24.0, "2026-03-02 12:00")):
        asked_then = Asked(
            state, budget.model_copy(update={"remaining_hours": hours}), campaign, last
        )
        assert f"until about {until} UTC" in running(asked_then).sentence


def test_a_check_says_which_knobs_live() -> None:
    found = report(Path(__file__).parents[2] / "golden/schema_1_check").answer
    assert found.title == "2 of 3 knobs move the score"
    assert "at its " in found.found
    assert "Lower scores are better." in found.found
    assert "5% at most are expected to be luck" in found.sure


def test_a_calibration_says_what_the_baseline_scores_and_how_far_it_varies(run: Path) -> None:
    (calibration,) = (run.parents[1] / "calibration").iterdir()
    found = report(calibration).answer
    assert (found.title, found.mood) == ("Baseline measured", "good")
    assert "of the baseline: " in found.sentence
    assert "lower is better" in found.sentence
    assert re.search(r"it varies by [\d.]+% \(a standard deviation of", found.found)
    assert re.search(r"would see a true gain of [\d.]+% 8 times of 10; a Go needs 1%", found.sure)
    assert "plan phase1 --objective sphere" in found.commands[0]


def test_a_calibration_whose_seeds_give_one_score_says_so() -> None:
    shape = Envelope(population=1, generations=1, seeds_per_candidate=2)
    story = Story(small_plan(phase="calibration", tier=None, resolved=shape, search=None))
    story.ask(seeds=(1, 2))
    for seed in (1, 2):
        story.evaluate(0, 1.5, seed=seed)
    story.say(Concluded(reason="all 2 planned evaluations are settled"))
    assert asked(story).sure == (
        "All 2 seeds gave one score: the seed changes nothing (of a program: is it given the "
        "seed?)."
    )


def test_of_a_baseline_that_cannot_be_told_from_0_no_gain_is_told() -> None:
    story = Story(small_plan(phase="calibration", search=None, tier=None))
    story.score(0.1, 0.2, -0.3, 0.0)
    found = calibrated(Asked(story.state, budget_report(story.state), USUAL))
    assert "from seed to seed" not in found.found
    assert found.sure.startswith("No gain can be told: the baseline scores")


def test_the_cost_names_every_currency_that_counts() -> None:
    plan = in_two_knobs(
        caps=Caps(evaluations=12, device_hours=2.0, cost=5.0), price_per_device_hour=1.5
    )
    found = asked(told_of(plan)).cost
    assert found.startswith("23 evaluations (12 of the search, 11 of ")
    assert "of 2 h 00 min of device time on 2 x some processor (1 h 59 min left)" in found
    assert "of 5 in money" in found
    assert found.endswith("none failed.")


def test_the_cost_says_how_long_devices_ran_and_how_many_evaluations_failed() -> None:
    story = Story(small_plan(space={"knobs": KNOBS}, calibration=Calibration(assumed_seconds=1.0)))
    story.ask()
    story.elapsed_ms += 100_000
    story.evaluate(0, charged_ms=60_000)
    story.evaluate(1, Status.ERROR, charged_ms=20_000)
    found = asked(story).cost
    assert "; 1 min 40 s of wall clock; 1 min 20 s of device time on 2 x some processor; " in found
    assert found.endswith("; 1 failed.")


def test_what_a_person_let_pass_does_not_hold_the_answer_up() -> None:
    story = Story(small_plan(space={"knobs": KNOBS}))
    story.ask()
    for candidate in range(3):
        story.evaluate(candidate, Status.ERROR)
    fired = Fired(
        rule="crash_rate", generation=0, decision="pause", observed=0.75, limit=0.1, evidence="x"
    )
    story.say(fired, Overridden(rule="crash_rate", generation=0, reason="known"))
    assert asked(story).title == "In progress"


def test_an_assumed_time_is_no_calibration_to_pay_for() -> None:
    plan = in_two_knobs(calibration=Calibration(assumed_seconds=1.0))
    assert "calibration" not in asked(told_of(plan)).cost


def test_a_campaign_that_goes_on_is_not_judged(campaign: Path) -> None:
    cut(campaign, 9, keep_head=True)
    found = report(campaign).answer
    assert found.title == "In progress"
    assert "nothing is judged before the last one is" in found.found
    assert "intervals are not valid" in found.sure
    assert found.luck == ""
