"""A small process that forks a supervisor per request: `python -m orchestrator...forkserver`.

It has imported what evaluations need, has one thread, and never touches CUDA, so a fork of it
starts an evaluation in milliseconds. Requests (`launch.Launch`, one line of JSON each) come on
stdin; its end ends the server. Its death does not touch the supervisors it has forked: each has a
session of its own. Ray kills the children of an actor that ends, which is this server, not theirs.
"""

import argparse
import gc
import importlib
import os
import signal
import sys

from orchestrator.execution import processes
from orchestrator.execution.supervisor import supervise

READY, MISSING = b"ready", b"missing "
"""What it reports; after the second the package that is not installed."""


def main() -> None:
    """Serve until stdin ends. In a forked supervisor: supervise, then exit."""
    parser = argparse.ArgumentParser(prog="python -m orchestrator.execution.forkserver")
    parser.add_argument("--preload", default="", help="modules, separated by commas")
    parser.add_argument("--ready", type=int, required=True, help="descriptor to report to, once")
    parser.add_argument("--notify", type=int, required=True, help="descriptor to write to")
    parser.add_argument("--lifeline", type=int, required=True, help="descriptor to watch")
    parser.add_argument("--lease", type=int, help="descriptor of a lease to watch")
    options = parser.parse_args()
    for name in ("orchestrator.execution.child", *filter(None, options.preload.split(","))):
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            os.write(options.ready, MISSING + str(error.name).encode())
            raise
    gc.collect()
    gc.freeze()  # keeps the forks from copying every page at their first collection
    processes.gather_into_huge_pages()
    os.write(options.ready, READY)
    os.close(options.ready)
    inbox = serve(requests=0)
    if inbox is not None:
        supervise(inbox, options.notify, options.lifeline, options.lease)
    sys.stdout.flush()
    os._exit(0)


def serve(requests: int) -> int | None:
    """None when the requests end; in a supervisor just forked, where its launch will come.

    One supervisor is always forked ahead and waits for its launch, so that a request does not wait
    for a fork. It ends with the server if no request comes.
    """
    # Supervisors are the kernel's to reap, also where process 1 is one that never does.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    pending = b""
    while True:
        inbox, outbox = os.pipe()
        if os.fork() == 0:
            os.setsid()
            os.close(outbox)
            _forget(requests)
            return inbox
        os.close(inbox)
        while b"\n" not in pending:
            chunk = os.read(requests, 1 << 16)
            if not chunk:
                return None
            pending += chunk
        line, _, pending = pending.partition(b"\n")
        os.write(outbox, line)
        os.close(outbox)


def _forget(requests: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, requests)
    os.close(null)


if __name__ == "__main__":
    main()
