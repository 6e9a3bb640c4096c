"""What another Python interpreter has installed."""

import json
import re
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
def versions(python: str, setting: str = "python") -> dict[str, str]:
    """Versions by name: `python`, and of `PACKAGES` those that are there.

    It is started where no file of a user's passes for a module of the standard library. Raises
    SetupError, naming the setting, if that is no Python interpreter.
    """
    try:
        answer = subprocess.run(
            (_absolute(python), "-c", _ASK % (PACKAGES,)),
            cwd="/",
            env=cleaned((), {}),
            capture_output=True,
            check=True,
            text=True,
            timeout=LIMIT_SECONDS,
        ).stdout
        return {str(name): str(version) for name, version in json.loads(answer).items()}
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        reason = getattr(error, "strerror", None) or _first_line(error)
        raise SetupError(
            f"expected a Python interpreter, got {python!r}: {reason}. Name another one with the "
            f"setting {setting}"
        ) from error


def is_python(program: str) -> bool:
    """Whether a program is called as Python interpreters are."""
    return re.fullmatch(r"(python|pypy)[0-9.]*t?", Path(program).name) is not None


def _absolute(program: str) -> str:
    """A path from our directory on; a bare name is looked for in PATH."""
    return str(Path(program).absolute()) if "/" in program else program


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
