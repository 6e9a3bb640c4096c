"""Whose a failure is, by what supervisors, Python, torch and CUDA say of it."""

import pytest

from budgets.events import Status
from budgets.failures import cause_of, is_setup

CUDA = "torch.AcceleratorError: CUDA error: "
SHARED = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total "
    "capacity of 79.15 GiB of which 18.94 MiB is free. Process 4711 has 40.00 GiB memory in use."
)
PREFIXES = ("ProgramFailedError: ", "objectives.process.ProgramFailedError: ")
PROGRAM = f"{PREFIXES[0]}exited with status 1: "
KERNELS = "killed by signal 9 SIGKILL: the kernel ran out of memory"
DIED = "the worker, its node or the orchestrator died"


ERRORS = {
    "configuration": {  # it would happen again anywhere
        "an exception": [
            "ValueError: n_head 3 must divide n_embd 64",
            "RuntimeError: CUDA error: invalid argument",
            "exited with status 2: train.py: error: unrecognized arguments: --momentun=0.0",
            f"{PROGRAM}Error: No such option: --momentun",
            # these only speak of devices, or of a setup
            "KeyError: 'xid'",
            "exited with status 1: RuntimeError: no NVIDIA driver, says the user",
            f"{PROGRAM}KeyError: 'xid'",
            "objectives.api.SetupError: no data",  # as it was recorded when it was final
            "exited with status 1: SetupError: no data",
            # the file that raised does not decide
            "ValueError: my bug at xid.py:12",
            "SystemExit at my run/ecc error.py:3",
        ],
        "no result was left": ["exited with 0, but no measurement.json was written"],
        "an assertion on the device": [f"{CUDA}device-side assert triggered"],
    },
    "ambiguous": {  # one case does not show it
        "killed by a signal": [
            "killed by signal 9 SIGKILL",
            "KeyboardInterrupt",
        ],
        "ended without a word": ["exited with status 3", "exited with status 3: something broke"],
        "a fault on the device": [
            f"{CUDA}an illegal memory access was encountered",
            "RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED",
            "torch.distributed.DistBackendError: NCCL error in: x.cpp:1",
        ],
        "storage failed": [
            "OSError: [Errno 28] No space left on device",
            "OSError: [Errno 5] Input/output error: 'x'",
            "exited with 0, but measurement.json cannot be read: Input/output error",
            f"{PROGRAM}OSError: [Errno 5] Input/output error: missing argument",
        ],
        "a connection failed": [
            "ConnectionResetError: [Errno 104]",
            "requests.exceptions.ConnectionError: x",
            f"{PROGRAM}ConnectionError: x",
            f"{PROGRAM}urllib3.exceptions.ReadTimeoutError: x",
        ],
    },
    "infrastructure": {  # the device is given up
        "the device or its driver failed": [
            f"{CUDA}uncorrectable ECC error encountered",
            f"{CUDA}NVRM: Xid (PCI:0000:3b:00): 79",
            "pynvml.NVMLError_GpuIsLost: GPU is lost",
            f"{CUDA}no CUDA-capable device is detected",
            f"{CUDA}CUDA-capable device(s) is/are busy or unavailable",
            f"{PROGRAM}{CUDA}invalid value for device ordinal xid 79",
            "RuntimeError: Found no NVIDIA driver on your system.",
            "pynvml.NVMLError_LibRmVersionMismatch: Driver/library version mismatch",
        ],
    },
}
OTHERS = [
    ("nan", "DivergedError: loss is inf", "configuration", "no score that can be compared"),
    ("timeout", "ran over 60 s", "configuration", "over its time limit"),
    ("timeout", "stalled: no output for 120 s", "configuration", "stalled"),
    ("oom", "used 310 MiB of 300 MiB", "configuration", "out of memory"),
    ("oom", "OutOfMemoryError: no Xid", "configuration", "out of memory"),
    ("oom", KERNELS, "ambiguous", "out of memory that others use too"),
    ("oom", SHARED, "ambiguous", "out of memory that others use too"),
    ("lost", "its supervisor was killed", "infrastructure", DIED),
    ("lost", "no sign of life from b for 75 s", "infrastructure", DIED),
    ("lost", "the run's disk is full (1 MiB free)", "infrastructure", "the run's disk was full"),
    ("cancelled", "its supervisor was told to end (SIGTERM)", "infrastructure", "cancelled"),
]


@pytest.mark.parametrize(
    ("status", "text", "whose", "what"),
    [
        *OTHERS,
        *(
            (status, text, whose, what)
            for whose, kinds in ERRORS.items()
            for what, texts in kinds.items()
            for text in texts
            for status in (("error", "lost") if whose == "infrastructure" else ("error",))
        ),
    ],
)
def test_whose_a_failure_is_and_what_it_was(status: str, text: str, whose: str, what: str) -> None:
    found = cause_of(Status(status), text)
    assert found is not None
    device_failed = what in ERRORS["infrastructure"]
    assert (found.whose, found.what, found.device_failed) == (whose, what, device_failed)


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.OK])
@pytest.mark.parametrize("text", ["", "\n", "?" * 300])
def test_every_other_end_has_one(status: Status, text: str) -> None:
    assert cause_of(status, text) is not None


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
