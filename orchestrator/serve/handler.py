"""One connection: requests one after the other, each within its size and time."""

from collections.abc import Callable
from dataclasses import dataclass
from email.message import Message
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from time import monotonic

from orchestrator.serve import callers
from orchestrator.serve.answers import Answer, Request, said, unless_known

NAMES = ("127.0.0.1", "localhost")
"""By which a browser may know us. A page of somebody else's whose name leads here has its own."""

METHODS = "GET, HEAD"

_END = b"\r\n\r\n"


@dataclass(frozen=True)
class Limits:
    """What one client may take."""

    connections: int = 128
    head_bytes: int = 16 << 10
    head_seconds: float = 5.0  # from a request's first byte to its last
    idle_seconds: float = 15.0  # without a request; and for an answer to be taken


class Answering(ThreadingHTTPServer):
    """A server as its handlers know it."""

    answer: Callable[[Request], Answer]
    limits: Limits
    knows_callers: bool


class Handler(BaseHTTPRequestHandler):
    """Reads requests, asks the server's `answer`, writes what it says."""

    server: Answering
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "orchestrator", ""
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body leave together

    def setup(self) -> None:
        super().setup()
        self._unread = b""

    def handle(self) -> None:
        if self.server.knows_callers and not callers.is_own(
            self.client_address, self.connection.getsockname()
        ):
            self._start(b"GET / HTTP/1.1")
            self._close(HTTPStatus.FORBIDDEN, "This is for the user who runs it, on this machine.")
            return
        super().handle()

    def handle_one_request(self) -> None:
        """The next one, which has arrived as a whole before it is looked at."""
        self.close_connection = True
        head = self._head()
        if not head.endswith(_END):
            if head:
                self._start(head)
                self._close(*self._unfinished(head))
            return
        self.rfile = BytesIO(head)
        super().handle_one_request()

    def _head(self) -> bytes:
        """A request up to its empty line, or as far as it came in time and in size."""
        limits, began = self.server.limits, 0.0
        while (end := self._unread.find(_END)) < 0:
            if len(self._unread) > limits.head_bytes:
                return self._unread
            left = began + limits.head_seconds - monotonic() if began else limits.idle_seconds
            if left <= 0 or not (more := self._receive(left)):
                return self._unread
            began = began or monotonic()
            self._unread += more
        size = end + len(_END)
        head, self._unread = self._unread[:size], self._unread[size:]
        self.connection.settimeout(limits.idle_seconds)
        return head if size <= limits.head_bytes else head[:-1]

    def _receive(self, seconds: float) -> bytes:
        self.connection.settimeout(seconds)
        try:
            data: bytes = self.connection.recv(8192)
            return data
        except TimeoutError:
            return b""

    def _unfinished(self, head: bytes) -> tuple[HTTPStatus, str]:
        self.connection.settimeout(self.server.limits.idle_seconds)
        if len(head) >= self.server.limits.head_bytes:
            return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "The request is too large."
        return HTTPStatus.REQUEST_TIMEOUT, "The request did not arrive as a whole."

    def _start(self, head: bytes) -> None:
        """As if a request had been read, to answer what is none."""
        self.requestline = head.split(b"\r\n", 1)[0].decode("latin-1")
        self.command, self.request_version = "GET", self.protocol_version

    def do_GET(self) -> None:
        if refused := refusal(self.headers):
            self._close(*refused)
            return
        known = ", ".join(self.headers.get_all("If-None-Match", []))
        request = Request(self.path.partition("?")[0], known)
        self._write(unless_known(request, self.server.answer(request)))

    def do_HEAD(self) -> None:
        self.do_GET()

    def send_error(
        self,
        code: int,
        message: str | None = None,
        explain: str | None = None,  # noqa: ARG002 - its signature there
    ) -> None:
        """What the standard library objects to, in our words and under our headers."""
        if code == HTTPStatus.NOT_IMPLEMENTED:
            status, message = HTTPStatus.METHOD_NOT_ALLOWED, f"Only {METHODS}: nothing is changed."
        else:
            status = HTTPStatus(code)
        self._close(status, message or status.phrase)

    def _close(self, status: HTTPStatus, text: str) -> None:
        """Answer, and end the connection: where the next request begins is not known."""
        self.close_connection = True
        self._write(said(status, text))

    def _write(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in _headers(answer).items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD" and answer.status != HTTPStatus.NOT_MODIFIED:
            self.wfile.write(answer.body)
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Nothing: the terminal is the person's."""


def refusal(headers: Message) -> tuple[HTTPStatus, str] | None:
    """Why a request is not answered, if it is not."""
    sizes = headers.get_all("Content-Length", [])
    if any(size.strip() != "0" for size in sizes) or "Transfer-Encoding" in headers:
        return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "Nothing is taken: a request has no body."
    hosts = headers.get_all("Host", [])
    if len(hosts) != 1 or not _is_ours(hosts[0]):
        return HTTPStatus.FORBIDDEN, "Open it as http://127.0.0.1 or http://localhost, with a port."
    site, mode = headers.get("Sec-Fetch-Site"), headers.get("Sec-Fetch-Mode")
    if site in ("cross-site", "same-site") and mode != "navigate":
        return HTTPStatus.FORBIDDEN, "Only its own pages may read it."
    return None


def _is_ours(host: str) -> bool:
    """Whatever the port: a tunnel may have another one at its other end."""
    name, _, port = host.strip().lower().partition(":")
    return name in NAMES and (not port or (port.isascii() and port.isdecimal()))


def _headers(answer: Answer) -> dict[str, str]:
    own = {
        "ETag": f'"{answer.tag}"' if answer.tag else "",
        "Location": answer.location,
        "Allow": METHODS if answer.status == HTTPStatus.METHOD_NOT_ALLOWED else "",
    }
    if answer.status != HTTPStatus.NOT_MODIFIED:
        own |= {"Content-Type": answer.kind, "Content-Length": str(len(answer.body))}
    return {
        **{name: value for name, value in own.items() if value},
        "Content-Security-Policy": answer.policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
    }
