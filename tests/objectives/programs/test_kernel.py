"""What the kernel says of a machine's memory."""

from pathlib import Path

import pytest

from objectives.process import memory_bytes


@pytest.mark.parametrize(
    ("limit", "used", "expected"),
    [
        ("memory.max", "memory.current", (1 << 20, 3 << 18)),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", (1 << 20, 3 << 18)),
    ],
)
def test_a_containers_limit_counts_where_it_is_less_than_the_machine(
    tmp_path: Path, limit: str, used: str, expected: tuple[int, int]
) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / limit).write_text(f"{1 << 20}\n")
    (tmp_path / used).write_text(f"{1 << 18}\n")
    assert memory_bytes(tmp_path) == expected


def test_no_limit_leaves_the_machines_memory(tmp_path: Path) -> None:
    everything = memory_bytes(tmp_path)
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("1\n")
    assert memory_bytes(tmp_path)[0] == everything[0] > 1 << 20
