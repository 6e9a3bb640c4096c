"""Kill a run with `kill -9` at any moment and repeat its command: the same run, nothing paid twice.

Most kills are made by cutting the ledger of an undisturbed run; a sample kills real processes.
"""

import json
import os
import random
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path

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


OTHER_KERNEL = pytest.mark.xfail(
    strict=True, reason="a search's arithmetic depends on the kernel that BLAS picks"
)
SLOW = pytest.mark.slow


@dataclass(frozen=True)
class Story:
    """A run that nobody disturbed, in the folder of its user."""

    words: list[str]
    folder: Path
    run: Path  # below that folder
    books: Books


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory, warm_start: WarmStart) -> dict[str, Story]:
    told = {}
    for kind, command in COMMANDS.items():
        folder = tmp_path_factory.mktemp(kind) / "user"
        user = Product(folder, warm_start)
        user.write("campaign.toml", CAMPAIGN)
        user(*command.split())
        (run,) = (ledger.parent for ledger in folder.glob(f"**/{LEDGER}"))
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

    attempts = repeated(product, story.words, run, story).attempts

    if files == "kept":  # every result is adopted: nothing is evaluated or charged again
        assert sorted(attempts) == sorted(story.books.attempts), when
    else:
        lost = {(one.key, one.number, one.charged_ms) for one in attempts if one.status == "lost"}
        again = {one.key for one in attempts if one.number == 2}
        charge = 1 if files == "gone" else 0  # it may have run, or it has not begun
        assert lost == {(one.key, 1, charge * one.reserved_ms) for one in left_open}, when
        assert again == {one.key for one in left_open}, when
        assert len(attempts) == len(story.books.attempts) + len(left_open), when


def repeated(product: Product, words: list[str], run: Path, story: Story) -> Books:
    """Repeat a run's command: it finds what the story did, and its accounts are right."""
    document, books = product.json(*words), Books.of(run)
    assert books.essence == story.books.essence
    assert not books.open_attempts
    if "balances" in document:  # not of a calibration
        spent = {one["currency"]: one["spent"] for one in document["balances"]}
        compared = len(books.results) - len(books.searched)
        assert {one["reserved"] for one in document["balances"]} == {0}
        assert round(spent["device-hours"] * 3_600_000) == books.device_ms
        assert spent["evaluations"] == len(books.searched)
        assert spent.get("evaluations apart", 0) == compared
    product.verify(run)
    return books


def sample(books: Books) -> list[int]:
    """How many records to keep: before and after each kind of record, and every eighth one."""
    kinds = [line["event"]["kind"] for line in books.lines]
    seen, found = set[tuple[str, str]](), []
    for keep in range(1, len(kinds) + 1):
        here = {("after", kinds[keep - 1]), ("before", "".join(kinds[keep : keep + 1]))}
        if here - seen or keep % 8 == 0:
            found.append(keep)
        seen |= here
    return found


@pytest.mark.parametrize("files", ["sample", *(pytest.param(one, marks=SLOW) for one in FILES)])
@pytest.mark.parametrize("kind", COMMANDS)
def test_a_run_killed_after_a_record_ends_as_if_nobody_had_killed_it(
    product: Product, stories: dict[str, Story], kind: str, files: str
) -> None:
    """Between two records, and with the next one half written."""
    books = stories[kind].books
    count = len(books.lines)
    cuts = [(keep, torn, files) for keep in range(1, count + 1) for torn in (False, True)]
    if files == "sample":
        cuts = [(keep, n % 2 == 1, FILES[n % 3]) for n, keep in enumerate(sample(books))]
    for keep, torn, left in cuts:
        check_resumed(product, stories[kind], keep, torn=torn and keep < count, files=left)


def test_a_run_killed_before_its_first_record_begins_anew_unless_evaluations_were_paid(
    product: Product, stories: dict[str, Story]
) -> None:
    for torn in (False, True):
        check_resumed(product, stories["search"], 0, torn=torn, files="gone")
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


def real(executor: str) -> list[str]:
    return [*SEARCH.split(), executor, "--set", "seconds=0.1"]


def kill_one(product: Product, executor: str, victim: str, at: int) -> tuple[Path, int]:
    """Kill a process of the search from that record on. Its run, and its command's exit code."""
    run = product.folder / "artifacts/cmaes/phase1/run"
    process = product.start(*real(executor))
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
    return run, process.returncode


RAY = pytest.mark.xdist_group("ray")
OFTEN = [("local", "driver", 8), ("local", "supervisor", 20), ("local", "fork server", 12)]
RARELY = [("local", "driver", at) for at in (3, 5, 30, 50, 66)]
RARELY += [("local", one, 40) for one in ("trainer", "supervisor", "fork server")]
ON_RAY = [("ray", "raylet", 10), ("ray", "raylet", 60)]
ON_RAY += [("ray", one, 25) for one in ("trainer", "supervisor", "fork server")]


@pytest.mark.parametrize(
    ("executor", "victim", "at"),
    [
        *OFTEN,
        pytest.param("ray", "driver", 14, marks=RAY),
        *(pytest.param(*kill, marks=SLOW) for kill in RARELY),
        *(pytest.param(*kill, marks=[SLOW, RAY]) for kill in ON_RAY),
    ],
)
def test_a_killed_process_changes_nothing_that_the_run_finds(
    product: Product, stories: dict[str, Story], executor: str, victim: str, at: int
) -> None:
    """Without its driver a run waits for the command; without any other process it goes on."""
    run, code = kill_one(product, executor, victim, at)
    assert code == (-signal.SIGKILL if victim == "driver" else 0)
    books = repeated(product, real(executor), run, stories["search"])
    assert victim != "supervisor" or books.statuses["lost"] == 1


@SLOW
def test_a_run_killed_ten_times_at_random_ends_as_if_nobody_had_killed_it(
    product: Product, stories: dict[str, Story]
) -> None:
    draw, at = random.Random(25), 2  # noqa: S311
    for _ in range(10):
        run, _ = kill_one(product, "local", "driver", at)
        at = records(run) + draw.randint(2, 7)
    assert repeated(product, real("local"), run, stories["search"]).sessions == 11


@pytest.mark.parametrize(
    ("first", "then"),
    [
        pytest.param("Nehalem", "Nehalem", marks=SLOW),
        pytest.param("Haswell", "Haswell", marks=SLOW),
        pytest.param("Haswell", "Nehalem", marks=OTHER_KERNEL),
    ],
)
def test_a_run_resumes_on_any_x86_64_processor(product: Product, first: str, then: str) -> None:
    product(*COMMANDS["search"].split(), fresh=True, OPENBLAS_CORETYPE=first)
    run = product.run_directory()
    essence = Books.of(run).essence
    cut(run, 45)
    product(*COMMANDS["search"].split(), fresh=True, OPENBLAS_CORETYPE=then)
    assert Books.of(run).essence == essence
    product("verify", run, fresh=True, OPENBLAS_CORETYPE=then)
