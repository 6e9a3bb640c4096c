"""An engine says beforehand what its start takes."""

import pytest

from orchestrator.execution.engine import Engine


@pytest.mark.parametrize(
    ("engine", "joined", "says"),
    [
        (Engine(), "", True),
        (Engine(address="local"), "head:6379", True),
        (Engine(address="head:6379"), "", False),
        (Engine(), "head:6379", False),
        (Engine("local"), "", False),
        (Engine("inline"), "", False),
    ],
)
def test_only_a_ray_of_its_own_asks_for_patience(
    engine: Engine, joined: str, says: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", joined)
    assert ("--executor local starts at once" in engine.patience) is says
