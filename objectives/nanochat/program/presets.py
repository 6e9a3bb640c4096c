"""Named settings: presets say how long and how often, profiles how the work is cut to the memory.

Every profile has an effective batch of 32 sequences, so that their results compare.
"""

from collections.abc import Mapping
from typing import Any

Named = Mapping[str, Mapping[str, Any]]

PRESETS: Named = {
    "quick": {  # does it run at all?
        "micro_batch_size": 2,
        "num_batches": 10,
        "save_interval_steps": 10,
        "eval_interval_steps": 10,
        "log_interval_steps": 1,
    },
    "low-memory": {  # one sequence at a time, the effective batch of "production"
        "micro_batch_size": 1,
        "gradient_accumulation_steps": 4,
        "gradient_checkpointing": True,
        "num_batches": 3738,
    },
    "high": {
        "micro_batch_size": 8,
        "gradient_accumulation_steps": 1,
        "num_batches": 10_000,
        "eval_interval_steps": 1000,
    },
    "production": {
        "micro_batch_size": 4,
        "gradient_accumulation_steps": 1,
        "num_batches": 10_000,
        "save_interval_steps": 100,
        "keep_best": True,
    },
}


def _profile(micro: int, accumulation: int, length: int, recompute: bool = True) -> dict[str, Any]:
    return {
        "micro_batch_size": micro,
        "gradient_accumulation_steps": accumulation,
        "sequence_len": length,
        "gradient_checkpointing": recompute,
        "dtype": "auto",
    }


PROFILES: Named = {
    "fast": _profile(8, 4, 1024, recompute=False),
    "balanced": _profile(4, 8, 2048),
    "quality": _profile(2, 16, 4096),
    "memory_efficient": _profile(1, 32, 2048),
}

CUSTOMARY: Mapping[str, tuple[float, float]] = {
    "micro_batch_size": (1, 16),
    "num_batches": (10, 100_000),
    "num_epochs": (1, 10),
    "save_interval_steps": (1, 1000),
    "eval_interval_steps": (100, 5000),
    "log_interval_steps": (1, 100),
}
"""Outside these a setting is unusual: worth a warning, no error."""


def unusual(values: Mapping[str, Any]) -> list[str]:
    """A warning for every setting among `values` outside its customary range."""
    return [
        f"{name} {value:g} is outside the customary {low:g} to {high:g}"
        for name, (low, high) in CUSTOMARY.items()
        if (value := values.get(name)) is not None and not low <= value <= high
    ]
