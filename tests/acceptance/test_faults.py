"""Whatever an evaluation does, it ends as what it is, nothing outlives it, and a search goes on."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.books import LEDGER, Books, records
from tests.acceptance.product import Product, alive_below, wait_until

RUDE = """
import os, shutil, signal, subprocess, time
from pathlib import Path
class Wordless(RuntimeError):
    def __str__(self):
        raise ValueError
AcceleratorError = type("AcceleratorError", (RuntimeError,), {"__module__": "torch"})
def throw(error):
    raise error
def send(signum, pid):
    os.kill(pid, signum)
    time.sleep(1000)
DO = {
    "finish": lambda: 1.0,
    "leave a child": lambda: subprocess.Popen(["sleep", "99"], start_new_session=True).pid,
    "empty its directory": lambda: len([path.unlink() for path in Path.cwd().iterdir()]),
    "give no number": lambda: float("nan"),
    "give too large a number": lambda: 1e200,
    "give text": lambda: "good",
    "raise": lambda: throw(ValueError("no")),
    "raise like a device": lambda: throw(KeyError("xid: device unavailable")),
    "raise without a word": lambda: throw(Wordless()),
    "raise half a character": lambda: throw(ValueError("\\udcff")),
    "run out of memory": lambda: throw(MemoryError()),
    "exit": lambda: os._exit(3),
    "exit as if all were well": lambda: os._exit(0),
    "crash": lambda: send(signal.SIGSEGV, os.getpid()),
    "remove its directory": lambda: shutil.rmtree(Path.cwd()),
    "hang": lambda: send(0, os.getpid()),
    "end its supervisor": lambda: send(signal.SIGTERM, os.getppid()),
    "kill its supervisor": lambda: send(signal.SIGKILL, os.getppid()),
    "stop its supervisor": lambda: send(signal.SIGSTOP, os.getppid()),
    "fail with its device": lambda: throw(AcceleratorError("CUDA error: device lost")),
}

def evaluate(knobs, seed, budget, do="finish"):
    return DO[do]()
"""
CAMPAIGN = """
objective = "python:rude:evaluate"
[training]
knobs.a = { min = 0.0, max = 1.0, baseline = 0.5 }
[evaluation]
assume_eval_seconds = 1
limit_seconds = 4
[campaign]
cell = "training"
seeds = [1]
parallel = true
controls = false
"""
LOCAL = ("--executor", "local", "--workers", "2")
INLINE = ("--executor", "inline")


def written(product: Product, *deeds: str, also: str = "") -> list[str]:
    """A campaign in which each condition's function does one of these things. Its command."""
    product.write("rude.py", RUDE)
    listed = ", ".join(
        f'{{ name = "c{n}", training."fixed.do" = "{d}" }}' for n, d in enumerate(deeds)
    )
    product.write("rude.toml", f"{CAMPAIGN}conditions = [{listed}]\n{also}")
    return ["run", "rude.toml"]


def ends(product: Product, deeds: tuple[str, ...]) -> dict[str, list[str | None]]:
    """How the attempts at each deed ended, one after another."""
    attempts = Books.of(product.run_directory("rude")).attempts
    return {deed: [a.status for a in attempts if a.key[2] == n] for n, deed in enumerate(deeds)}


OWN = {
    "finish": "ok",
    "give no number": "nan",
    "give too large a number": "nan",
    "give text": "error",
    "raise": "error",
    "raise like a device": "error",
    "raise without a word": "error",
    "raise half a character": "error",
    "run out of memory": "oom",
}
"""What a function may do in any process, and how its evaluation ends."""

RUDE_ENDS: dict[str, list[str]] = {
    **{deed: [status] for deed, status in OWN.items()},
    "leave a child": ["ok"],
    "empty its directory": ["ok"],
    "exit": ["error", "error"],  # perhaps the machine's doing: tried once more
    "exit as if all were well": ["error"],
    "crash": ["error", "error"],
    "remove its directory": ["error"],
    "hang": ["timeout"],
}


def test_an_evaluation_ends_as_what_it_did_and_nothing_outlives_it(product: Product) -> None:
    deeds = tuple(RUDE_ENDS)
    product(*written(product, *deeds), *LOCAL)
    assert ends(product, deeds) == RUDE_ENDS
    causes = {a.key[2]: a.cause for a in Books.of(product.run_directory("rude")).attempts}
    assert "ValueError" in causes[deeds.index("raise half a character")]
    wait_until(lambda: not alive_below(product.run_directory("rude")), seconds=5)
    product.verify("rude")


def test_no_function_ends_the_orchestrator_whose_process_it_shares(product: Product) -> None:
    product(*written(product, *OWN), *INLINE)
    assert ends(product, tuple(OWN)) == {deed: [status] for deed, status in OWN.items()}
    product.verify("rude")


