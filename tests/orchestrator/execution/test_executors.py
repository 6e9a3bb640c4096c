from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from budgets.events import Status
from objectives import registry
from objectives.api import ObjectiveSpec, SetupError
from orchestrator.execution import attempts, processes
from orchestrator.execution.evaluate import Attempt, Executor, Launcher, Outcome, Slots
from orchestrator.execution.executors import LocalExecutor
from orchestrator.execution.inline import InlineExecutor
from orchestrator.execution.launch import Program
from orchestrator.execution.server import EngineError

Make = Callable[..., Attempt]
Eventually = Callable[..., float]
NOT_INLINE = ["fork", "exec"]


@pytest.fixture(params=["inline", *NOT_INLINE])
def executor(request: pytest.FixtureRequest, slots: Slots, tmp_path: Path) -> Iterator[Executor]:
    """Every executor on this machine; it ends while the attempts' directories are still there."""
    kind = request.param
    with ExitStack() as stack:
        if kind == "inline":
            yield stack.enter_context(InlineExecutor(slots))
        else:
            yield stack.enter_context(LocalExecutor(slots, kind))


def evaluate_all(executor: Executor, wanted: list[Attempt]) -> dict[str, Outcome]:
    """Every attempt's outcome, with all slots kept in use."""
    arrived: dict[str, Outcome] = {}
    waiting = list(wanted)
    while len(arrived) < len(wanted):
        in_flight = len(wanted) - len(waiting) - len(arrived)
        for _ in range(min(executor.slots.count - in_flight, len(waiting))):
            executor.submit(waiting.pop(0))
        arrived |= {outcome.attempt_id: outcome for outcome in executor.wait(30.0)}
    return arrived


def test_every_executor_gives_the_score_the_objective_gives(
    executor: Executor, make_attempt: Make
) -> None:
    (outcome,) = evaluate_all(executor, [make_attempt()]).values()
    assert outcome.status is Status.OK
    assert outcome.measurement is not None
    assert outcome.measurement.score == 1.0
    assert outcome.device == "cpu"
    assert 0.0 < outcome.startup_seconds < outcome.seconds
    assert outcome.cpu_seconds > 0.0


def test_a_real_training_in_a_process_of_its_own_scores_as_it_does_in_this_one(
    slots: Slots, make_attempt: Make
) -> None:
    settings = {"n_layer": 1, "n_embd": 16, "sequence_len": 64, "val_windows": 8}
    spec = ObjectiveSpec(name="nanochat", settings={**settings, "target_flops": 3e8})
    knobs = {knob.name: knob.baseline for knob in registry.load(spec).space.knobs}
    scores = []
    for executor in (InlineExecutor(slots), LocalExecutor(slots, "fork")):
        attempt = make_attempt().model_copy(update={"objective": spec, "knobs": knobs})
        with executor:
            (outcome,) = evaluate_all(executor, [attempt]).values()
        assert outcome.measurement is not None, outcome.cause
        scores.append(outcome.measurement.score)
    assert scores[0] == scores[1]


def test_the_summary_on_disk_is_the_outcome(executor: Executor, make_attempt: Make) -> None:
    attempt = make_attempt()
    (outcome,) = evaluate_all(executor, [attempt]).values()
    assert attempts.read_summary(attempt.directory, attempt.attempt_id) == outcome


def test_every_attempt_comes_back_once(executor: Executor, make_attempt: Make) -> None:
    wanted = [make_attempt() for _ in range(5)]
    assert set(evaluate_all(executor, wanted)) == {attempt.attempt_id for attempt in wanted}
    assert executor.wait(0.0) == []


def test_no_more_attempts_than_slots(executor: Executor, make_attempt: Make) -> None:
    for _ in range(executor.slots.count):
        executor.submit(make_attempt())
    with pytest.raises(EngineError, match="all 2 slots are in use"):
        executor.submit(make_attempt())


def test_an_objective_that_fails_is_an_error_with_its_traceback_kept(
    executor: Executor, make_attempt: Make
) -> None:
    attempt = make_attempt("nothing the registry knows")
    (outcome,) = evaluate_all(executor, [attempt]).values()
    assert outcome.status is Status.ERROR
    assert "unknown objective" in outcome.cause
    assert "Traceback" in (attempt.directory / "stderr.txt").read_text()


def test_a_relative_directory_is_refused(executor: Executor, make_attempt: Make) -> None:
    attempt = make_attempt().model_copy(update={"directory": Path("here")})
    with pytest.raises(ValueError, match="absolute directory"):
        executor.submit(attempt)


def test_waiting_ends_with_its_timeout(make_attempt: Make, slots: Slots, nasty: Program) -> None:
    with LocalExecutor(slots, program=nasty) as executor:
        executor.submit(make_attempt("hang"))
        assert executor.wait(0.1) == []


