"""The ledger's words."""

from enum import StrEnum


class Status(StrEnum):
    """How an evaluation ended."""

    OK = "ok"
    NAN = "nan"  # finished with a score that is no finite number, or diverged on the way
    OOM = "oom"
    TIMEOUT = "timeout"  # over its wall or stall limit
    ERROR = "error"
    LOST = "lost"  # its worker, node or orchestrator died: nobody's candidate is to blame
    CANCELLED = "cancelled"