LOSING = ("end its supervisor", "kill its supervisor", "fail with its device")


def test_what_is_lost_each_time_pauses_once_and_is_then_its_own_failure(product: Product) -> None:
    """Whoever ends a supervisor: nothing is started again for ever, and no resume is in vain."""
    command = [*written(product, *LOSING, "finish"), *LOCAL]
    product(*command, code=3)
    paused = ends(product, LOSING)
    assert [fired.rule for fired in Books.of(product.run_directory("rude")).fired] == [
        "infrastructure"
    ]
    assert max(map(len, paused.values())) == 3
    assert {status for own in paused.values() for status in own} == {"lost"}

    product(*command)
    for own in ends(product, LOSING).values():
        assert own[-1] == "error"
        assert own[:-1] == ["lost"] * max(2, len(own) - 1)
        assert len(own) <= 4
    product.verify("rude")


@pytest.mark.slow  # it waits for what is overdue
def test_a_trainer_whose_supervisor_is_stopped_is_ended(product: Product) -> None:
    also = "[thresholds]\nattempts_per_session = 1\n"
    product(*written(product, "stop its supervisor", also=also), *LOCAL, code=3)
    assert ends(product, ("stop its supervisor",)) == {"stop its supervisor": ["lost"]}
    wait_until(lambda: not alive_below(product.run_directory("rude")), seconds=5)
    product.verify("rude")


SEARCH = ("phase1", "--tier", "min", "--assume-eval-seconds", "1", "--run-id", "mine")
SLOW = (*SEARCH, "--objective", "sphere", "--set", "seconds=1000", "--limit-seconds", "2000")


@pytest.mark.parametrize("executor", ["inline", "local"])
def test_a_second_interrupt_kills_what_runs_and_it_is_owed_again(
    product: Product, executor: str
) -> None:
    run = product.folder / "artifacts/cmaes/phase1/mine"
    process = product.start(*SLOW, "--executor", executor)
    wait_until(lambda: any(run.glob("eval/*/*/*/started.json")))
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)

    assert process.returncode in (128 + signal.SIGINT, 128 + signal.SIGTERM)
    assert set(Books.of(run).statuses) <= {"cancelled", "lost"}
    assert not Books.of(run).open_attempts
    wait_until(lambda: not alive_below(run), seconds=5)
    product.verify("mine")


def test_a_second_orchestrator_is_turned_away_and_onlookers_are_not(product: Product) -> None:
    run = product.folder / "artifacts/cmaes/phase1/mine"
    first = product.start(*SLOW, *INLINE)
    wait_until(lambda: any(run.glob("eval/*/*/*/started.json")))
    before = records(run)

    assert str(first.pid) in product(*SLOW, *INLINE, code=5).err
    assert product.json("status", "mine")
    product.verify("mine")
    assert records(run) == before
    assert first.poll() is None


FAILING = """
def evaluate(knobs, seed, budget):
    if knobs["a"] > {}:
        raise ValueError("no")
    return 1 + knobs["a"] ** 2 + knobs["b"] ** 2
"""
KNOBS = """
objective = "python:failing:evaluate"
[training]
knobs.a = { min = 0.0, max = 1.0, baseline = 0.5 }
knobs.b = { min = 0.0, max = 1.0, baseline = 0.5 }
"""


def failing_beyond(product: Product, limit: float) -> list[str]:
    """A search whose evaluations fail beyond that value of a knob. Its command."""
    product.write("failing.py", FAILING.format(limit))
    product.write("failing.toml", KNOBS)
    return [*SEARCH, "--config", "failing.toml", *INLINE]


def test_an_override_that_is_refused_changes_nothing(product: Product) -> None:
    command = failing_beyond(product, 0.5)
    product(*command, code=3)
    ledger = product.run_directory("mine") / LEDGER
    before = ledger.read_bytes()

    for rule in ("patience", "infrastructure", "runaway_time"):
        product(*command, "--override", rule, "--reason", "why not", code=2)
    assert ledger.read_bytes() == before
    product.verify("mine")


@pytest.mark.xfail(strict=True, reason="a generation that mostly fails holds a search up for good")
def test_every_rule_that_pauses_a_search_leaves_a_way_on(product: Product) -> None:
    command = failing_beyond(product, 0.1)
    done = product(*command, code=3)
    for n in range(9):
        if done.code == 3:
            rule = Books.of(product.run_directory("mine")).fired[-1].rule
            done = product(*command, "--override", rule, "--reason", f"look {n}", code=None)
    assert done.code in (0, 4), done


