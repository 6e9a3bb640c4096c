"""Real processes: interrupts, readers that leave, files in the working directory."""

import signal
import subprocess
import sys

from budgets.events import Settled
from tests.ledgers import every
from tests.product.books import Books, records
from tests.product.product import Product, wait_until


def phase1(root: str, seconds: float, executor: str = "local") -> tuple[str, ...]:
    objective = ("--objective", "sphere", "--set", "noise=0.01", "--set", f"seconds={seconds}")
    options = ("--tier", "min", "--workers", "2", "--executor", executor, "--runs-dir", root)
    return ("phase1", *options, *objective, "--run-id", "run", "--assume-eval-seconds", "5")


def test_the_first_interrupt_lets_running_evaluations_finish(product: Product) -> None:
    run = product.folder / "stopped/phase1/run"
    process = product.start(" ".join(phase1("stopped", 0.1)))
    wait_until(lambda: records(run) >= 8)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=30)

    assert process.returncode == 130
    assert "Repeat the command to go on" in output
    assert {str(event.status) for event in every(Settled, run)} == {"ok"}
    assert not Books.of(run).open_attempts


def test_a_reader_who_leaves_does_not_stop_the_run(product: Product) -> None:
    process = product.start(" ".join(phase1("unread", 0.01, "inline")), stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    process.stdout = None
    _, errors = process.communicate(timeout=60)

    assert (process.returncode, errors) == (0, "")
    assert len(Books.of(product.folder / "unread/phase1/run").searched) == 16


def test_files_in_the_working_directory_are_ignored_and_nothing_is_added(product: Product) -> None:
    stray = {
        "cma_signals.in": "{'timeout': 0, 'maxiter': 1}",
        "outcmaes/axlen.dat": "old",
        "numpy.py": "raise SystemExit('imported from the working directory')",
        ".env": "ORCHESTRATOR=1",
        "conftest.py": "",
    }
    for name, text in stray.items():
        product.write(name, text)
    code = (  # as the installed command does: the working directory is not on the path
        "import sys; sys.modules['matplotlib'] = None; sys.path.remove('')\n"
        "from orchestrator.cli.app import main; main()"
    )

    answer = subprocess.run(
        [sys.executable, "-W", "default", "-c", code, *phase1("runs", 0.0, "inline")],
        cwd=product.folder,
        env=product.environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (answer.returncode, answer.stderr) == (0, "")
    files = {str(p.relative_to(product.folder)) for p in product.folder.rglob("*") if p.is_file()}
    assert {name for name in files if not name.startswith("runs/")} == set(stray)
    assert {name: (product.folder / name).read_text() for name in stray} == stray
