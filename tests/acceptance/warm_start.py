"""Start commands of the product quickly: by forking an interpreter that has already imported it.

This process runs `--help` and imports what takes longest of what commands depend on, then forks for
every request that it reads: a line of JSON with the arguments, the directory, the environment, the
files for stdout and stderr, and the seconds that it may take. It answers with the exit code.
"""

import atexit
import gc
import importlib
import json
import os
import runpy
import signal
import sys
import threading
from contextlib import redirect_stdout, suppress
from typing import Any


def run_command(arguments: list[str]) -> None:
    sys.argv = ["orchestrator", *arguments]
    runpy.run_module("orchestrator", run_name="__main__", alter_sys=True)


def become(request: list[Any]) -> None:
    """Turn this forked process into the requested command. Does not return normally."""
    arguments, directory, environment, streams, patience = request
    os.setsid()
    signal.setitimer(signal.ITIMER_REAL, patience)  # ends it
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[0] = directory
    for number, path in enumerate([os.devnull, *streams]):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC), number)
    os.closerange(3, 256)
    try:
        run_command(arguments)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            leave(end.code or 0)
        raise


def leave(code: int) -> None:
    """End as an interpreter does, but for freeing every object: that takes half a second."""
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.current_thread():
            thread.join()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def serve() -> None:
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), suppress(SystemExit):
        run_command(["--help"])
    for name in ("cma", "jinja2", "numpy"):  # a second, where a command needs them
        with suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()  # no child looks for garbage among what all of them share
    for line in sys.stdin:
        if (pid := os.fork()) == 0:
            become(json.loads(line))
            return
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


if __name__ == "__main__":
    serve()
