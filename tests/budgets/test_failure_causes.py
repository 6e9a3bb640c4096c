"""Whose a failure is, by what supervisors, Python, torch and CUDA say of it."""

import pytest

from budgets.events import Status
from budgets.failure_causes import cause_of

CUDA = "torch.AcceleratorError: CUDA error: "
SHARED = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total "
    "capacity of 79.15 GiB of which 18.94 MiB is free. Process 4711 has 40.00 GiB memory in use."
)
PROGRAM = "objectives.process.ProgramFailedError: exited with status 1: "

ERRORS = {
    "configuration": [  # it would happen again anywhere
        "ValueError: n_head 3 must divide n_embd 64",
        "RuntimeError: CUDA error: invalid argument",
        f"{CUDA}device-side assert triggered",
        "exited with status 2: train.py: error: unrecognized arguments: --momentun=0.0",
        f"{PROGRAM}Error: No such option: --momentun",
        "exited with 0, but no measurement.json was written",
        "lost 3 times: its supervisor was killed",
        # these only speak of devices, or of a setup
        "KeyError: 'xid'",
        "exited with status 1: RuntimeError: no NVIDIA driver, says the user",
        f"{PROGRAM}KeyError: 'xid'",
        "objectives.api.SetupError: no data",  # as it was recorded when it was final
        "exited with status 1: SetupError: no data",
        # the file that raised does not decide
        "ValueError: my bug at xid.py:12",
        "SystemExit at my run/connection reset.py:3",
    ],
    "ambiguous": [  # one case does not show it
        "killed by signal 9 SIGKILL",
        "KeyboardInterrupt",
        "exited with status 3: something broke",
        f"{CUDA}an illegal memory access was encountered",
        "RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED",
        "torch.distributed.DistBackendError: NCCL error in: x.cpp:1",
        "OSError: [Errno 28] No space left on device",
        "exited with 0, but measurement.json cannot be read: Input/output error",
        f"{PROGRAM}OSError: [Errno 5] Input/output error: missing argument",
        "requests.exceptions.ConnectionError: x",
        f"{PROGRAM}urllib3.exceptions.ReadTimeoutError: x",
    ],
    "infrastructure": [  # the device is no longer used
        f"{CUDA}uncorrectable ECC error encountered",
        f"{CUDA}NVRM: Xid (PCI:0000:3b:00): 79",
        "pynvml.NVMLError_GpuIsLost: GPU is lost",
        f"{CUDA}no CUDA-capable device is detected",
        f"{PROGRAM}{CUDA}CUDA-capable device(s) is/are busy or unavailable",
        "RuntimeError: Found no NVIDIA driver on your system.",
    ],
    "setup": ["SetupError: no data", f"SetupError: {CUDA}no CUDA-capable device is detected"],
}
OTHERS = [
    ("nan", "DivergedError: loss is inf", "configuration"),
    ("timeout", "ran over 60 s", "configuration"),
    ("oom", "OutOfMemoryError: no Xid", "configuration"),
    ("oom", "killed by signal 9 SIGKILL: the kernel ran out of memory", "ambiguous"),
    ("oom", SHARED, "ambiguous"),
    ("lost", "its supervisor was killed", "infrastructure"),
    ("lost", "the run's disk is full (1 MiB free)", "infrastructure"),
    ("lost", "SetupError: no data", "setup"),
    ("cancelled", "its supervisor was told to end (SIGTERM)", "infrastructure"),
]


@pytest.mark.parametrize(
    ("status", "text", "whose"),
    [*OTHERS, *(("error", text, whose) for whose, texts in ERRORS.items() for text in texts)],
)
def test_whose_a_failure_is(status: str, text: str, whose: str) -> None:
    found = cause_of(Status(status), text)
    assert found is not None
    assert found.whose == whose
    assert found.device_failed == (text in ERRORS["infrastructure"])
