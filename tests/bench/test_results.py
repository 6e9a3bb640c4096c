from dataclasses import replace
from pathlib import Path

from scripts.bench.contenders.registry import ENTRIES
from scripts.bench.race import Outcome
from scripts.bench.results import Result, Store
from scripts.bench.runs import Task, missing, run, run_all


def result(contender: str = "ours", tier: str = "min") -> Result:
    outcome = Outcome({0.5: 0.25, 1.0: 0.125}, 16)
    version = ENTRIES[contender].version if ENTRIES[contender].is_here else ""
    return Result(tier, contender, "own:sphere:1:0:white", "0", outcome, version)


def test_what_was_added_is_read_again(tmp_path: Path) -> None:
    results = [result(), result("pycma"), result(tier="max")]
    Store(tmp_path / "new").add(results)
    assert sorted(r.name for r in Store(tmp_path / "new").read()) == sorted(r.name for r in results)
    assert result() in Store(tmp_path / "new").read()


def test_a_line_cut_off_is_run_again_and_spoils_no_other(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.add([result(), result("pycma")])
    path = tmp_path / "min.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    assert store.read() == [result()]
    store.add([result("cmaes")])
    assert {r.contender for r in store.read()} == {"ours", "cmaes"}


def test_what_has_a_result_is_not_run_again() -> None:
    tasks = [Task("min", name, "own:sphere:1:0:white") for name in ("ours", "pycma")]
    assert missing(tasks, [result()]) == tasks[1:]


def test_what_another_version_of_a_contender_did_is_run_again() -> None:
    task = Task("min", "ours", "own:sphere:1:0:white")
    assert missing([task], [replace(result(), version="ours 00000000")]) == [task]


def test_what_crashed_is_run_again_if_that_is_asked(tmp_path: Path) -> None:
    crashed, task = result(), Task("min", "ours", "own:sphere:1:0:white")
    crashed.outcome.error = "TypeError: no"
    assert missing([task], [crashed]) == []
    assert missing([task], [crashed], retry=True) == [task]
    Store(tmp_path).add([crashed, result()])
    assert Store(tmp_path).read() == [result()]


def test_a_run_is_the_same_in_another_process() -> None:
    tasks = [
        Task("min", name, f"own:kinks:{n}:1:shared") for n in (1, 2) for name in ("ours", "pycma")
    ]
    found = {r.name: r for some in run_all(tasks, jobs=2, chunk=1) for r in some}
    for task in tasks:
        assert found[task.name].outcome.regrets == run(task).outcome.regrets
