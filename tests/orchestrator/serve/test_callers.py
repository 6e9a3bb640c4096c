import os
import socket
from pathlib import Path

import pytest

from orchestrator.serve.callers import can_tell, is_own

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
CLIENT, SERVER = ("127.0.0.1", 0xBEEF), ("127.0.0.1", 0x2081)


def hexadecimal(port: int) -> str:
    return f"{int.from_bytes(bytes([127, 0, 0, 1]), 'little'):08X}:{port:04X}"


def line(local: str, remote: str, owner: int) -> str:
    return f"   1: {local} {remote} 01 00000000:00000000 00:00000000 00000000  {owner}  0 1\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "tcp"


@pytest.mark.parametrize(
    ("owner", "own"), [(os.getuid(), True), (0, True), (os.getuid() + 1, False)]
)
@pytest.mark.parametrize("prefix", ["", "0000000000000000FFFF0000"])
def test_a_connection_is_its_owners(table: Path, prefix: str, owner: int, own: bool) -> None:
    client, server = f"{prefix}{hexadecimal(CLIENT[1])}", f"{prefix}{hexadecimal(SERVER[1])}"
    others = line(server, client, 0) + line(client, hexadecimal(0x1111), 0)
    table.write_text(HEAD + others + line(client, server, owner))
    assert is_own(CLIENT, SERVER, (table,)) is own


def test_a_connection_that_is_not_there_is_nobodys(table: Path) -> None:
    table.write_text(HEAD)
    assert not is_own(CLIENT, SERVER, (table, table.with_name("missing")))


def test_it_says_where_nothing_tells_whose_a_connection_is(table: Path) -> None:
    assert not can_tell((table,))
    assert not can_tell(())


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="only Linux says it")
def test_our_own_connections_are_ours() -> None:
    assert can_tell()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = listener.getsockname()
        with socket.create_connection(server) as client:
            assert is_own(client.getsockname(), server)
