import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from http import HTTPStatus
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import pytest

from budgets.ledger.chain import LEDGER
from orchestrator.records.recorded import Result
from orchestrator.serve import callers
from orchestrator.serve.answers import HTML, Answer, Request
from orchestrator.serve.handler import Limits
from orchestrator.serve.routes import Rhythm
from orchestrator.serve.server import Server

if TYPE_CHECKING:
    from tests.orchestrator.serve.conftest import Growing, Site

QUICK = Limits(connections=4, head_bytes=2000, head_seconds=0.3, idle_seconds=0.5)


@pytest.fixture
def quick(serve: Callable[..., Any], tmp_path: Path) -> "Iterator[Site]":
    """A server that soon loses its patience."""
    with serve(tmp_path, limits=QUICK) as site:
        yield site


def connected(site: "Site") -> socket.socket:
    return socket.create_connection(("127.0.0.1", site.server.server_port), timeout=20)


def said(site: "Site", request: bytes) -> bytes:
    """All that it answers until it ends the connection, or is asked to."""
    with connected(site) as connection:
        connection.sendall(request)
        return rest(connection)


def rest(connection: socket.socket) -> bytes:
    parts = []
    while part := connection.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


def head(path: str = "/", host: str = "localhost:1", *more: str, method: str = "GET") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *more, "Connection: close", "", ""]
    return "\r\n".join(lines).encode()


def test_it_listens_on_loopback_alone(site: "Site") -> None:
    assert site.server.server_address[0] == "127.0.0.1"
    assert site.url.startswith("http://127.0.0.1:")


@pytest.mark.parametrize("path", ["/", "/state", "/content", "/follow.js", "/nothing"])
def test_every_answer_has_its_headers(site: "Site", path: str) -> None:
    response = site.get(path)
    headers = response.headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert int(headers["Content-Length"]) == len(response.body)
    assert "Python" not in headers["Server"]


@pytest.mark.parametrize("path", ["/", "/state", "/content", "/follow.js", "/nothing"])
def test_head_answers_as_get_without_the_body(site: "Site", path: str) -> None:
    whole, head_only = site.get(path), site.get(path, "HEAD")
    assert head_only.body == b""
    assert head_only.status == whole.status
    for name in ("Content-Length", "Content-Type", "Content-Security-Policy"):
        assert head_only.headers[name] == whole.headers[name]
    assert head_only.headers.get("ETag") == whole.headers.get("ETag")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "X"])
def test_other_methods_are_refused(site: "Site", method: str) -> None:
    response = site.get("/", method)
    assert response.status == HTTPStatus.METHOD_NOT_ALLOWED
    assert response.headers["Allow"] == "GET, HEAD"


@pytest.mark.parametrize("path", ["/state", "/content", "/follow.js"])
def test_who_has_a_body_gets_no_other(site: "Site", path: str) -> None:
    tag = site.get(path).headers["ETag"]
    for known in (tag, f'"other", {tag}', f"W/{tag}"):
        response = site.get(path, If_None_Match=known)
        assert (response.status, response.body) == (HTTPStatus.NOT_MODIFIED, b"")
        assert response.headers["ETag"] == tag
    for unknown in ('"other"', "", tag.strip('"')):
        assert site.get(path, If_None_Match=unknown).status == HTTPStatus.OK


def test_a_connection_serves_one_request_after_the_other(site: "Site") -> None:
    with connected(site) as connection:
        for _ in range(3):
            connection.sendall(b"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")
        requests = [b"HEAD /follow.js HTTP/1.1\r\nHost: localhost\r\n\r\n", head(method="HEAD")]
        connection.sendall(b"".join(requests))
        assert rest(connection).count(b"HTTP/1.1 200") == 2


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST:80", "127.0.0.1:9000"])
def test_it_is_known_by_its_names_at_any_port(site: "Site", host: str) -> None:
    assert said(site, head(host=host)).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "host",
    [
        *("", "evil.example", "evil.example:8321", "127.0.0.1.evil.example", "localhost.evil"),
        *("127.0.0.1:80@evil", "localhost:port", "10.0.0.1", "[::1]:8321", "localhost:²"),
        *("127.0.0.1, evil.example", "evil.example\r\nHost: localhost"),
    ],
)
def test_a_page_of_another_name_reads_nothing(site: "Site", host: str) -> None:
    """Its owner may let that name lead to 127.0.0.1: DNS rebinding."""
    answer = said(site, head(host=host))
    assert answer.startswith(b"HTTP/1.1 403")
    assert b"Open it as http://127.0.0.1" in answer


