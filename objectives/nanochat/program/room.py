"""Whether this machine has what a run asks for: a device, and disk."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from rich.filesize import decimal

from objectives.api import SetupError
from objectives.nanochat.program.forecast import Forecast
from objectives.nanochat.program.settings import ProgramConfig
from objectives.nanochat.program.store import Entry

Free = Callable[[Path], int]


def device_for(wanted: Literal["auto", "cpu", "cuda"]) -> str:
    """ "cpu" or "cuda". Raises SetupError when torch does not see the GPU that is wanted."""
    import torch

    there = torch.cuda.is_available()
    if wanted == "cuda" and not there:
        raise SetupError(
            f"device cuda: torch {torch.__version__} sees no GPU here: --set device=cpu, or "
            "install a torch built for CUDA"
        )
    return "cuda" if there and wanted != "cpu" else "cpu"


def free_bytes(directory: Path) -> int:
    """Free bytes on the disk where `directory` is or would be made. Raises OSError."""
    existing = next(path for path in (directory, *directory.absolute().parents) if path.exists())
    return shutil.disk_usage(existing).free


def require_disk(
    expected: Forecast, program: ProgramConfig, held: Sequence[Entry], free: Free
) -> None:
    """Raises SetupError when the checkpoints to come do not fit beside those already `held`."""
    needed = max(0, expected.disk_bytes - sum(entry.bytes for entry in held))
    there = free(program.checkpoint_dir)
    if there < needed:
        raise SetupError(
            f"{program.checkpoint_dir} needs {decimal(needed)} more for {program.most_kept} "
            f"checkpoints of {decimal(expected.checkpoint_bytes)} and one while it is written, and "
            f"{decimal(there)} are free: free some, --set keep_checkpoints=1, or "
            "--set checkpoint_dir=DIR on another disk"
        )
