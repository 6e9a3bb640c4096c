"""`run FILE`, `kill -9`, and the same command again: the same campaign. With real processes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from budgets.events import Settled
from budgets.ledger.chain import LEDGER
from tests.conftest import Cli
from tests.ledgers import every, wait_for_records

Found = Callable[[Path], dict[str, Any]]

TRAININGS = """
objective = "sphere"
[training]
dimension = 2
seconds = 0.1
[campaign]
name = "toy"
seeds = [3, 5, 8]
[[campaign.conditions]]
name = "loud"
training.noise = 0.03
[[campaign.conditions]]
name = "broken"
training.failure_rate = 1.0
[backend]
workers = 2
threads = 1
"""
"""Nine evaluations, three of which fail."""

SEARCHES = """
objective = "sphere"
[training]
dimension = 2
noise = 0.01
seconds = 0.05
[search]
tier = "min"
population = 4
[budget]
max_evals = 16
[evaluation]
assume_eval_seconds = 5.0
[campaign]
name = "toy"
cell = "search"
controls = false
[[campaign.conditions]]
name = "a"
search.sigma0 = 0.1
[[campaign.conditions]]
name = "b"
search.sigma0 = 0.2
[backend]
workers = 2
threads = 1
"""
"""Two searches of eight evaluations."""


def command(executor: str) -> tuple[str, ...]:
    return ("run", "c.toml", "--executor", executor, "--runs-dir", executor)


def kill_at(cli: Cli, run: Path, records: int) -> None:
    """Begin or go on, and kill the process when the run's ledger holds so many records."""
    cli.kill_at(run, records, *command("local"))


def settled(run: Path) -> list[tuple[int, int, int]]:
    ends = every(Settled, run)
    return [(e.generation, e.candidate, e.seed) for e in ends if e.status.final]


def test_a_campaign_killed_again_and_again_ends_like_one_that_never_was(
    cli: Cli, found: Found
) -> None:
    (cli.cwd / "c.toml").write_text(TRAININGS)
    whole = cli.run(*command("inline"))
    assert whole.returncode == 0, whole.stderr
    killed = cli.cwd / "local/campaign/toy"
    for count in (1, 5, 12):
        kill_at(cli, killed, count)
    assert len(settled(killed)) < 9

    resumed = cli.run(*command("local"))

    assert resumed.returncode == 0, resumed.stderr
    mine, own = found(killed), found(cli.cwd / "inline/campaign/toy")
    assert mine == own
    assert mine["plan"]["campaign"] == own["plan"]["campaign"]
    statuses = [str(status) for _, _, status, _ in mine["generations"][0]["results"]]
    assert statuses == 3 * ["ok"] + 3 * ["error"] + 3 * ["ok"]
    paid = settled(killed)
    assert len(paid) == len(set(paid)) == 9
    assert cli.run("verify", str(killed)).returncode == 0
    for name in ("effects.json", "manifest.json", "summary.md", "metrics.jsonl"):
        assert (killed / name).stat().st_size > 0


@pytest.mark.slow
def test_a_campaign_that_is_interrupted_says_how_to_go_on(cli: Cli) -> None:
    (cli.cwd / "c.toml").write_text(TRAININGS.replace("seconds = 0.1", "seconds = 0.5"))
    run = cli.cwd / "local/campaign/toy"
    process = cli.start(*command("local"))
    wait_for_records(process, run, 5)

    process.terminate()
    out, err = process.communicate(timeout=60)

    assert process.returncode == 143, err
    assert "Interrupted; nothing paid is lost. Repeat the command to go on." in out
    status = cli.run("status", "toy", "--runs-dir", "local")
    assert status.returncode == 0
    assert "loud" in status.stdout
    assert cli.run(*command("local")).returncode == 0
    assert len(settled(run)) == 9


@pytest.mark.slow
def test_a_campaign_of_searches_killed_in_the_second_ends_like_one_that_never_was(
    cli: Cli, found: Found
) -> None:
    (cli.cwd / "c.toml").write_text(SEARCHES)
    whole = cli.run(*command("inline"))
    assert whole.returncode == 0, whole.stderr
    first, second = (cli.cwd / f"local/phase1/toy.{name}_s1" for name in "ab")
    kill_at(cli, first, 6)
    kill_at(cli, second, 9)
    before = (first / LEDGER).read_bytes()

    resumed = cli.run(*command("local"), "--json")

    assert resumed.returncode == 0, resumed.stderr
    assert [one["decision"] for one in orjson.loads(resumed.stdout)["runs"]] == ["done", "done"]
    assert (first / LEDGER).read_bytes() == before
    for name in ("toy.a_s1", "toy.b_s1"):
        mine, own = (found(cli.cwd / where / "phase1" / name) for where in ("local", "inline"))
        assert mine["generations"] == own["generations"]
        paid = settled(cli.cwd / "local/phase1" / name)
        assert len(paid) == len(set(paid)) == 8


@pytest.mark.slow
@pytest.mark.parametrize("count", range(2, 22, 3))
def test_a_campaign_killed_anywhere_ends_alike(count: int, cli: Cli, found: Found) -> None:
    (cli.cwd / "c.toml").write_text(TRAININGS)
    assert cli.run(*command("inline")).returncode == 0
    killed = cli.cwd / "local/campaign/toy"

    kill_at(cli, killed, count)

    assert cli.run(*command("local")).returncode == 0
    assert found(killed) == found(cli.cwd / "inline/campaign/toy")