def test_a_request_without_a_host_reads_nothing(site: "Site") -> None:
    assert said(site, b"GET / HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 403")
    assert b"Runs in" not in said(site, b"GET / HTTP/1.0\r\n\r\n")
    assert b"Runs in" not in said(site, b"GET /\r\n\r\n")


@pytest.mark.parametrize(
    ("mode", "where", "status"),
    [
        ("no-cors", "cross-site", 403),
        ("cors", "cross-site", 403),
        ("no-cors", "same-site", 403),
        ("navigate", "cross-site", 200),
        ("navigate", "none", 200),
        ("cors", "same-origin", 200),
    ],
)
def test_only_its_own_pages_read_it(site: "Site", mode: str, where: str, status: int) -> None:
    response = site.get("/", Sec_Fetch_Mode=mode, Sec_Fetch_Site=where)
    assert response.status == status


def test_a_request_with_a_body_is_refused(site: "Site") -> None:
    assert said(site, head("/", "localhost", "Content-Length: 5")).startswith(b"HTTP/1.1 413")
    chunked = head("/", "localhost", "Transfer-Encoding: chunked")
    assert said(site, chunked).startswith(b"HTTP/1.1 413")
    assert said(site, head("/", "localhost", "Content-Length: 0")).startswith(b"HTTP/1.1 200")
    twice = head("/", "localhost", "Content-Length: 0", "Content-Length: 5")
    assert said(site, twice).startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize(
    "request_bytes",
    [
        head("/" + "x" * 20_000),
        head("/", "localhost", f"X: {'x' * 20_000}"),
        b"x" * 20_000,
        head("/", "localhost", *(f"X-{n}: 1" for n in range(150))),
    ],
)
def test_a_huge_request_is_refused(site: "Site", request_bytes: bytes) -> None:
    assert said(site, request_bytes).startswith(b"HTTP/1.1 431")


@pytest.mark.parametrize(
    "request_bytes",
    [
        *(b"\r\n\r\n", b"nonsense\r\n\r\n", b"GET / HTTP/9\r\n\r\n", b"\x16\x03\x01\x02\r\n\r\n"),
        *(b"GET  / HTTP/1.1 x\r\n\r\n", b"GET / HTTP/1.1\r\nHost localhost\r\n\r\n"),
    ],
)
def test_what_is_no_request_is_answered_and_harms_nobody(
    site: "Site", request_bytes: bytes
) -> None:
    assert b"Runs in" not in said(site, request_bytes)
    assert site.get("/").status == HTTPStatus.OK


def test_who_is_slow_to_ask_is_sent_away(quick: "Site") -> None:
    with connected(quick) as silent, connected(quick) as slow:
        slow.sendall(b"GET / HT")
        assert rest(slow).startswith(b"HTTP/1.1 408")
        assert rest(silent) == b""
    assert quick.get("/").status == HTTPStatus.OK


def test_who_asks_a_byte_at_a_time_is_sent_away(quick: "Site") -> None:
    with connected(quick) as slow:
        stop = Event()

        def drip() -> None:
            with closing(slow.dup()) as end:
                while not stop.wait(0.02):
                    try:
                        end.sendall(b"G")
                    except OSError:
                        return

        dripping = Thread(target=drip)
        dripping.start()
        try:
            assert slow.recv(100).startswith(b"HTTP/1.1 408")
        finally:
            stop.set()
            dripping.join()


def test_a_client_that_vanishes_harms_nobody(
    site: "Site", capfd: pytest.CaptureFixture[str]
) -> None:
    for request in (b"", b"GET /", head()):
        connection = connected(site)
        connection.sendall(request)
        linger = (1).to_bytes(4, "little") + bytes(4)  # reset it
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        connection.close()
    assert site.get("/").status == HTTPStatus.OK
    assert capfd.readouterr().err == ""


