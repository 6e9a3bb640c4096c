"""Whose a failure is, by what supervisors, Python, torch and CUDA say of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgets.events import Status
from budgets.failures import cause_of, is_lost, is_setup, is_unexplained

CUDA = "torch.AcceleratorError: CUDA error: "
SHARED = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total "
    "capacity of 79.15 GiB of which 18.94 MiB is free. Process 4711 has 40.00 GiB memory in use."
)


USAGE = "the program does not take these arguments"


def found_in(status: str, text: str) -> tuple[str, str, bool]:
    found = cause_of(Status(status), text)
    assert found is not None
    return found.whose, found.what, found.device_failed


@pytest.mark.parametrize(
    ("status", "text", "whose", "what"),
    [
        ("nan", "DivergedError: loss is inf", "configuration", "no score that can be compared"),
        ("timeout", "ran over 60 s", "configuration", "over its time limit"),
        ("timeout", "stalled: no output for 120 s", "configuration", "stalled"),
        ("oom", "used 310 MiB of 300 MiB", "configuration", "out of memory"),
        ("oom", "OutOfMemoryError: no Xid", "configuration", "out of memory"),
        ("error", "ValueError: n_head 3 must divide n_embd 64", "configuration", "an exception"),
        ("error", "RuntimeError: CUDA error: invalid argument", "configuration", "an exception"),
        ("error", "SystemExit: 3", "configuration", "an exception"),
        ("error", "exited with status 1: ValueError: no", "configuration", "an exception"),
        ("error", "exited with status 1: a.b.OddError", "configuration", "an exception"),
        *(
            ("error", said, "configuration", USAGE)
            for said in (
                "exited with status 2: train.py: error: unrecognized arguments: --momentun=0.0",
                "exited with status 2: train.py: error: the following arguments are required: --lr",
                "exited with status 2: train.py: error: argument --act: invalid choice: 'x'",
                "exited with status 2: Error: No such option: --momentun Did you mean --momentum?",
                "exited with status 2: Error: Missing option '--lr'.",
                "exited with status 1: FATAL Flags parsing error: Unknown command line flag 'lrr'",
            )
        ),
        (
            "error",
            "exited with 0, but no measurement.json was written",
            "configuration",
            "no result was left",
        ),
        (
            "error",
            f"{CUDA}device-side assert triggered",
            "configuration",
            "an assertion failed on the device",
        ),
    ],
)
def test_what_would_happen_again_anywhere_is_the_configurations(
    status: str, text: str, whose: str, what: str
) -> None:
    assert found_in(status, text) == (whose, what, False)


@pytest.mark.parametrize("status", ["error", "lost"])
@pytest.mark.parametrize(
    ("text", "what"),
    [
        (f"{CUDA}uncorrectable ECC error encountered", "the device failed"),
        (f"{CUDA}uncorrectable NVLink error detected", "the device failed"),
        (f"{CUDA}NVRM: Xid (PCI:0000:3b:00): 79", "the device failed"),
        ("pynvml.NVMLError_GpuIsLost: GPU is lost", "the device failed"),
        ("RuntimeError: CUDA error: device lost", "the device failed"),
        (f"{CUDA}no CUDA-capable device is detected", "the device failed"),
        (f"{CUDA}CUDA-capable device(s) is/are busy or unavailable", "the device failed"),
        ("RuntimeError: Found no NVIDIA driver on your system.", "the device's driver failed"),
        (
            "RuntimeError: CUDA driver initialization failed, you might not have a CUDA gpu.",
            "the device's driver failed",
        ),
        (
            "pynvml.NVMLError_LibRmVersionMismatch: Driver/library version mismatch",
            "the device's driver failed",
        ),
    ],
)
def test_a_device_that_failed_is_the_infrastructures_and_to_be_withdrawn(
    status: str, text: str, what: str
) -> None:
    assert found_in(status, text) == ("infrastructure", what, True)


@pytest.mark.parametrize(
    ("status", "text", "what"),
    [
        ("lost", "its supervisor was killed", "the worker, its node or the orchestrator died"),
        (
            "lost",
            "no sign of life from b for 75 s",
            "the worker, its node or the orchestrator died",
        ),
        ("lost", "the run's disk is full (1 MiB free)", "the run's disk was full"),
        ("cancelled", "its supervisor was told to end (SIGTERM)", "cancelled"),
    ],
)
def test_what_was_lost_is_the_infrastructures(status: str, text: str, what: str) -> None:
    assert found_in(status, text) == ("infrastructure", what, False)


@pytest.mark.parametrize(
    ("status", "text", "what"),
    [
        ("error", "killed by signal 9 SIGKILL", "killed by a signal"),
        ("error", "killed by signal 15 SIGTERM", "killed by a signal"),
        ("error", "killed by signal 11 SIGSEGV", "killed by a signal"),
        ("error", "killed by signal 7 SIGBUS", "killed by a signal"),
        ("error", "KeyboardInterrupt", "killed by a signal"),
        ("error", "exited with status 3", "ended without a word"),
        ("error", "exited with status 3: something broke", "ended without a word"),
        ("error", f"{CUDA}an illegal memory access was encountered", "a fault on the device"),
        ("error", f"{CUDA}unspecified launch failure", "a fault on the device"),
        (
            "error",
            "RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED",
            "a fault on the device",
        ),
        (
            "error",
            "torch.distributed.DistBackendError: NCCL error in: x.cpp:1",
            "devices could not talk to each other",
        ),
        ("error", "OSError: [Errno 28] No space left on device", "storage failed"),
        ("error", "OSError: [Errno 5] Input/output error: 'x'", "storage failed"),
        ("error", "OSError: [Errno 116] Stale file handle", "storage failed"),
        (
            "error",
            "exited with 0, but measurement.json cannot be read: Input/output error",
            "storage failed",
        ),
        ("error", "ConnectionResetError: [Errno 104]", "a connection failed"),
        ("error", "urllib3.exceptions.ReadTimeoutError: x", "a connection failed"),
        ("error", "requests.exceptions.ConnectionError: x", "a connection failed"),
        (
            "oom",
            "killed by signal 9 SIGKILL: the kernel ran out of memory",
            "out of memory that others use too",
        ),
        ("oom", SHARED, "out of memory that others use too"),
    ],
)
def test_what_one_case_does_not_show_is_ambiguous(status: str, text: str, what: str) -> None:
    assert found_in(status, text) == ("ambiguous", what, False)


@pytest.mark.parametrize(
    "text",
    [
        "KeyError: 'xid'",
        "ValueError: column xid is missing",
        "RuntimeError: sensor: device unavailable",
        "RuntimeError: the packet's device was lost",
        "exited with status 1: RuntimeError: no NVIDIA driver, says the user",
        "ProgramFailedError: exited with status 1: KeyError: 'xid'",
    ],
)
def test_other_exceptions_that_speak_of_devices_are_the_configurations(text: str) -> None:
    assert found_in("error", text) == ("configuration", "an exception", False)


@pytest.mark.parametrize("file", ["xid.py", "nccl_utils.py", "my run/ecc error.py"])
def test_the_file_that_raised_does_not_decide_whose_a_failure_is(file: str) -> None:
    for text in (f"ValueError: my bug at {file}:12", f"SystemExit at {file}:3"):
        assert found_in("error", text) == ("configuration", "an exception", False)


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("usage: train: error: unrecognized arguments: --momentun=0.0", USAGE),
        ("Error: No such option: --momentun", USAGE),
        (f"{CUDA}invalid value for device ordinal xid 79", "the device failed"),
        ("OSError: [Errno 5] Input/output error: missing argument", "storage failed"),
    ],
)
def test_arguments_are_blamed_only_where_the_machine_says_nothing(words: str, what: str) -> None:
    found = cause_of(Status.ERROR, f"ProgramFailedError: exited with status 1: {words}")
    assert found is not None
    assert found.what == what


def test_what_went_well_has_no_cause() -> None:
    assert cause_of(Status.OK, "") is None


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.OK])
@pytest.mark.parametrize("text", ["", "\n", "?" * 300])
def test_every_other_end_has_one(status: Status, text: str) -> None:
    assert cause_of(status, text) is not None


# A program that an evaluation started


PREFIXES = ("ProgramFailedError: ", "objectives.process.ProgramFailedError: ")


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize(
    "words",
    [
        "killed by signal 9 SIGKILL",
        "killed by signal 11 SIGSEGV: step 300",
        "exited with status 3",
        "exited with status 3: something broke",
        "exited with status 1: KeyboardInterrupt",
        "exited with status 1: ValueError: no",
        "exited with status 1: torch.cuda.OddError",
        "exited with status 1: OSError: [Errno 28] No space left on device",
        f"exited with status 1: {CUDA}device-side assert triggered",
        f"exited with status 1: {CUDA}an illegal memory access was encountered",
        f"exited with status 1: {CUDA}uncorrectable ECC error encountered",
        "exited with status 1: RuntimeError: Found no NVIDIA driver on your system.",
        "killed by signal 6 SIGABRT: NVRM: Xid (PCI:0000:3b:00): 79",
    ],
)
def test_a_programs_end_is_judged_as_a_processs_own(prefix: str, words: str) -> None:
    found = cause_of(Status.ERROR, words)
    assert found is not None
    assert cause_of(Status.ERROR, prefix + words) is found
    assert (found.what == "an exception") == ("ValueError" in words or "OddError" in words)


@pytest.mark.parametrize("kind", ["ConnectionError", "urllib3.exceptions.ReadTimeoutError"])
def test_a_program_without_a_connection_is_judged_as_an_evaluation_without_one(kind: str) -> None:
    found = cause_of(Status.ERROR, f"{PREFIXES[0]}exited with status 1: {kind}: x")
    assert found is not None
    assert found is cause_of(Status.ERROR, f"{kind}: x")
    assert found.what == "a connection failed"


def test_what_a_program_only_mentions_is_an_exception() -> None:
    found = cause_of(Status.ERROR, f"{PREFIXES[0]}exited with status 1: ValueError: SetupError: x")
    assert found is not None
    assert (found.whose, found.what) == ("configuration", "an exception")


# The setup


@pytest.mark.parametrize("status", [Status.ERROR, Status.LOST])
@pytest.mark.parametrize(
    "text",
    ["SetupError: no data", "SetupError", f"SetupError: {CUDA}no CUDA-capable device is detected"],
)
def test_where_nothing_can_be_evaluated_it_is_the_setup(status: Status, text: str) -> None:
    found = cause_of(status, text)
    assert found is not None
    assert (found.whose, found.what, found.device_failed) == (
        "setup",
        "nothing can be evaluated",
        False,
    )
    assert is_setup(status, text) == (status is Status.LOST)
    assert not is_lost(status, text)


@pytest.mark.parametrize(
    "text",
    [
        "objectives.api.SetupError: no data",  # as it was recorded when it was final
        "ValueError: SetupError: no data",
        "SetupErrors: no",
        "exited with status 1: SetupError: no data",
    ],
)
def test_what_only_mentions_it_is_not(text: str) -> None:
    found = cause_of(Status.ERROR, text)
    assert found is not None
    assert found.what == "an exception"


@pytest.mark.parametrize("text", ["", "its node died", "CUDA error: device lost", "disk is full"])
def test_all_else_that_was_lost_was_lost_to_the_infrastructure(text: str) -> None:
    assert is_lost(Status.LOST, text)
    assert not is_setup(Status.LOST, text)
    assert not is_lost(Status.ERROR, text)


@given(st.sampled_from(Status), st.text(max_size=60))
def test_whoever_ran_a_program_that_said_nothing_known_its_end_is_judged_alike(
    status: Status, said: str
) -> None:
    """Whatever it said, that was the machine's or the candidate's doing, never the setup's."""
    ended = f"exited with status 1: {said}"
    own, programs = (cause_of(status, f"{prefix}{ended}") for prefix in ("", PREFIXES[0]))
    assert own == programs or (programs is not None and programs.what == "a connection failed")
    assert own is None or own.whose != "setup"
    lost = [is_lost(status, ended), is_setup(status, ended)]
    assert lost == [status is Status.LOST, False]


@pytest.mark.parametrize(
    ("status", "text", "expected"),
    [
        (Status.LOST, "its supervisor was killed", True),
        (Status.LOST, "SetupError: the data has changed", False),
        (Status.ERROR, "ValueError: no", False),
    ],
)
def test_an_attempt_lost_with_its_worker_may_have_done_it_itself(
    status: Status, text: str, expected: bool
) -> None:
    assert is_unexplained(status, text) is expected