def test_a_hundred_evaluations_leave_no_descriptors_and_no_zombies(
    make_attempt: Make, slots: Slots, eventually: Eventually
) -> None:
    with LocalExecutor(slots) as executor:
        server = server_of(executor)
        evaluate_all(executor, [make_attempt()])
        descriptors = psutil.Process().num_fds()
        eventually(lambda: is_at_rest(server))
        of_server = server.num_fds()
        outcomes = evaluate_all(executor, [make_attempt() for _ in range(100)])
        assert {outcome.status for outcome in outcomes.values()} == {Status.OK}
        eventually(lambda: is_at_rest(server))
        assert psutil.Process().num_fds() == descriptors
        assert server.num_fds() == of_server
        spares = server.children(recursive=True)
    eventually(lambda: not any(processes.start_ticks(spare.pid) for spare in spares))


def is_at_rest(server: psutil.Process) -> bool:
    """True once nothing is left below the server but the supervisor and trainer kept ready."""
    below = server.children(recursive=True)
    return len(below) == 2 and all(processes.start_ticks(one.pid) for one in below)


def test_a_trainer_that_died_waiting_is_replaced(
    make_attempt: Make, slots: Slots, eventually: Eventually
) -> None:
    with LocalExecutor(slots) as executor:
        server = server_of(executor)
        eventually(lambda: is_at_rest(server))
        _, trainer = server.children(recursive=True)
        trainer.kill()
        eventually(lambda: trainer.status() == psutil.STATUS_ZOMBIE)
        (outcome,) = evaluate_all(executor, [make_attempt()]).values()
    assert outcome.status is Status.OK


def test_what_waits_for_a_launch_ends_with_a_killed_server(
    slots: Slots, eventually: Eventually
) -> None:
    with LocalExecutor(slots) as executor:
        server = server_of(executor)
        eventually(lambda: is_at_rest(server))
        spares = server.children(recursive=True)
        server.kill()
        eventually(lambda: not any(processes.start_ticks(spare.pid) for spare in spares))


def server_of(executor: LocalExecutor) -> psutil.Process:
    assert executor._server is not None
    return psutil.Process(executor._server.pid)


def test_a_dead_fork_server_is_replaced_and_loses_nothing_that_runs(
    make_attempt: Make, slots: Slots, nasty: Program, eventually: Eventually
) -> None:
    running = make_attempt("chatter")
    with LocalExecutor(slots, program=nasty) as executor:
        executor.submit(running)
        eventually((running.directory / "stdout.txt").exists)
        server = server_of(executor)
        server.kill()
        eventually(lambda: server.status() == psutil.STATUS_ZOMBIE)  # until the executor looks
        outcomes = evaluate_all(executor, [make_attempt("finish")])
        while len(outcomes) < 2:
            outcomes |= {outcome.attempt_id: outcome for outcome in executor.wait(20.0)}
    assert {outcome.status for outcome in outcomes.values()} == {Status.OK}


def test_an_attempt_whose_fork_server_died_before_it_began_is_lost(
    make_attempt: Make, slots: Slots
) -> None:
    with LocalExecutor(slots) as executor:
        server = server_of(executor)
        server.suspend()
        attempt = make_attempt()
        executor.submit(attempt)
        server.kill()
        (outcome,) = executor.wait(20.0)
        assert (outcome.status, outcome.cause) == (Status.LOST, "it was never started")
        (outcome,) = evaluate_all(executor, [make_attempt()]).values()
        assert outcome.status is Status.OK


def test_a_preload_that_cannot_be_imported_is_said_at_once(slots: Slots) -> None:
    with (
        pytest.raises(SetupError, match="no_such_module is not installed"),
        LocalExecutor(slots, preload=("no_such_module",)),
    ):
        pass


def test_more_gpus_than_exist_is_an_error() -> None:
    with pytest.raises(EngineError, match="3 GPUs asked for, but this machine offers 1"):
        LocalExecutor(Slots(3, "cuda", "", 1), gpu_ids=["0"])


@pytest.mark.parametrize("launcher", NOT_INLINE)
def test_each_slot_sees_its_own_gpu_only(
    launcher: Launcher, make_attempt: Make, nasty: Program
) -> None:
    slots = Slots(2, "cuda", "a GPU", 3)
    with LocalExecutor(slots, launcher, program=nasty, gpu_ids=["GPU-a", "GPU-b"]) as executor:
        wanted = [make_attempt("facts") for _ in range(2)]
        outcomes = evaluate_all(executor, wanted)
    seen = {
        attempt.attempt_id: (attempt.directory / "facts.json").read_text() for attempt in wanted
    }
    assert {outcome.device for outcome in outcomes.values()} == {"GPU-a", "GPU-b"}
    for name, outcome in outcomes.items():
        assert f'"CUDA_VISIBLE_DEVICES": "{outcome.device}"' in seen[name]
        assert '"OMP_NUM_THREADS": "3"' in seen[name]
