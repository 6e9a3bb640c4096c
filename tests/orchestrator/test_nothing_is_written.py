"""What only looks leaves every file as it was: beside the runs, at home, and where others lie."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.orchestrator.test_help import EVERY, PROGRAM

if TYPE_CHECKING:
    from tests.conftest import Command

COMMON = """
objective = "sphere"
training = { dimension = 2, noise = 0.01 }
evaluation.assume_eval_seconds = 1.0
backend = { executor = "inline", workers = 1 }
"""
SEARCH = f'{COMMON}search = {{ tier = "target", population = 8 }}\n'
CAMPAIGN = (
    f"{COMMON}factors = {{ dimension = [2, 3], noise = [0.01, 0.02] }}\ncampaign.seeds = [1, 2]\n"
)

RUN = "min-sphere-s1"
SPHERE = ("--objective", "sphere", "--workers", "1")

LOOKS = (
    "status",
    "status --watch",
    "status factorial --watch",
    "status artifacts/cmaes/campaign/factorial",
    "status artifacts",
    "report",
    f"report {RUN} --html --out -",
    "report factorial --out -",
    f"report {RUN} factorial",
    f"report {RUN} artifacts/cmaes/campaign/factorial --json",
    "explain search.toml",
    "explain factorial.toml",
    f"best {RUN} --json",
    "plan search.toml --devices 4",
    "plan search.toml --fit --window 3h",
    f"plan --variant robust --from {RUN} --objective sphere --workers 1",
    "plan factorial.toml",
    "init --template phase1",
    "export slurm factorial.toml",
    "export slurm search.toml --out out",
    "doctor",
    "doctor factorial.toml",
    f"verify {RUN}",
    "verify factorial",
    f"export table {RUN}",
)

RUNS_OR_WRITES = {
    "export optuna",
    "run", "phase1", "phase2", "calibrate", "amend", "check knobs", "check proxy",
    "check workers", "check memory",
    "track", "train",
}  # fmt: skip
"""What is there to change files."""

STAYS = {"serve"}
"""What looks until it is told to end."""

Seen = dict[Path, tuple[int, int, bytes]]


@pytest.fixture
def surroundings(
    command: "Command", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """A person's home, temporary and working directory, with a search and a campaign in it."""
    for variable, name in (("HOME", "home"), ("TMPDIR", "tmp"), ("XDG_CACHE_HOME", "cache")):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(variable, str(tmp_path / name))
    (tmp_path / "home/.config/matplotlib").mkdir(parents=True)  # when first imported it makes it
    monkeypatch.setattr(tempfile, "tempdir", None)
    for name, text in (("search", SEARCH), ("factorial", CAMPAIGN)):
        (tmp_path / f"{name}.toml").write_text(text)
    assert command("phase1", "--tier", "min", *SPHERE, "--executor", "inline").code == 0
    assert command("run", "factorial.toml").code == 0
    yield tmp_path
    monkeypatch.setattr(tempfile, "tempdir", None)


def seen(place: Path) -> Seen:
    """Every file as it is; of temporary ones whether there are any, for they may come and go."""
    found: Seen = dict.fromkeys((place / "tmp").iterdir(), (0, 0, b""))
    cache = place / "cache"  # of tokens: whatever reads a text first may fill it
    cached = {cache, *cache.rglob("*")}
    for path in {place, *place.rglob("*")} - {place / "tmp"} - cached:
        own = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found[path] = (own.st_mtime_ns, own.st_mode, content)
    return found


def test_a_command_that_looks_changes_no_file(surroundings: Path, command: "Command") -> None:
    before = seen(surroundings)
    for line in LOOKS:
        answer = command(*line.split())
        assert answer.code in {0, 4} or "doctor" in line, answer.err
        after = seen(surroundings)
        paths = before.keys() | after.keys()
        assert [path for path in paths if before.get(path) != after.get(path)] == [], line


def test_every_command_is_one_that_looks_or_one_that_is_there_to_write() -> None:
    leaves = [path for path, command in EVERY.items() if not hasattr(command, "commands")]
    every = {path.removeprefix(f"{PROGRAM} ") for path in leaves}
    looks = {name for name in every if any(f"{line} ".startswith(f"{name} ") for line in LOOKS)}
    assert looks | RUNS_OR_WRITES | STAYS == every
    assert not looks & RUNS_OR_WRITES
