"""What a fresh process imports: planning and looking must start without the heavy libraries."""

import subprocess
import sys
from typing import Any

HEAVY = {
    "torch", "ray", "cma", "numpy", "scipy", "scipy.stats", "jinja2", "matplotlib", "http.server",
}  # fmt: skip

MAIN = "from orchestrator.cli.app import main; main()"


def imported_by(code: str, *words: str, **options: Any) -> set[str]:
    """Those of the heavy ones that are there when the code, a line, is done."""
    said = f"print(*({HEAVY} & set(sys.modules)), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\ntry: {code}\nfinally: {said}", *words],
        capture_output=True, text=True, check=True, timeout=100, **options,
    )  # fmt: skip
    return set(done.stderr.splitlines()[-1].split())
