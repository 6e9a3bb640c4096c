"""What starting up costs: planning must not import an engine or a training library."""

import pytest

from tests.imported import HEAVY, imported_by

NANOCHAT = (
    "from objectives.nanochat.objective import NanochatObjective as N; "
    "o = N.from_settings('nanochat', {}); o.space; o.spec"
)


@pytest.mark.parametrize(
    "code",
    [
        "import objectives.registry",
        "import objectives.analytic",
        "import objectives.nanochat.data",
        "import orchestrator.cli.measure",
        NANOCHAT,
        "import orchestrator.cli.app",
    ],
)
def test_nothing_heavy_is_imported_before_it_is_needed(code: str) -> None:
    assert not imported_by(code), HEAVY
