"""`check proxy`: whether a shorter evaluation ranks as the full one; and a search that is short."""

from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from orchestrator.records.runs import load_state
from orchestrator.verify import verify

if TYPE_CHECKING:
    from tests.conftest import Command

QUICK = ("--objective", "sphere", "--executor", "inline", "--workers", "1")


def test_a_proxy_that_ranks_otherwise_is_not_good_enough(command: "Command") -> None:
    document = orjson.loads(command("check", "proxy", *QUICK, "--set", "bias=-3", "--json").out)
    assert not document["proxy"]["holds"]
    assert verify(Path(document["directory"])).divergence is None


def test_a_search_is_short_only_once_a_check_has_shown_the_same_ranking(
    command: "Command", tmp_path: Path
) -> None:
    few = ("--set", "search.population=8", "--max-evals", "24", "--set", "noise=0.001")
    words = ("phase1", "--tier", "target", *QUICK, *few, "--assume-eval-seconds", "1")
    short = (*words, "--set", "search.proxy=0.25")
    refused = command(*short)
    assert refused.code == 2
    assert "check proxy --set search.proxy=0.25 with the same" in " ".join(refused.err.split())
    assert not (tmp_path / "artifacts/cmaes/phase1").exists()

    checking = ("check", "proxy", *QUICK, "--set", "noise=0.001")
    assert command(*checking, "--set", "search.proxy=0.5").code == 0
    assert command(*short).code == 2  # another length was shown
    assert command(*checking).code == 0
    assert command(*short).code in (0, 4)
    run = tmp_path / "artifacts/cmaes/phase1/target-sphere-s1"
    state = load_state(run)
    assert state.plan.objective.settings["effort"] == 0.25
    assert state.plan.confirmation is not None
    assert state.plan.confirmation.long_run is not None
    assert state.plan.confirmation.long_run.variant.settings == {"effort": 1.0}
    assert verify(run).divergence is None
