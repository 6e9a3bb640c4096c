"""Whatever an evaluation does, it ends as what it is, nothing outlives it, and a search goes on."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.product.books import Books, records
from tests.product.product import Product, alive_below, wait_until

RUDE = """
import os, shutil, signal, subprocess, time
from pathlib import Path
HERE = Path(__file__).parent
AcceleratorError = type("AcceleratorError", (RuntimeError,), {"__module__": "torch"})
class Wordless(RuntimeError):
    def __str__(self):
        raise ValueError
def throw(error):
    raise error
def send(signum, pid):
    os.kill(pid, signum)
    time.sleep(1000)
def evaluate(knobs, seed, do="1.0"):
    return eval(do)
"""
KNOBS = """
objective = "python:rude:evaluate"
[training]
knobs.a = { min = 0.0, max = 1.0, baseline = 0.5 }
knobs.b = { min = 0.0, max = 1.0, baseline = 0.5 }
"""
CAMPAIGN = "campaign = {{ seeds = [1], controls = false, conditions = [{}] }}"
SEARCH = "phase1 --tier min --assume-eval-seconds 1 --run-id mine"
SCORE = "1 + knobs['a'] ** 2 + knobs['b'] ** 2"
LOCAL, INLINE = "--executor local --workers 2", "--executor inline"
ALONE = "--executor local --workers 1"


def search(product: Product, deed: str) -> str:
    """The command of a search whose evaluations all do this."""
    product.write("rude.py", RUDE)
    product.write("rude.toml", f"{KNOBS}fixed.do = {json.dumps(deed)}\n")
    return f"{SEARCH} rude.toml {INLINE}"


def campaign(product: Product, executor: str, *deeds: str, code: int = 0) -> list[Any]:
    """Run one in which each condition does one of these. How the attempts of each ended."""
    conditions = ", ".join(
        f'{{ name = "c{n}", training."fixed.do" = {json.dumps(deed)} }}'
        for n, deed in enumerate(deeds)
    )
    product.write("rude.py", RUDE)
    product.write("rude.toml", CAMPAIGN.format(conditions) + KNOBS)
    priced = "--assume-eval-seconds 1 --set evaluation.limit_seconds=2"
    product(f"run rude.toml {priced} {executor}", code=code)
    product.verify("rude")
    attempts = product.books("rude").attempts
    return [[one.status for one in attempts if one.key[2] == n] for n in range(len(deeds))]


ANYWHERE = {
    "1.0": ["ok"],
    "float('nan')": ["nan"],
    "1e200": ["nan"],
    "'good'": ["error"],
    r"throw(ValueError('\udcff'))": ["error"],
    "throw(Wordless())": ["error"],
    "throw(KeyError('xid: device unavailable'))": ["error"],
    "throw(MemoryError())": ["oom"],
}
"""What a function may do in any process, and how its attempts end."""
IN_ITS_OWN_PROCESS = {
    "subprocess.Popen(['sleep', '99'], start_new_session=True).pid": ["ok"],
    "os._exit(0)": ["error"],
    "os.fork() and os.waitpid(-1, 0) and os._exit(3)": ["error"] * 2,  # its copy has a score
    "send(signal.SIGSEGV, os.getpid())": ["error"] * 2,  # perhaps the machine's doing: once more
    "shutil.rmtree(Path.cwd())": ["error"],
    "time.sleep(1000)": ["timeout"],
    "[print('alive', flush=True) or time.sleep(0.1) for _ in range(10**4)]": ["timeout"],
}


@pytest.mark.parametrize("executor", [INLINE, LOCAL])
def test_an_evaluation_ends_as_what_it_did_and_nothing_outlives_it(
    product: Product, executor: str
) -> None:
    deeds = ANYWHERE | (IN_ITS_OWN_PROCESS if executor is LOCAL else {})
    assert dict(zip(deeds, campaign(product, executor, *deeds), strict=True)) == deeds
    attempts = product.books("rude").attempts
    assert all(one.charged_ms <= one.reserved_ms for one in attempts)
    wait_until(lambda: not alive_below(product.folder), seconds=5)


def test_what_is_lost_each_time_pauses_once_and_is_then_its_own_failure(product: Product) -> None:
    """An evaluation whose supervisor dies is not retried forever, and a resume makes progress."""
    losing = [f"send(signal.{name}, os.getppid())" for name in ("SIGTERM", "SIGKILL")]
    losing.append("throw(AcceleratorError('CUDA error: device lost'))")
    *paused, _ = campaign(product, LOCAL, *losing, "1.0", code=3)
    fired = product.books("rude").fired
    assert [one.rule for one in fired] == ["infrastructure"]
    assert max(map(len, paused)) == 3
    assert {status for own in paused for status in own} == {"lost"}

    *ended, _ = campaign(product, LOCAL, *losing, "1.0")
    for *before, last in ended:
        assert (set(before), last) == ({"lost"}, "error")
        assert len(before) in (2, 3)


@pytest.mark.slow  # it waits for what is overdue
def test_a_trainer_whose_supervisor_is_stopped_is_ended(product: Product) -> None:
    ended = campaign(product, LOCAL, "send(signal.SIGSTOP, os.getppid())", code=3)
    assert {status for own in ended for status in own} == {"lost"}
    wait_until(lambda: not alive_below(product.folder), seconds=5)


def test_a_second_orchestrator_is_turned_away_and_a_second_interrupt_kills_what_runs(
    product: Product,
) -> None:
    long = "--objective sphere --set seconds=1000 --set evaluation.limit_seconds=2000"
    command = f"{SEARCH} {LOCAL} {long}"
    first = product.start(command)
    run = product.folder / "artifacts/cmaes/phase1/mine"
    wait_until(lambda: len([*run.glob("eval/*/*/*/started.json")]) == 2)
    before = records(run)
    assert str(first.pid) in product(command, code=5).err
    assert product.json("status mine")
    product.verify("mine")
    assert (records(run), first.poll()) == (before, None)

    first.send_signal(signal.SIGINT)
    first.send_signal(signal.SIGTERM)
    first.communicate(timeout=30)
    assert first.returncode in (128 + signal.SIGINT, 128 + signal.SIGTERM)
    assert set(Books.of(run).statuses) <= {"cancelled", "lost"}
    assert not Books.of(run).open_attempts
    wait_until(lambda: not alive_below(run), seconds=5)
    product.verify("mine")


def apart(product: Product, what: str, script: str) -> tuple[int, str]:
    """Exit code and output of a shell script that has mounts, or a network, of its own."""
    words = ["unshare", "--map-root-user", what, "sh", "-c", f"exec 2>&1; {script}"]
    place: dict[str, Any] = {"cwd": product.folder, "env": product.environment()}
    ended = subprocess.run(["/usr/bin/env", *words], **place, stdout=-1, check=False, timeout=60)
    return ended.returncode, ended.stdout.decode()


FILL = "echo >> calls; [ $(wc -l < calls) = 6 ] && {} /dev/zero > artifacts/filler"
SMALL_DISK = """
mkdir artifacts && mount -t tmpfs -o size=12m none artifacts || exit 99
{python} -m orchestrator {words}; code=$?
rm artifacts/filler && cp -a artifacts kept && exit $code"""


@pytest.mark.parametrize(
    ("executor", "filled", "end"),
    [
        (INLINE, "cat", "ledger.jsonl: No space left on device"),
        (ALONE, "cat", "ledger.jsonl: No space left on device"),  # its `print` fails
        (ALONE, "head -c 11m", "the run's disk is full: "),  # there is room for the ledger alone
    ],
)
def test_a_full_disk_ends_a_search_and_blames_nobody(
    product: Product, executor: str, filled: str, end: str
) -> None:
    fill = f"subprocess.run({FILL.format(filled)!r}, shell=True, cwd=HERE, stderr=-3).returncode"
    command = search(
        product, f"({fill} or throw(OSError(28, 'full'))) and [print('x' * 9999)] and {SCORE}"
    ).replace(INLINE, executor)
    script = SMALL_DISK.format(python=sys.executable, words=command)
    code, said = apart(product, "--mount", script)
    assert (code, end in said) == (8, True), said
    (product.folder / "artifacts").rmdir()
    (product.folder / "kept").rename(product.folder / "artifacts")

    product(command)
    books = product.books("mine")
    assert books.statuses == {"lost": 1, "ok": len(books.results)}
    assert [one.rule for one in books.fired] == ["storage"] * (filled != "cat")
    product.verify("mine")


RAY = f"{SEARCH} --objective sphere --executor ray"


@pytest.mark.slow
def test_without_a_loopback_ray_is_not_waited_for(product: Product) -> None:
    code, said = apart(product, "--net", f"{sys.executable} -m orchestrator {RAY}")
    assert (code, "--executor local" in said) == (7, True), said


@pytest.mark.xdist_group("ray")
def test_a_signal_while_ray_starts_ends_the_command_with_its_number(product: Product) -> None:
    process = product.start(RAY)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")

    def is_ray_starting() -> bool:
        """Its first server has its threads: the command waits for it and forks nothing."""
        return any(
            len([*Path(f"/proc/{pid}/task").glob("*")]) > 8 for pid in children.read_text().split()
        )

    wait_until(is_ray_starting)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM, out
    assert product.books("mine").attempts == []
    product.verify("mine")


@pytest.mark.slow
def test_late_evaluations_of_a_long_run_write_no_more_than_early_ones(product: Product) -> None:
    written = "int(open('/proc/self/io').read().split()[3])"  # all bytes until now
    words = "--tier max --max-evals 480 --set search.population=8 --set verdict.confirm_seeds=0"
    words += " --set search.method=plain"  # quick, and what is written is the same
    product(f"{search(product, f'1e9 - {written}')} {words}")
    scores = [one.score or 0.0 for one in product.books("mine").attempts]
    assert (scores[160] - scores[479]) / 319 < 1.25 * (scores[40] - scores[160]) / 120
