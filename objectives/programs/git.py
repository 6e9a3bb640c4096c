"""Which commit a directory is at, for the record."""

import os
import subprocess
from pathlib import Path

LIMIT_SECONDS = 30.0


def revision(directory: Path) -> dict[str, str | int]:
    """`commit`, and `dirty` (1 if a file that git follows differs from it); empty without git."""
    try:
        commit = _git(directory, "rev-parse", "HEAD").strip()
        changed = _git(directory, "status", "--porcelain", "--untracked-files=no", "--", ".")
    except (OSError, subprocess.SubprocessError):
        return {}
    return {"commit": commit, "dirty": int(bool(changed.strip()))}


def _git(directory: Path, *arguments: str) -> str:
    """What git answers. It starts no monitor that the directory names, and changes nothing."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return subprocess.run(
        ("git", "-C", str(directory), "-c", "core.fsmonitor=false", *arguments),  # noqa: S607
        env=ours | {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
        capture_output=True,
        check=True,
        text=True,
        errors="replace",
        timeout=LIMIT_SECONDS,
    ).stdout
