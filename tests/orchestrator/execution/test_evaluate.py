"""What an attempt is told, and how its outcome names its device."""

import pytest

from orchestrator.execution.evaluate import device_name


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
