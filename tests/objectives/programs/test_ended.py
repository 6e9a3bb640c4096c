"""How a program ended, in words."""

import pytest

from objectives.api import OutOfMemoryError
from objectives.programs.ended import OUT_OF_MEMORY, Ended, ProgramFailedError


@pytest.mark.parametrize(
    ("ended", "words"),
    [
        (Ended(1, ("Traceback", "KeyError: 'x'", "  ")), "exited with status 1: KeyError: 'x'"),
        (Ended(2, ()), "exited with status 2"),
        (
            Ended(2, ("╭─ Error ─╮", "│ No such option: --x │", "╰───╯")),
            "exited with status 2: No such option: --x",
        ),
        (
            Ended(
                1,
                (
                    "Unknown command line flag 'x'",
                    "Pass --helpshort or --helpfull to see help on flags.",
                ),
            ),
            "exited with status 1: Unknown command line flag 'x'",
        ),
        (Ended(-11, ("now",)), "killed by signal 11 SIGSEGV: now"),
        (Ended(-35, ()), "killed by signal 35"),
    ],
)
def test_a_failure_says_how_and_the_last_words(ended: Ended, words: str) -> None:
    with pytest.raises(ProgramFailedError) as raised:
        ended.require_success()
    assert str(raised.value) == words


def test_a_failure_that_spoke_of_memory_is_out_of_memory() -> None:
    ended = Ended(1, ("bye",), "torch.OutOfMemoryError: CUDA out of memory.")
    with pytest.raises(OutOfMemoryError, match=r"status 1: torch.OutOfMemoryError: CUDA out of"):
        ended.require_success()


@pytest.mark.parametrize(
    "line",
    [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.",
        "RuntimeError: CUDA error: out of memory",
        "RuntimeError: MPS backend out of memory (MPS allocated: 1 GB)",
        "RuntimeError: [enforce fail at alloc_cpu.cpp:117] . DefaultCPUAllocator: can't allocate "
        "memory: you tried to allocate 800000000000 bytes.",
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying",
        "MemoryError",
        "MemoryError: Unable to allocate 7.28 TiB for an array",
        "terminate called after throwing an instance of 'std::bad_alloc'",
        "OSError: [Errno 12] Cannot allocate memory",
    ],
)
def test_what_programs_say_of_their_memory_is_known(line: str) -> None:
    assert OUT_OF_MEMORY.search(line)


@pytest.mark.parametrize(
    "line", ["memory: 12 GiB", "MemoryErrors: 0", "peak CUDA memory 3 GiB", "CUDA ok, out of data"]
)
def test_what_only_sounds_like_it_is_not(line: str) -> None:
    assert not OUT_OF_MEMORY.search(line)
