"""A campaign's ledger is believed only as far as its objective and the attempts' own files agree."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from objectives import registry
from objectives.api import ObjectiveSpec
from orchestrator.campaign.conditions import Cell, condition
from orchestrator.campaign.verify import as_the_objective_has_it
from orchestrator.recorded import Result
from orchestrator.verify import verify
from orchestrator.verify_panels import DivergedError

Train = Callable[..., Result]
Lines = list[dict[str, Any]]
Tamper = Callable[[Path, Callable[[Lines], None]], None]


def test_what_nobody_touched_holds(train: Train, tmp_path: Path) -> None:
    found = verify(train(tmp_path).directory)
    assert found.divergence is None
    assert "conditions: 5 are the objective's, as 15 attempts say" in found.held


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("settings", {"noise": 0.011, "dimension": 2}, "another configuration than"),
        ("settings", {"noise": 7.0}, "noise"),
        ("knobs", {"x0": 0.7, "x1": 0.0}, "has knobs {'x0': 0.7, 'x1': 0.0}, its settings give"),
    ],
)
def test_a_forged_condition_is_found(
    train: Train, tamper: Tamper, tmp_path: Path, field: str, value: Any, words: str
) -> None:
    directory = train(tmp_path).directory
    (directory / "reports").mkdir(exist_ok=True)

    def forge(lines: Lines) -> None:
        lines[0]["event"]["plan"]["campaign"]["conditions"][0][field] = value

    tamper(directory, forge)
    found = verify(directory)
    assert found.divergence is not None
    assert words in found.divergence


def test_a_forged_length_is_found() -> None:
    objective = registry.load(ObjectiveSpec(name="nanochat", settings={"target_flops": 3e10}))
    own = condition(objective, Cell("long", {"target_flops": 2.4e11}))
    as_the_objective_has_it(objective, own)
    with pytest.raises(DivergedError, match="is 1.5 times as long, its settings give"):
        as_the_objective_has_it(objective, own.model_copy(update={"length": 1.5}))
