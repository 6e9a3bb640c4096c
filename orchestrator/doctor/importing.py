"""Imports what trains and searches, and says how that went: a process of its own for `doctor`."""

import importlib
import json
import sys
import time
from typing import Any


def main() -> None:
    """One JSON object: what failed, how long it took, what CUDA torch sees."""
    began, failed = time.monotonic(), {}
    for name in sys.argv[1:]:
        try:
            importlib.import_module(name)
        except (ImportError, OSError, RuntimeError, AttributeError, ValueError) as error:
            said = str(error).strip().splitlines() or [type(error).__name__]
            failed[name] = said[0][:300]
    seconds = time.monotonic() - began
    devices, built = 0, None
    if "torch" in sys.modules and "torch" not in failed:
        torch: Any = sys.modules["torch"]
        devices, built = torch.cuda.device_count(), torch.version.cuda
    answer = {"failed": failed, "seconds": seconds, "cuda_devices": devices, "cuda_built": built}
    sys.stdout.write(f"{json.dumps(answer)}\n")


if __name__ == "__main__":
    main()
