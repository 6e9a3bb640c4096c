"""Small campaigns, carried out in this process."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from budgets.events import Owner
from budgets.ledger import HEAD, LEDGER, read
from orchestrator.config import Layers, resolve
from orchestrator.execution.engine import Engine
from orchestrator.execution.signals import SignalStop
from orchestrator.look.reports import ReportFiles
from orchestrator.matrix.campaign import campaign_from, campaign_matrix
from orchestrator.matrix.matrix import carry_out
from orchestrator.records.runs import Result
from orchestrator.run.session import Session
from tests.asking import config_for

FACTORS: dict[str, Any] = {"noise": [0.01, 0.02], "dimension": [2, 3]}


class Uninterrupted(SignalStop):
    """This process's signal handlers stay as they are."""

    def install(self) -> None:
        pass


def trained(
    root: Path,
    factors: Mapping[str, Any] = FACTORS,
    seeds: Sequence[int] = (1, 2, 3),
    owner: Owner | None = None,
    name: str = "toy",
    *,
    control: bool = True,
    engine: Engine | None = None,
) -> Result:
    """A campaign of noisy spheres and its control; or taken up again."""
    said = {
        "objective": "sphere",
        "training.dimension": 2,
        "campaign.name": name,
        "campaign.seeds": list(seeds),
        "campaign.controls": control,
        **{f"factors.{factor}": levels for factor, levels in factors.items()},
    }
    config = resolve(Layers(flags={key: (value, "--set") for key, value in said.items()}))
    campaign = campaign_from(config)
    session = Session(
        root,
        engine or Engine(kind="inline", workers=1),
        observe=lambda state, event: None,
        say=lambda text: None,
        stop=Uninterrupted(),
        reports=ReportFiles(),
    )
    if owner is not None:
        session.owner = lambda: owner
    request = campaign_matrix(config_for("campaign", "min", config.tuned), campaign)
    with session:
        return carry_out(request, session, session.engine.slots())


@pytest.fixture
def train() -> Callable[..., Result]:
    return trained


def shortened(directory: Path, settled: int) -> None:
    """Its ledger as it was when so many evaluations were settled and one more was in flight."""
    kept, ends = b"", 0
    for record in read(directory / LEDGER):
        kept += record.line + b"\n"
        ends += record.event.kind == "settled"
        if ends == settled and record.event.kind == "reserved":
            break
    (directory / LEDGER).write_bytes(kept)
    (directory / HEAD).unlink()


@pytest.fixture
def cut() -> Callable[[Path, int], None]:
    return shortened


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished campaign of two levels of noise and the control on two seeds. Untouched."""
    return trained(tmp_path_factory.mktemp("made"), {"noise": [0.01, 0.02]}, (1, 2)).directory
