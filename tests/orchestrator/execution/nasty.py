"""A program that misbehaves on request, run in place of an evaluation.

`settings["do"]` of the attempt names one of the functions below. A fork server that preloads this
module runs `main` in every evaluation's process.
"""

# ruff: noqa: T201 - a program that prints

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from orchestrator.execution import trainer


def main(attempt: Any, _device: str, _threads: int) -> None:
    config = json.loads((attempt.directory / "config.json").read_text())
    globals()[config["objective"]["settings"]["do"]](config)


trainer.main = main  # type: ignore[assignment]


def finish(config: dict[str, Any]) -> None:
    report = {"attempt_id": config["attempt_id"], "status": "ok", "measurement": {"score": 1.5}}
    Path("measurement.json").write_text(json.dumps(report))


def write(config: dict[str, Any]) -> None:
    content = config["objective"]["settings"]["content"]
    Path("measurement.json").write_text(content.replace("ID", config["attempt_id"]))


def literal(config: dict[str, Any]) -> None:
    """Writes down what has reached it."""
    value = config["objective"]["settings"]["value"]
    Path("received.txt").write_text(value, encoding="utf-8", newline="")
    finish(config)


def facts(config: dict[str, Any]) -> None:
    found = {
        "fds": sorted(int(name) for name in os.listdir("/proc/self/fd")),
        "stdin": os.readlink("/proc/self/fd/0"),
        "cwd": os.getcwd(),
        "environment": {name: os.environ.get(name) for name in _NAMES},
        "visible_mark": f"ATTEMPT_ID={config['attempt_id']}".encode()
        in Path("/proc/self/environ").read_bytes().split(b"\0"),
        "oom_score_adj": int(Path("/proc/self/oom_score_adj").read_text()),
        "leads_its_group": os.getpgid(0) == os.getpid(),
        "ignored": [name.name for name in signal.Signals if _is_ignored(name)],
    }
    Path("facts.json").write_text(json.dumps(found))
    finish(config)


_NAMES = ("ATTEMPT_ID", "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS")


def _is_ignored(signum: signal.Signals) -> bool:
    status = Path("/proc/self/status").read_text()
    mask = next(line for line in status.splitlines() if line.startswith("SigIgn")).split()[1]
    # Python itself ignores SIGPIPE and SIGXFSZ when an interpreter starts.
    return bool(int(mask, 16) >> (signum - 1) & 1) and signum.name not in ("SIGPIPE", "SIGXFSZ")


def hang(config: dict[str, Any]) -> None:
    _note(os.getpid())
    while True:
        time.sleep(60)


def resist(config: dict[str, Any]) -> None:
    """Ignores SIGTERM, and so do a plain child and a daemon in a session of its own."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _family()
    hang(config)


def tidy(config: dict[str, Any]) -> None:
    """Leaves when it is asked to, and says so."""

    def leave(*_: object) -> None:
        Path("tidied").touch()
        os._exit(0)

    signal.signal(signal.SIGTERM, leave)
    hang(config)


def finish_then_hang(config: dict[str, Any]) -> None:
    finish(config)
    hang(config)


def flood(config: dict[str, Any]) -> None:
    print("the first line")
    block = b"x" * 1023 + b"\n"
    sys.stdout.flush()
    for _ in range(1024 * int(config["objective"]["settings"]["mib"])):
        os.write(1, block)
    while os.fstat(1).st_size != config["limits"]["log_bytes"]:  # what is written is being dropped
        time.sleep(0.01)
    print("the last line")
    finish(config)


def chatter(config: dict[str, Any]) -> None:
    """Runs for longer than the stall limit, with output, heartbeats, CPU time or nothing."""
    for _ in range(12):
        time.sleep(0.15)
        by = config["objective"]["settings"].get("by", "output")
        if by == "CPU time":
            sum(range(3_000_000))
        if by == "output":
            print("still there", flush=True)
        elif by == "heartbeats":
            with Path("metrics.jsonl").open("a") as file:
                file.write("{}\n")
    finish(config)


def eat(config: dict[str, Any]) -> None:
    """Takes memory in a child, 16 MiB every 20 ms, until it is stopped."""
    if os.fork() == 0:
        eaten: list[bytes] = []
        while len(eaten) < 40:
            eaten.append(b"x" * (16 << 20))
            time.sleep(0.02)
    hang(config)


def exit_with_3(config: dict[str, Any]) -> None:
    print("something broke", file=sys.stderr, flush=True)
    os._exit(3)


def _note(pid: int) -> None:
    with Path("pids").open("a") as file:
        file.write(f"{pid}\n")


def _family() -> None:
    child = os.fork()
    if child == 0:
        time.sleep(600)
        os._exit(0)
    _note(child)
    middle = os.fork()
    if middle == 0:
        os.setsid()
        if daemon := os.fork():
            _note(daemon)
            os._exit(0)
        time.sleep(600)
        os._exit(0)
    os.waitpid(middle, 0)
