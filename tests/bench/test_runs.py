"""Results on disk: nothing is run twice, and a line that was cut off spoils no other."""

from dataclasses import replace
from pathlib import Path

from scripts.bench.contenders import ENTRIES
from scripts.bench.race import Outcome
from scripts.bench.runs import Result, Store, Task, missing, run, run_all

TASK = Task("min", "ours", "own:sphere:1:0:white")


def result(contender: str = "ours", tier: str = "min") -> Result:
    outcome = Outcome({0.5: 0.25, 1.0: 0.125}, 16)
    version = ENTRIES[contender].version if ENTRIES[contender].is_here else ""
    return Result(tier, contender, TASK.problem, "0", outcome, version)


def test_a_line_cut_off_is_run_again_and_spoils_no_other(tmp_path: Path) -> None:
    store = Store(tmp_path / "new")
    store.add([result(), result("pycma")])
    assert store.read() == [result(), result("pycma")]
    path = tmp_path / "new/min.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    assert store.read() == [result()]
    store.add([result("cmaes")])
    assert {r.contender for r in store.read()} == {"ours", "cmaes"}


def test_what_has_a_result_of_this_version_is_not_run_again() -> None:
    crashed = replace(result(), outcome=Outcome({1.0: 1.0}, error="TypeError: no"))
    assert missing([TASK], [result()]) == []
    assert missing([TASK], [replace(result(), version="ours 00000000")]) == [TASK]
    assert missing([TASK], [crashed]) == []
    assert missing([TASK], [crashed], retry=True) == [TASK]


def test_a_run_is_the_same_in_another_process() -> None:
    tasks = [
        Task("min", name, f"own:kinks:{n}:1:shared") for n in (1, 2) for name in ("ours", "pycma")
    ]
    found = {r.name: r for some in run_all(tasks, jobs=2, chunk=1) for r in some}
    for task in tasks:
        assert found[task.name].outcome.regrets == run(task).outcome.regrets
