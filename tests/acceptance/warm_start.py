"""Start commands of the product quickly: by forking an interpreter that has already imported it.

A fresh `python -m orchestrator` spends most of a short command's time on imports. This process
runs the command once (`--help`) and imports what takes longest of what it depends on, then forks
for every request it reads: one JSON object per line with `arguments`, `directory`, `environment`,
`stdout` and `stderr` (paths); the answers are two lines, the child's pid and its exit code. A child
runs the module as `python -m orchestrator` does.
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

MODULE = "orchestrator"
SLOW_TO_IMPORT = ("cma", "jinja2", "numpy")  # a second, where a command needs them


def run_command(arguments: list[str]) -> None:
    sys.argv = [MODULE, *arguments]
    runpy.run_module(MODULE, run_name="__main__", alter_sys=True)


def become(request: dict[str, Any]) -> None:
    """Turn this forked process into the requested command. Does not return normally."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(request["directory"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.path[0] = request["directory"]
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    for stream, name in ((1, "stdout"), (2, "stderr")):
        file = os.open(request[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, stream)
    os.closerange(3, 256)
    try:
        run_command(request["arguments"])
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
    for name in SLOW_TO_IMPORT:
        with suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()  # no child looks for garbage among what all of them share
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            become(json.loads(line))
            return
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    serve()
