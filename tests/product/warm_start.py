"""Run commands in processes forked from a server that has imported their modules."""

import atexit
import gc
import os
import runpy
import signal
import sys
import threading
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

FORKS = get_context("forkserver")
MODULES = Path(__file__).parents[2].glob("orchestrator/[cl]*/*.py")
FORKS.set_forkserver_preload(
    [__name__, "jinja2", "matplotlib.backends.backend_svg", "orchestrator.search"]
    + ["scipy.optimize", "starlette.applications"]
    + [f"orchestrator.{file.parent.name}.{file.stem}" for file in MODULES]
)


def run(
    arguments: list[str],
    folder: Path,
    environment: dict[str, str],
    streams: list[Path],
    most: float,
) -> int:
    """Run a command for at most `most` seconds; return its exit code."""
    nothing = ModuleType("__main__")  # otherwise the child imports pytest's main module
    with patch.dict(os.environ, environment), patch.dict(sys.modules, __main__=nothing):
        process = FORKS.Process(target=_become, args=(arguments, folder, environment, streams))
        process.start()
    process.join(most)
    process.kill()
    process.join()
    assert process.exitcode is not None
    return process.exitcode


def _become(
    arguments: list[str], folder: Path, environment: dict[str, str], streams: list[Path]
) -> None:
    """Become the command; does not return."""
    os.setsid()
    gc.freeze()  # so that the collector does not touch shared pages
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path.insert(0, str(folder))
    for number, path in enumerate([Path(os.devnull), *streams]):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC), number)
    os.closerange(3, 256)
    sys.argv = ["orchestrator", *arguments]
    try:
        runpy.run_module("orchestrator", run_name="__main__", alter_sys=True)
    finally:
        for thread in threading.enumerate():  # as at an interpreter's exit
            if not thread.daemon and thread is not threading.current_thread():
                thread.join()
        atexit._run_exitfuncs()
