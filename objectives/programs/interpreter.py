"""What another Python interpreter has installed."""

import json
import subprocess
from functools import cache
from pathlib import Path

from objectives.api import SetupError
from objectives.programs.environment import cleaned

LIMIT_SECONDS = 60.0
PACKAGES = ("torch", "numpy", "jax")
_ASK = """
import json, platform
from importlib import metadata
found = {"python": platform.python_version()}
for name in %r:
    try:
        found[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
print(json.dumps(found))
"""


@cache
def versions(python: str) -> dict[str, str]:
    """Versions by name: `python`, and of `PACKAGES` those that are there.

    Raises SetupError if that is no Python interpreter.
    """
    try:
        answer = subprocess.run(
            (python, "-c", _ASK % (PACKAGES,)),
            env=cleaned((), {}),
            capture_output=True,
            check=True,
            text=True,
            timeout=LIMIT_SECONDS,
        ).stdout
        return {str(name): str(version) for name, version in json.loads(answer).items()}
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise SetupError(
            f"expected a Python interpreter, got {python!r}: {reason}. Name another one with the "
            "setting python"
        ) from error


def is_python(program: str) -> bool:
    """Whether a program is called as Python interpreters are."""
    return Path(program).name.startswith("python")
