"""How an outcome names its device, and which times it may have."""

from math import inf, nan

import pytest
from pydantic import ValidationError

from orchestrator.execution.evaluate import Outcome, device_name


@pytest.mark.parametrize(
    ("gpu_id", "host", "name"),
    [
        (None, "", "cpu"),
        ("3", "", "3"),
        (None, "node7", "cpu on node7"),
        ("3", "node7", "3 on node7"),
    ],
)
def test_a_device_is_named_with_its_host_where_there_are_several(
    gpu_id: str | None, host: str, name: str
) -> None:
    assert device_name(gpu_id, host) == name


@pytest.mark.parametrize("seconds", [-1.0, nan, inf, 1e13])
@pytest.mark.parametrize("field", ["seconds", "startup_seconds", "cpu_seconds"])
def test_a_time_that_nobody_can_have_measured_is_no_outcome(field: str, seconds: float) -> None:
    with pytest.raises(ValidationError, match=field):
        Outcome.model_validate({"attempt_id": "a", "status": "ok", "seconds": 1.0, field: seconds})
