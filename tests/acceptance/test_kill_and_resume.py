"""Kill a run with `kill -9` at any moment and repeat its command: the same run, nothing paid twice.

Most kills are made by cutting the ledger of an undisturbed run; a sample kills real processes.
"""

import os
import shutil
import signal
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.product.books import LEDGER, Books, cut, records
from tests.product.product import Product, alive_below, wait_until

SEARCH = (
    "phase1 --tier target --objective sphere --set noise=0.01 --workers 2 --run-id run "
    "--set search.population=4 --set search.generations=2 "
    "--set verdict.confirm_seeds=5 --assume-eval-seconds 1 --executor"
)  # then compared with the baseline on fresh seeds, and on four times the effort
GUIDED = (
    "phase1 --tier target --objective sphere --set dimension=6 --set noise=0.01 --executor inline "
    "--workers 2 --set search.population=6 --set search.generations=6 "
    "--set verdict.confirm_seeds=0 --assume-eval-seconds 1"
)
CAMPAIGN = """
objective = "sphere"
training.dimension = 3
factors = { noise = [0.01, 0.02], failure_rate = [0.0, 0.5] }
campaign = { seeds = [1, 2], max_workers = 2 }
"""
COMMANDS = {
    "search": f"{SEARCH} inline",
    "campaign": "run campaign.toml --executor inline",
    "calibration": "calibrate --objective sphere --set noise=0.01 --executor inline",
}
FILES = ("kept", "emptied", "gone")
"""What a kill left of the evaluations: all they wrote; empty directories; nothing."""
SLOW = pytest.mark.slow


class Story(NamedTuple):
    """An undisturbed run, in its user's folder."""

    command: str
    folder: Path
    run: Path  # below that folder
    books: Books


@cache
def story(kind: str, folder: Path) -> Story:
    user = Product(folder / kind)
    user.write("campaign.toml", CAMPAIGN)
    user(COMMANDS[kind])
    (run,) = (ledger.parent for ledger in user.folder.glob(f"**/{LEDGER}"))
    return Story(COMMANDS[kind], user.folder, run.relative_to(user.folder), Books.of(run))


def check_resumed(product: Product, story: Story, keep: int, *, torn: bool, files: str) -> None:
    """Kill a copy of the story after so many records, repeat its command, and compare."""
    shutil.rmtree(product.folder)
    shutil.copytree(story.folder, product.folder)
    run, when = product.folder / story.run, (keep, torn, files)
    cut(run, keep, half_of_the_next=torn)
    if files == "gone":
        shutil.rmtree(run / "eval")
    for path in (run / "eval").rglob("*.*") if files == "emptied" else ():
        path.unlink()

    if keep:
        product("status", run)  # what was left can be looked at
    attempts = repeated(product, story.command, run, story).attempts
    if files == "kept":  # every result is adopted: nothing is evaluated or charged again
        assert sorted(attempts) == sorted(story.books.attempts), when
        return
    left_open = Books(story.books.lines[:keep]).open_attempts
    lost = {(one.key, one.number, one.charged_ms) for one in attempts if one.status == "lost"}
    charge = 1 if files == "gone" else 0  # it may have run, or it has not begun
    assert lost == {(one.key, 1, charge * one.reserved_ms) for one in left_open}, when
    again = {one.key for one in attempts if one.number == 2}
    assert again == {one.key for one in left_open}, when
    assert len(attempts) == len(story.books.attempts) + len(left_open), when


def repeated(product: Product, command: str, run: Path, story: Story) -> Books:
    """Repeat a run's command: it finds what the story did, and its accounts are right."""
    document, books = product.json(command), Books.of(run)
    assert books.essence == story.books.essence
    assert not books.open_attempts
    if "balances" in document:  # not of a calibration
        books.check(document)
    product.verify(run)
    return books


def sample(books: Books) -> list[int]:
    """How many records to keep: before and after each kind of record."""
    kinds = [line["event"]["kind"] for line in books.lines]
    seen, found = set[tuple[str, str]](), []
    for keep in range(1, len(kinds) + 1):
        here = {("after", kinds[keep - 1]), ("before", "".join(kinds[keep : keep + 1]))}
        if here - seen:
            found.append(keep)
        seen |= here
    return found


