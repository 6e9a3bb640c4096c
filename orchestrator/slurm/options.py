"""What `[slurm]` in a configuration file may say, each value held to a pattern of its own."""

import re
from contextlib import suppress
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from orchestrator.planning.window import parse_hours

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+=,@-]{0,99}")
"""Of a run and its directory: no path, no option, nothing that a shell or SLURM reads twice."""

WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,:+@-]{0,199}")
CONSTRAINT = re.compile(r"[A-Za-z0-9_\[(][A-Za-z0-9_.,:&|*()\[\]-]{0,199}")
MEMORY = re.compile(r"[1-9][0-9]{0,8}[KMGT]?")
CLOCK = re.compile(r"(?:(\d{1,3})-)?(\d{1,3}):([0-5]\d):([0-5]\d)")
DIRECTIVE = re.compile(r"--([a-z][a-z0-9-]{1,40})(?:=[A-Za-z0-9_.,:/@%+*&|()\[\]=-]{1,200})?")
SETUP_WORD = re.compile(
    r"(?:[A-Za-z0-9_./+@=:,%^~-]|\$[A-Za-z_][A-Za-z0-9_]*|\$\{[A-Za-z_][A-Za-z0-9_]*\})+"
)

OWN = frozenset(
    (
        *("account", "array", "begin", "chdir", "constraint", "cpus-per-task", "dependency"),
        *("error", "exclusive", "export", "export-file", "gpus", "gpus-per-node", "gpus-per-task"),
        *("gres", "input", "job-name", "mem", "no-requeue", "nodes", "ntasks", "ntasks-per-node"),
        *("open-mode", "output", "parsable", "partition", "qos", "requeue", "signal", "test-only"),
        *("time", "wait", "wrap"),
    )
)
"""Directives that the export sets, or that would make a run another one than was exported."""

Seconds = Annotated[int, Field(ge=30, le=65535)]  # SLURM counts a signal's in 16 bits


def seconds_of(text: str) -> int:
    """Seconds of `HH:MM:SS`, `D-HH:MM:SS`, `90m`, `12h` or `2d`. Raises ValueError."""
    total = 0
    if found := CLOCK.fullmatch(text):
        days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
        total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    else:
        with suppress(ValueError):  # then it is nothing of either
            total = round(3600 * parse_hours("", text))
    if not 60 <= total <= 365 * 86400:
        raise ValueError("expected a minute to a year, such as 90m, 12h, 2d or 12:00:00")
    return total


def clock_text(seconds: int) -> str:
    """Seconds as SLURM writes a time limit: `HH:MM:SS`, with days in front from one on."""
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return (
        f"{days}-{hour:02d}:{minute:02d}:{second:02d}"
        if days
        else (f"{hour:02d}:{minute:02d}:{second:02d}")
    )


def _time(value: Any) -> Any:
    return clock_text(seconds_of(value)) if isinstance(value, str) else value


def _fits(pattern: re.Pattern[str], example: str) -> AfterValidator:
    def check(value: str) -> str:
        if not pattern.fullmatch(value):
            raise ValueError(f"expected something like {example}")
        return value

    return AfterValidator(check)


def _setup(line: str) -> str:
    """One command of plain words: nothing that begins another one, or redirects."""
    words = line.split(" ")
    if not line or not all(SETUP_WORD.fullmatch(word) for word in words) or line[0] in "-=$~":
        raise ValueError(
            "expected one plain command such as 'source .venv/bin/activate', 'module load cuda/12' "
            "or 'export DATA=$HOME/data'; put more than that into a script and source it"
        )
    return line


def _directive(line: str) -> str:
    found = DIRECTIVE.fullmatch(line)
    if found is None:
        raise ValueError("expected a long option without spaces, such as --mail-type=FAIL")
    if found[1] in OWN:
        raise ValueError(
            f"--{found[1]} is the export's own: use the key of [slurm] for it, if there is one"
        )
    return line


def _listed(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


Word = Annotated[str, _fits(WORD, "gpu or proj_17")]


class SlurmOptions(BaseModel):
    """How the jobs ask for their share of a cluster, and what they do before they start."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    partition: Word | None = None
    account: Word | None = None
    qos: Word | None = None
    constraint: Annotated[str, _fits(CONSTRAINT, "a100 or [rack1|rack2]")] | None = None
    time: Annotated[str, BeforeValidator(_time)] | None = None  # None: from the estimate
    gpus: Literal[0, 1] | None = None  # per evaluation at once; None: 1 where device is cuda
    gpu_type: (
        Annotated[str, _fits(re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}"), "a100")] | None
    ) = None
    nodes: Annotated[int, Field(ge=1, le=4096)] = 1
    cpus_per_task: Annotated[int, Field(ge=1, le=4096)] | None = None  # of a node; None: threads
    mem: Annotated[str, _fits(MEMORY, "32G")] | None = None  # of a node
    setup: Annotated[
        tuple[Annotated[str, AfterValidator(_setup)], ...], BeforeValidator(_listed)
    ] = ()
    extra: Annotated[
        tuple[Annotated[str, AfterValidator(_directive)], ...], BeforeValidator(_listed)
    ] = ()
    python: str | None = None  # the interpreter; None: the one that exports
    lead_seconds: Seconds | None = None  # before the limit nothing starts; None: an evaluation's
    max_requeues: Annotated[int, Field(ge=0, le=1000)] | None = None  # None: 10, of a search

    @property
    def time_seconds(self) -> int | None:
        return None if self.time is None else seconds_of(self.time)
