"""Kill a run with `kill -9` at any moment and repeat its command: the same run, nothing paid twice.

Most kills copy an undisturbed run and cut its ledger, as a kill at that moment leaves it; a sample
kills real processes.
"""

import json
import os
import random
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.books import LEDGER, Books, cut, records, sealed
from tests.acceptance.product import Product, WarmStart, alive_below, wait_until

SEARCH = (
    "phase1 --tier target --objective sphere --set noise=0.01 --workers 2 --run-id run "
    "--population 4 --generations 2 --confirm-seeds 5 --assume-eval-seconds 1 --executor"
)  # then compared with the baseline on fresh seeds, and on four times the effort
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


@dataclass(frozen=True)
class Story:
    """A run that nobody disturbed, in the folder of its user."""

    words: list[str]
    folder: Path
    run: Path  # below that folder
    books: Books

    @property
    def kinds(self) -> list[str]:
        return [line["event"]["kind"] for line in self.books.lines]


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory, warm_start: WarmStart) -> dict[str, Story]:
    told = {}
    for kind, command in COMMANDS.items():
        folder = tmp_path_factory.mktemp(kind) / "user"
        user = Product(folder, warm_start)
        user.write("campaign.toml", CAMPAIGN)
        user(*command.split())
        (ledger,) = folder.glob(f"**/{LEDGER}")
        run = ledger.parent
        told[kind] = Story(command.split(), folder, run.relative_to(folder), Books.of(run))
    return told


def killed(product: Product, story: Story, keep: int, *, torn: bool, files: str) -> Path:
    """A copy of the story as a kill leaves it that comes after so many records."""
    shutil.rmtree(product.folder)
    shutil.copytree(story.folder, product.folder)
    run = product.folder / story.run
    cut(run, keep, half_of_the_next=torn)
    if files == "gone":
        shutil.rmtree(run / "eval")
    for path in (run / "eval").rglob("*.*") if files == "emptied" else ():
        path.unlink()
    return run


def check_resumed(product: Product, story: Story, keep: int, *, torn: bool, files: str) -> None:
    """Kill a copy of the story, repeat its command, and compare with the story."""
    run, when = killed(product, story, keep, torn=torn, files=files), (keep, torn, files)
    left_open = Books(story.books.lines[:keep]).open_attempts

    check_end(product.json(*story.words), run, story)

    attempts = Books.of(run).attempts
    if files == "kept":  # every result is adopted: nothing is evaluated or charged again
        assert sorted(attempts) == sorted(story.books.attempts), when
    else:
        lost = {(one.key, one.number, one.charged_ms) for one in attempts if one.status == "lost"}
        again = {one.key for one in attempts if one.number == 2}
        charge = 1 if files == "gone" else 0  # it may have run, or it has not begun
        assert lost == {(one.key, 1, charge * one.reserved_ms) for one in left_open}, when
        assert again == {one.key for one in left_open}, when
        assert len(attempts) == len(story.books.attempts) + len(left_open), when
    product.verify(run)


def check_end(document: dict[str, Any], run: Path, story: Story) -> None:
    """The run found what the story did, nothing is open, and the accounts are the records' sum."""
    books = Books.of(run)
    assert books.essence == story.books.essence
    assert not books.open_attempts
    if "balances" not in document:  # of a calibration
        return
    balances = {one["currency"]: one for one in document["balances"]}
    searched, compared = len(books.searched), len(books.results) - len(books.searched)
    assert {one["reserved"] for one in balances.values()} == {0}
    assert round(balances["device-hours"]["spent"] * 3_600_000) == books.device_ms
    assert balances["evaluations"]["spent"] == searched
    assert balances.get("evaluations apart", {"spent": 0})["spent"] == compared


def moments(kinds: list[str]) -> list[int]:
    """How many records to keep: before and after each kind of record, and every eighth one."""
    seen: set[tuple[str, str]] = set()
    found = []
    for keep in range(1, len(kinds) + 1):
        here = {("after", kinds[keep - 1]), ("before", "".join(kinds[keep : keep + 1]))}
        if here - seen or keep % 8 == 0:
            found.append(keep)
        seen |= here
    return found


@pytest.mark.parametrize("kind", COMMANDS)
def test_a_run_killed_after_a_record_ends_as_if_nobody_had_killed_it(
    product: Product, stories: dict[str, Story], kind: str
) -> None:
    kinds = stories[kind].kinds
    for place, keep in enumerate(moments(kinds)):
        torn = place % 2 == 1 and keep < len(kinds)
        check_resumed(product, stories[kind], keep, torn=torn, files=FILES[place % 3])


@pytest.mark.slow
@pytest.mark.parametrize("files", FILES)
@pytest.mark.parametrize("torn", [False, True], ids=["whole", "torn"])
@pytest.mark.parametrize("kind", COMMANDS)
def test_the_same_after_any_record(
    product: Product, stories: dict[str, Story], kind: str, torn: bool, files: str
) -> None:
    for keep in range(1, len(stories[kind].kinds) + (not torn)):
        check_resumed(product, stories[kind], keep, torn=torn, files=files)


@pytest.mark.parametrize("torn", [False, True])
def test_a_run_killed_before_its_first_record_begins_anew(
    product: Product, stories: dict[str, Story], torn: bool
) -> None:
    check_resumed(product, stories["search"], 0, torn=torn, files="gone")