def test_who_does_not_take_an_answer_is_let_go() -> None:
    body = b"x" * (64 << 20)

    def answer(request: Request) -> Answer:
        return Answer(HTTPStatus.OK, body, HTML)

    with Server(0, answer, QUICK) as server:
        serving = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        serving.start()
        before = set(threading.enumerate())
        address = ("127.0.0.1", server.server_port)
        with socket.create_connection(address, timeout=20) as connection:
            connection.sendall(head())
            assert connection.recv(1) == b"H"
            for thread in set(threading.enumerate()) - before:
                thread.join(20)
                assert not thread.is_alive()
            assert len(rest(connection)) < len(body)
        server.shutdown()
        serving.join()


def test_when_all_seats_are_taken_others_are_turned_away_until_one_is_free(
    serve: Callable[..., Any], tmp_path: Path
) -> None:
    with serve(tmp_path, limits=Limits(connections=3)) as site:
        taken = [connected(site) for _ in range(3)]
        for connection in taken:  # one that was answered has its seat
            connection.sendall(b"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")
        with connected(site) as late:
            answer = rest(late)
        assert answer.startswith(b"HTTP/1.1 503")
        assert b"Retry-After" in answer
        assert answer.endswith(b"try again\n")
        length = int(answer.split(b"Content-Length: ")[1].split(b"\r\n")[0])
        assert len(answer.split(b"\r\n\r\n", 1)[1]) == length
        for connection in taken:
            connection.close()
        while site.get("/").status == HTTPStatus.SERVICE_UNAVAILABLE:
            pass  # until a thread has seen that its client is gone
        assert site.get("/").status == HTTPStatus.OK


def test_another_user_of_the_machine_reads_nothing(
    site: "Site", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site.server, "knows_callers", True)
    monkeypatch.setattr(callers, "is_own", lambda client, server: False)
    answer = said(site, head())
    assert answer.startswith(b"HTTP/1.1 403")
    assert b"for the user who runs it" in answer


def test_where_nothing_tells_users_apart_all_may_read(
    site: "Site", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site.server, "knows_callers", False)
    monkeypatch.setattr(callers, "is_own", lambda client, server: False)
    assert site.get("/").status == HTTPStatus.OK


def test_a_mistake_of_ours_ends_one_connection_and_says_where(
    site: "Site", monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(request: Request) -> Answer:
        raise AssertionError("ours")

    answer = site.server.answer
    monkeypatch.setattr(site.server, "answer", fail)
    assert said(site, head()) == b""
    assert "AssertionError: ours" in capfd.readouterr().err
    monkeypatch.setattr(site.server, "answer", answer)
    assert site.get("/").status == HTTPStatus.OK


def test_a_port_that_is_taken_is_not_shared(site: "Site") -> None:
    with pytest.raises(OSError, match="Address already in use"):
        Server(site.server.server_port, site.server.answer)


READERS = 50


def readers(read: Callable[[], None]) -> list[Thread]:
    threads = [Thread(target=read) for _ in range(READERS)]
    for thread in threads:
        thread.start()
    return threads


def test_readers_of_a_run_leave_it_as_it_was(
    serve: Callable[..., Any], grow: "Callable[..., Growing]", tmp_path: Path
) -> None:
    run = grow(records=12)
    before = (run.directory / LEDGER).read_bytes()
    statuses: list[int] = []
    with serve(tmp_path / "runs", Rhythm()) as site:
        address = site.address("growing")

        def read() -> None:
            for path in (address, f"{address}/state", f"{address}/content", "/", "/state"):
                statuses.append(site.get(path).status)

        for thread in readers(read):
            thread.join()
    assert statuses == [200] * 5 * READERS
    assert os.listdir(run.directory) == [LEDGER]
    assert (run.directory / LEDGER).read_bytes() == before


def test_a_run_under_the_eyes_of_many_comes_to_what_it_would_have(
    serve: Callable[..., Any],
    run_search: Callable[..., Result],
    found: Callable[[Path], Any],
    finished_run: Path,
    tmp_path: Path,
) -> None:
    over, statuses = Event(), list[int]()
    with serve(tmp_path) as site:

        def read() -> None:
            while not over.is_set():
                statuses.append(site.get("/").status)
                for run in site.routes.catalogue.runs():
                    statuses.append(site.get(f"/{run.id}/state").status)

        threads = readers(read)
        result = run_search(
            tmp_path, settings={"noise": 0.001, "nan_radius": 0.8425}, evaluation_seed=6
        )
        over.set()
        for thread in threads:
            thread.join()
    assert set(statuses) == {200}
    assert len(statuses) >= READERS
    assert found(result.directory) == found(finished_run)
