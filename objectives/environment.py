"""What a program sees of our environment, and what is recorded of it."""

import json
import os
import re
import subprocess
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from objectives.api import CommandLine, Context, SetupError
from objectives.process import MARK
from objectives.secrets import HIDDEN, is_secret_name, redacted

ALLOWED = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM"),
    *("TMPDIR", "TEMP", "TMP", "XDG_*", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV"),
    *("LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "CC", "CXX", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("CUDA_VISIBLE_DEVICES", "CUDA_HOME", "CUDA_PATH", "CUBLAS_WORKSPACE_CONFIG", "NVIDIA_*"),
    *("*_NUM_THREADS", "PYTHONUNBUFFERED", "PYTHONHASHSEED", "HF_HOME", "HF_DATASETS_CACHE"),
    *("HF_HUB_OFFLINE", "TRANSFORMERS_CACHE", "TORCH_HOME", "TRITON_CACHE_DIR", MARK),
)
"""Names (`*`: any rest) that hold no secret, and tell no program that it is one of many."""

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

ONE_PROCESS = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""With these a training believes to be one process of many, and waits for the others."""

PROGRAM = "program.json"
"""In an evaluation's directory: what was started, without secrets."""

PACKAGES = ("torch", "numpy", "jax")
"""Packages whose versions are recorded."""

PYTHON_SECONDS = 60.0

_VERSIONS = """
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


def check_variables(variables: Mapping[str, str]) -> None:
    """Raises ValueError on a variable that looks like a secret, without repeating its value."""
    for name, value in variables.items():
        is_count = value.isdigit() and len(value) < 6  # of tokens, say
        if is_secret_name(name) and value and "{" not in value and not is_count:
            raise ValueError(
                f"environment.{name} looks like a secret, and settings are written to the ledger: "
                f'set {name} where you start the search, and say pass_environment = ["{name}"]'
            )


def program_environment(
    context: Context, also: Collection[str], variables: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment of an evaluation's program: `cleaned`, with its device and threads."""
    own = {**dict.fromkeys(THREADS, str(context.threads)), **variables}
    if context.device == "cpu":
        own["CUDA_VISIBLE_DEVICES"] = ""
    if context.attempt_id:
        own[MARK] = context.attempt_id
    return cleaned(also, own)


def cleaned(also: Collection[str], variables: Mapping[str, str]) -> dict[str, str]:
    """Return what is allowed of our environment, the names in `also`, and the `variables`."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in also or any(fnmatchcase(name, pattern) for pattern in ALLOWED)
    }
    return dict(sorted((kept | {"PYTHONUNBUFFERED": "1"} | dict(variables)).items()))


def shown(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without its secrets."""
    return {
        name: HIDDEN if is_secret_name(name) else redacted(value, os.environ)
        for name, value in environment.items()
    }


def record(line: CommandLine | None, context: Context, facts: Mapping[str, str | int]) -> None:
    """Write `program.json`: the command (None: a function of this process) and the facts."""
    document: dict[str, object] = {"environment": shown(cleaned((), {}))}
    if line is not None:
        document = {
            "argv": [redacted(argument, os.environ) for argument in line.argv],
            "directory": str(line.directory),
            "environment": shown(line.environment),
        }
    path = context.directory / PROGRAM
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(json.dumps(document | dict(facts), indent=2) + "\n")


def is_python(program: str) -> bool:
    """Return whether the program has the name of a Python interpreter."""
    return re.fullmatch(r"(python|pypy)[0-9.]*t?", Path(program).name) is not None


@cache
def python_versions(python: str, setting: str) -> dict[str, str]:
    """Return `program_python`, and `program_NAME` of the `PACKAGES` that the interpreter has.

    Raises SetupError, naming the setting, if that is not a Python interpreter.
    """
    program = str(Path(python).absolute()) if "/" in python else python
    try:
        answer = subprocess.run(
            (program, "-c", _VERSIONS % (PACKAGES,)),
            cwd="/",  # where no file of the user's passes for a module of the standard library
            env=cleaned((), {}),
            capture_output=True,
            check=True,
            text=True,
            timeout=PYTHON_SECONDS,
        ).stdout
        return {f"program_{name}": str(version) for name, version in json.loads(answer).items()}
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        reason = getattr(error, "strerror", None) or f"{error}".partition("\n")[0]
        raise SetupError(
            f"expected a Python interpreter, got {python!r}: {reason}. Name another one with the "
            f"setting {setting}"
        ) from error