def test_paid_evaluations_without_a_ledger_are_refused_and_kept(
    product: Product, stories: dict[str, Story]
) -> None:
    run = killed(product, stories["search"], 0, torn=False, files="kept")
    before = sorted(run.glob("eval/**"))
    product(*stories["search"].words, code=6)
    assert sorted(run.glob("eval/**")) == before


def test_a_search_that_does_not_come_back_to_where_it_stood_is_not_continued(
    product: Product, stories: dict[str, Story]
) -> None:
    run = killed(product, stories["search"], 40, torn=False, files="kept")
    lines = json.loads(json.dumps(Books.of(run).lines))
    told = next(line["event"] for line in lines if line["event"]["kind"] == "generation_told")
    told["digest"] = told["digest"][::-1]
    (run / LEDGER).write_bytes(sealed(lines))

    product(*stories["search"].words, code=6)
    product("verify", run, code=6)
    assert records(run) == 40


def parent(pid: int) -> int:
    """Of a process, 0 if it has ended."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


def find(victim: str, driver: int, run: Path) -> int:
    """The process of that role in the run of this driver; 0 while there is none."""
    if victim == "raylet":
        comms = (path for path in Path("/proc").glob("[0-9]*/comm"))
        raylets = [int(path.parent.name) for path in comms if path.read_text() == "raylet\n"]
        return next((pid for pid in raylets if parent(pid) == driver), 0)
    trainer = next(iter(alive_below(run)), 0)
    supervisor = parent(trainer)
    roles = {"driver": driver, "trainer": trainer, "supervisor": supervisor}
    found = roles.get(victim) or parent(supervisor)
    return found if trainer and min(supervisor, found) > 1 else 0


def kill_one(product: Product, executor: str, victim: str, at: int) -> tuple[Path, int]:
    """Kill a process of the search from that record on. Its run, and its command's exit code."""
    run = product.folder / "artifacts/cmaes/phase1/run"
    process = product.start(*SEARCH.split(), executor, "--set", "seconds=0.1")
    pids: list[int] = []

    def is_killed() -> bool:
        if records(run) >= at and (pid := find(victim, process.pid, run)):
            os.kill(pid, signal.SIGKILL)
            pids.append(pid)
        return bool(pids) or process.poll() is not None

    wait_until(is_killed)
    out, _ = process.communicate(timeout=60)
    assert pids, f"it ended before its {victim} could be killed:\n{out}"
    wait_until(lambda: not alive_below(run), 5)
    return run, process.returncode


def check_repeated(product: Product, run: Path, executor: str, story: Story) -> Books:
    check_end(product.json(*SEARCH.split(), executor, "--set", "seconds=0.1"), run, story)
    product.verify(run)
    return Books.of(run)


QUICK = [
    ("local", "driver", 8, -9),
    ("local", "supervisor", 20, 0),
    ("local", "fork server", 12, 0),
    ("ray", "driver", 14, -9),
]
SLOW = [
    *(("local", "driver", at, -9) for at in (3, 5, 30, 50, 66)),
    *(("local", victim, 40, 0) for victim in ("trainer", "supervisor", "fork server")),
    *(("ray", victim, 25, 0) for victim in ("trainer", "supervisor", "fork server")),
    *(("ray", "raylet", at, 7) for at in (10, 60)),
]


@pytest.mark.parametrize(
    ("executor", "victim", "at", "code"),
    [
        pytest.param(*one, marks=[pytest.mark.xdist_group(one[0]), *marks])
        for kills, marks in ((QUICK, []), (SLOW, [pytest.mark.slow]))
        for one in kills
    ],
)
def test_a_killed_process_changes_nothing_that_the_run_finds(
    product: Product, stories: dict[str, Story], executor: str, victim: str, at: int, code: int
) -> None:
    run, ended = kill_one(product, executor, victim, at)
    assert ended == code
    books = check_repeated(product, run, executor, stories["search"])
    if victim == "supervisor":
        assert books.statuses["lost"] == 1


@pytest.mark.slow
def test_a_run_killed_ten_times_at_random_ends_as_if_nobody_had_killed_it(
    product: Product, stories: dict[str, Story]
) -> None:
    draw, at = random.Random(25), 2  # noqa: S311
    for _ in range(10):
        run, _ = kill_one(product, "local", "driver", at)
        at = records(run) + draw.randint(2, 7)
    assert check_repeated(product, run, "local", stories["search"]).sessions == 11


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("Nehalem", "Nehalem"),
        pytest.param("Haswell", "Haswell", marks=pytest.mark.slow),
        pytest.param(
            "Haswell",
            "Nehalem",
            marks=pytest.mark.xfail(
                strict=True, reason="a search's arithmetic depends on the kernel that BLAS picks"
            ),
        ),
    ],
)
def test_a_run_resumes_on_any_x86_64_processor(product: Product, first: str, then: str) -> None:
    product(*COMMANDS["search"].split(), fresh=True, OPENBLAS_CORETYPE=first)
    run = product.run_directory()
    whole = Books.of(run)
    cut(run, 45)
    product(*COMMANDS["search"].split(), fresh=True, OPENBLAS_CORETYPE=then)
    assert Books.of(run).essence == whole.essence
    product("verify", run, fresh=True, OPENBLAS_CORETYPE=then)
