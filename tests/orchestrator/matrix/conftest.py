"""Small campaigns, carried out in this process."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from orchestrator.config import Layers, resolve
from orchestrator.matrix.campaign import campaign_from, campaign_matrix
from orchestrator.matrix.matrix import carry_out
from orchestrator.records.runs import Result
from tests.asking import config_for
from tests.conftest import make_session

FACTORS: dict[str, Any] = {"noise": [0.01, 0.02], "dimension": [2, 3]}


def trained(
    root: Path,
    factors: Mapping[str, Any] = FACTORS,
    seeds: Sequence[int] = (1, 2, 3),
    *,
    control: bool = True,
) -> Result:
    """A campaign of noisy spheres and its control; or resumed."""
    said = {
        "objective": "sphere",
        "training.dimension": 2,
        "campaign.name": "toy",
        "campaign.seeds": list(seeds),
        "campaign.controls": control,
        **{f"factors.{factor}": levels for factor, levels in factors.items()},
    }
    config = resolve(Layers(flags={key: (value, "--set") for key, value in said.items()}))
    request = campaign_matrix(config_for("campaign", "min", config.tuned), campaign_from(config))
    with make_session(root) as session:
        return carry_out(request, session, session.engine.slots())


@pytest.fixture
def train() -> Callable[..., Result]:
    return trained


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished campaign of two levels of noise and the control on two seeds. Untouched."""
    return trained(tmp_path_factory.mktemp("made"), {"noise": [0.01, 0.02]}, (1, 2)).directory