@pytest.mark.timeout(1200)  # where every record is meant, with a neighbour on the machine
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=SLOW)])
@pytest.mark.parametrize("kind", COMMANDS)
def test_a_run_killed_after_a_record_ends_as_if_nobody_had_killed_it(
    product: Product, shared: Product, kind: str, every: bool
) -> None:
    """Between two records, and with the next one half written."""
    whole = story(kind, shared.folder)
    cuts = [(keep, n % 2 == 1, FILES[n % 3]) for n, keep in enumerate(sample(whole.books))]
    if every:
        number = range(1, len(whole.books.lines) + 1)
        cuts = [(keep, torn, left) for keep in number for torn in (False, True) for left in FILES]
    for keep, torn, left in [(0, True, "gone"), *cuts]:
        is_torn = torn and keep < len(whole.books.lines)
        check_resumed(product, whole, keep, torn=is_torn, files=left)


def parent(pid: int) -> int:
    """Of a process, 0 if it has ended."""
    try:
        state, ppid = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[:2]
    except OSError:
        return 0
    return 0 if state == "Z" else int(ppid)


def family(run: Path) -> dict[str, int]:
    """The processes of one evaluation in flight, each the child of the next; none in between."""
    names = ("trainer", "supervisor", "fork server", "actor", "raylet")
    pids = [next(iter(alive_below(run)), 0)]
    while len(pids) < len(names):
        pids.append(parent(pids[-1]))
    return dict(zip(names, pids, strict=True)) if pids[2] > 1 else {}


RARELY = [("local", "driver", 50), ("local", "supervisor", 20), ("local", "trainer", 40)]
RARELY += [("ray", "driver", 14), ("ray", "raylet", 60), ("ray", "supervisor", 25)]


@pytest.mark.parametrize(
    ("executor", "victim", "at"),
    [
        ("local", "driver", 8),
        ("local", "fork server", 12),
        *(pytest.param(*kill, marks=[SLOW, pytest.mark.xdist_group("ray")]) for kill in RARELY),
    ],
)
def test_a_killed_process_changes_nothing_that_the_run_finds(
    product: Product, shared: Product, executor: str, victim: str, at: int
) -> None:
    """Without its driver a run waits for the command; without any other process it goes on."""
    run = product.folder / "artifacts/cmaes/phase1/run"
    command = f"{SEARCH} {executor} --set seconds=0.06"
    process = product.start(command)
    found: dict[str, int] = {}

    def is_killed() -> bool:
        if records(run) >= at and (now := family(run)):
            os.kill(process.pid if victim == "driver" else now[victim], signal.SIGKILL)
            found.update(now)
        return bool(found) or process.poll() is not None

    wait_until(is_killed)
    out, _ = process.communicate(timeout=60)
    assert found, f"it ended before its {victim} could be killed:\n{out}"
    ours = [found[name] for name in ("trainer", "supervisor", "fork server")]
    wait_until(lambda: not alive_below(run) and not any(map(parent, ours)), 5)
    assert process.returncode == (-signal.SIGKILL if victim == "driver" else 0)
    books = repeated(product, command, run, story("search", shared.folder))
    assert victim != "supervisor" or books.statuses["lost"] == 1


OLDEST: dict[str, Any] = {
    "OPENBLAS_CORETYPE": "Nehalem",
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA",
}
"""What makes the libraries choose the code that they have for an old processor."""


def test_a_run_resumes_bit_for_bit_on_any_x86_64_processor(product: Product) -> None:
    """Which kernels the libraries of linear algebra choose makes no difference: a model too."""
    product(GUIDED, **OLDEST)
    run, whole = product.run_directory(), product.books()
    assert whole.events("generation_told")[-1]["guided"]
    cut(run, len(whole.lines) // 2)
    product(GUIDED, OPENBLAS_CORETYPE="SkylakeX")
    assert Books.of(run).essence == whole.essence
    product("verify", run, OPENBLAS_CORETYPE="Haswell")
