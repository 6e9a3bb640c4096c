"""A listening socket on loopback, with a seat for each connection: whoever is slow loses it."""

import socketserver
import sys
from collections.abc import Callable
from contextlib import suppress
from threading import BoundedSemaphore
from typing import Any

from orchestrator.serve import callers
from orchestrator.serve.answers import Answer, Request
from orchestrator.serve.handler import Answering, Handler, Limits

HOST = "127.0.0.1"
"""And no other: what is shown is for whoever has the run."""

_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nConnection: close\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\nContent-Length: 28\r\n\r\n"
    b"Too many readers; try again\n"
)


class Server(Answering):
    """Answers GET and HEAD on loopback: `serve_forever`, then `server_close`.

    Raises OSError where the port cannot be had.
    """

    daemon_threads = True
    allow_reuse_port = False
    request_queue_size = 128

    def __init__(
        self, port: int, answer: Callable[[Request], Answer], limits: Limits | None = None
    ) -> None:
        self.answer = answer
        self.limits = limits or Limits()
        self.knows_callers = callers.can_tell()
        self._seats = BoundedSemaphore(self.limits.connections)
        super().__init__((HOST, port), Handler)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_port}"

    def server_bind(self) -> None:
        """As `HTTPServer` does, without asking a name server what this machine is called."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.socket.getsockname()[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """In a thread of its own, while there is a seat."""
        if not self._seats.acquire(blocking=False):
            _turn_away(request)
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread to be had: the seat is free again
            self._seats.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._seats.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no error."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def _turn_away(connection: Any) -> None:
    """Say so without waiting for anything."""
    connection.setblocking(False)
    with suppress(OSError):
        connection.sendall(_FULL)
    with suppress(OSError):
        connection.recv(1 << 16)  # what is left unread would take the answer with it
