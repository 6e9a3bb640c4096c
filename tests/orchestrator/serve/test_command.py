import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.cli.serve import served

if TYPE_CHECKING:
    from tests.conftest import Cli, Command


def test_a_directory_or_a_run_is_served(run: Path, tmp_path: Path) -> None:
    root = tmp_path / "artifacts/cmaes"
    assert served(None, root) == root
    assert served(str(root), Path("elsewhere")) == root
    assert served(str(run), root) == run
    assert served(run.name, root) == run


def test_a_campaign_is_served_by_its_name(tmp_path: Path) -> None:
    campaign = tmp_path / "campaign/sizes"
    campaign.mkdir(parents=True)
    assert served("sizes", tmp_path) == campaign


def test_a_place_that_is_not_there_is_one_clear_error(command: "Command") -> None:
    answer = command("serve", "--runs-dir", "nowhere")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("error: no directory nowhere: begin a run, or name another with")
    answer = command("serve", "min-sphere-s7")
    assert answer.code == 2
    assert "no run 'min-sphere-s7' in artifacts/cmaes" in answer.err


def test_a_port_that_is_taken_is_one_clear_error_with_the_way_on(
    command: "Command", tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        answer = command("serve", "--runs-dir", str(tmp_path), "--port", str(port))
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == (
        f"error: --port: {port} on 127.0.0.1 cannot be had (Address already in use). If another "
        f"`serve` has it, open http://127.0.0.1:{port}/; else say --port 0, or another number\n"
    )


@pytest.mark.parametrize("port", ["-1", "65536", "http"])
def test_what_is_no_port_is_refused(command: "Command", port: str) -> None:
    assert command("serve", "--port", port).code == 2


def test_no_other_address_is_offered(command: "Command") -> None:
    assert command("serve", "--host", "0.0.0.0").code == 2  # noqa: S104 - refused


@contextmanager
def started(cli: "Cli", *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    process = cli.start("serve", *arguments)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def shown(cli: "Cli", run: Path) -> Iterator["tuple[subprocess.Popen[str], dict[str, object]]"]:
    """A `serve` of the one run there is, and what it says of itself."""
    with started(cli, run.name, "--port", "0", "--json") as process:
        assert process.stdout is not None
        text = process.stdout.readline()
        while not text.endswith("}\n") and (line := process.stdout.readline()):
            text += line
        yield process, json.loads(text)


def test_it_says_where_it_is_and_ends_cleanly(
    shown: "tuple[subprocess.Popen[str], dict[str, object]]", run: Path
) -> None:
    process, said = shown
    assert said["pid"] == process.pid
    url = str(said["url"])
    assert url.startswith(f"http://127.0.0.1:{said['port']}/")
    connection = HTTPConnection("127.0.0.1", int(str(said["port"])), timeout=20)
    connection.request("GET", url.rpartition(":")[2].lstrip("0123456789"))
    assert b"Smoke test" in connection.getresponse().read()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    connection.close()
    assert (process.returncode, out, err) == (0, "", "")


def test_it_says_in_words_where_it_is_and_how_to_tunnel(cli: "Cli", run: Path) -> None:
    with started(cli, "--port", "0") as process:
        assert process.stdout is not None
        first, second = process.stdout.readline(), process.stdout.readline()
    assert first.startswith("Showing the runs in artifacts/cmaes at http://127.0.0.1:")
    port = first.strip().rstrip("/").rpartition(":")[2]
    assert (
        second == f"From another machine: ssh -N -L {port}:127.0.0.1:{port} HOST, then the same.\n"
    )
