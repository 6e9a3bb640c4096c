"""What a program gets to see of our environment: what it needs, and nothing that it might leak."""

import os
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase

from objectives.secrets import is_secret_name

MARK = "ATTEMPT_ID"

ALLOWED = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM"),
    *("TMPDIR", "TEMP", "TMP", "XDG_*", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV"),
    *("LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "CC", "CXX", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("CUDA_VISIBLE_DEVICES", "CUDA_HOME", "CUDA_PATH", "CUBLAS_WORKSPACE_CONFIG", "NVIDIA_*"),
    *("*_NUM_THREADS", "PYTHONUNBUFFERED", "PYTHONHASHSEED", "HF_HOME", "HF_DATASETS_CACHE"),
    *("HF_HUB_OFFLINE", "TRANSFORMERS_CACHE", "TORCH_HOME", "TRITON_CACHE_DIR", MARK),
)
"""Names, with `*` for the rest of one. None of them holds a secret by custom, and none tells a
program that it is one of many: RANK, WORLD_SIZE, MASTER_ADDR and their like stay behind.
The mark is on all processes of an attempt: by it they are found when their supervisor is dead."""

ONE_PROCESS = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""With these a training believes to be one process of many, and waits for the others."""


def check_given(given: Mapping[str, str]) -> None:
    """Raises ValueError on a variable that no setting can give a program, naming it.

    The value of what looks like a secret is not repeated.
    """
    for name, value in given.items():
        if not name or "=" in name or "\0" in name:
            raise ValueError(f"environment: {name!r} is no name of an environment variable")
        if name == MARK:
            raise ValueError(
                f"environment.{name}: by it the processes of an evaluation are found when it has "
                "to be ended: expected another name"
            )
        if is_secret_name(name) and value and "{" not in value and not _is_count(value):
            raise ValueError(
                f"environment.{name} looks like a secret, and settings are written to the ledger: "
                f'set {name} where you start the search, and say pass_environment = ["{name}"]'
            )


def _is_count(value: str) -> bool:
    """Whether it is a small number: of tokens, say."""
    return value.isdigit() and len(value) < 6


def cleaned(
    also: Collection[str], given: Mapping[str, str], environ: Mapping[str, str] | None = None
) -> dict[str, str]:
    """What is allowed of our environment, the variables named in `also`, and those `given`."""
    ours = os.environ if environ is None else environ
    kept = {name: value for name, value in ours.items() if is_allowed(name) or name in also}
    return dict(sorted((kept | {"PYTHONUNBUFFERED": "1"} | dict(given)).items()))


def is_allowed(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in ALLOWED)
