"""A small campaign, carried out in this process."""

from pathlib import Path

import pytest

from orchestrator.config import resolve
from orchestrator.matrix.campaign import campaign_from, campaign_matrix
from orchestrator.matrix.carry_out import carry_out
from tests.asking import config_for
from tests.conftest import make_session


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished campaign of two levels of noise and the control on two seeds. Untouched."""
    said = {
        "objective": "sphere",
        "training.dimension": 2,
        "campaign.name": "toy",
        "campaign.seeds": [1, 2],
        "factors.noise": [0.01, 0.02],
    }
    config = resolve(flags={key: (value, "--set") for key, value in said.items()})
    request = campaign_matrix(config_for("campaign", "min", config.tuned), campaign_from(config))
    with make_session(tmp_path_factory.mktemp("made")) as session:
        return carry_out(request, session, session.engine.slots()).directory
