"""Whose process has connected: runs are readable by their owner alone, and so is their page.

Anyone on this machine can reach a port on loopback. Linux says to whom each connection belongs;
where nothing says so, everybody on the machine may read.
"""

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

Address = tuple[str, int]

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
"""Connections with their owners: the second has those of clients that speak IPv6 too."""

LOOKS = 3
"""A table may miss a line while others change it: one that is not there is looked for again."""


def is_own(client: Address, server: Address, tables: tuple[Path, ...] = TABLES) -> bool:
    """Whether the process at `client` is this user's, or root's. Both addresses are IPv4."""
    for _ in range(LOOKS):
        for owner in _owners(client, server, tables):
            return owner in (os.getuid(), 0)
    return False


def can_tell(tables: tuple[Path, ...] = TABLES) -> bool:
    """Whether this system says whose a connection is: asked about one to ourselves."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = listener.getsockname()
        with socket.create_connection(server, timeout=5) as own:
            return is_own(own.getsockname(), server, tables)


def _owners(client: Address, server: Address, tables: tuple[Path, ...]) -> Iterator[int]:
    """The client's end of the connection has the client's owner."""
    wanted = [_hexadecimal(client), _hexadecimal(server)]
    for table in tables:
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if [place[-13:] for place in fields[1:3]] == wanted:
                yield int(fields[7])


def _hexadecimal(address: Address) -> str:
    """As the tables have it, in both of which it is the end of the field."""
    host, port = address
    return f"{int.from_bytes(socket.inet_aton(host), sys.byteorder):08X}:{port:04X}"