FILLING = """
from contextlib import suppress
from pathlib import Path
HERE = Path(__file__).parent

def evaluate(knobs, seed, budget):
    with (HERE / "calls").open("ab") as calls:
        calls.write(b".")
        is_sixth = calls.tell() == 6
    if is_sixth:
        with suppress(OSError), (HERE / "artifacts/filler").open("wb", buffering=0) as filler:
            while True:
                filler.write(bytes(4096))
    return 1 + knobs["a"] ** 2 + knobs["b"] ** 2
"""
SMALL_DISK = """
mkdir artifacts && mount -t tmpfs -o size=12m none artifacts || exit 99
{python} -m orchestrator {words}; code=$?
rm artifacts/filler && cp -a artifacts kept && exit $code"""


def apart(product: Product, what: str, script: str) -> tuple[int, str]:
    """Exit code and output of a shell script that has mounts, or a network, of its own."""
    command = [
        "/usr/bin/env",
        "unshare",
        "--map-root-user",
        what,
        "sh",
        "-c",
        f"exec 2>&1; {script}",
    ]
    ended = subprocess.run(
        command, cwd=product.folder, env=product.environment(), stdout=-1, check=False, timeout=60
    )
    return ended.returncode, ended.stdout.decode()


def test_a_full_disk_ends_a_search_and_loses_nothing(product: Product) -> None:
    product.write("failing.py", FILLING)
    product.write("failing.toml", KNOBS)
    command = [*SEARCH, "--config", "failing.toml", *INLINE]
    script = SMALL_DISK.format(python=sys.executable, words=" ".join(command))
    code, said = apart(product, "--mount", script)
    assert code == 8, said
    assert "room" in said
    (product.folder / "artifacts").rmdir()
    (product.folder / "kept").rename(product.folder / "artifacts")

    product(*command)
    found = Books.of(product.run_directory("mine"))
    assert found.statuses == {"lost": 1, "ok": len(found.results)}
    product.verify("mine")

    product.run_directory("mine").rename(product.folder / "filled")
    product(*command)
    assert Books.of(product.run_directory("mine")).essence == found.essence


@pytest.mark.parametrize(
    "given",
    [
        "HF_TOKEN=abc",
        "ANY=glpat-ABCDEFGHIJKLMNOPQRST",
        "ANY=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    ],
)
def test_a_secret_in_a_setting_is_refused_and_never_written(product: Product, given: str) -> None:
    name, value = given.split("=")
    program = 'argv = ["true"]\nscore = "loss"\nknobs.a = { min = 0.0, max = 1.0, baseline = 0.5 }'
    set_here = f'environment.{name} = "{value}"'
    product.write("program.toml", f'objective = "command"\n[training]\n{program}\n{set_here}\n')
    said = product(*SEARCH, "--config", "program.toml", "--executor", "local", code=2).text
    assert "secret" in said or "token" in said
    assert value not in said
    assert not (product.folder / "artifacts").exists()


def test_without_a_loopback_ray_is_not_waited_for(product: Product) -> None:
    words = " ".join([*SEARCH, "--objective", "sphere", "--executor", "ray"])
    code, said = apart(product, "--net", f"{sys.executable} -m orchestrator {words}")
    assert code == 7, said
    assert "--executor local" in said


@pytest.mark.xdist_group("ray")
@pytest.mark.parametrize("signals", [[signal.SIGTERM], [signal.SIGINT, signal.SIGINT]])
def test_a_signal_while_ray_starts_ends_the_command_with_its_number(
    product: Product, signals: list[signal.Signals]
) -> None:
    process = product.start(*SEARCH, "--objective", "sphere", "--executor", "ray")
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    wait_until(lambda: children.read_text() != "")
    for signum in signals:
        process.send_signal(signum)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + signals[-1], out
    assert Books.of(product.run_directory("mine")).attempts == []
    product.verify("mine")


@pytest.mark.slow
@pytest.mark.xfail(strict=True, reason="what is written after a generation grows with the run")
def test_late_evaluations_of_a_long_run_write_no_more_than_early_ones(product: Product) -> None:
    counting = "import atexit as a, runpy; a.register(lambda: print(open('/proc/self/io').read()))"
    script = f"{counting}; runpy.run_module('orchestrator', run_name='__main__')"
    words = ["phase1", "--tier", "max", "--objective", "sphere", "--population", "8", *INLINE]
    words += ["--assume-eval-seconds", "1", "--confirm-seeds", "0", "--max-evals"]
    written = []
    for n in (40, 160, 480):
        command = [sys.executable, "-c", script, *words, str(n), "--run-id", f"r{n}"]
        out = subprocess.check_output(command, cwd=product.folder, env=product.environment())
        written.append(int(out.decode().split("wchar: ")[1].split()[0]))
    assert (written[2] - written[1]) / 320 < 1.25 * (written[1] - written[0]) / 120
