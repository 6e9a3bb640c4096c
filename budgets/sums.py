"""The sums of a plan by hand: tokens, steps, checkpoints and campaigns. Pure arithmetic.

Each is what a person would write on the back of an envelope, so each says its formula. Raises
ValueError on a quantity that must be positive and is not.
"""

from math import ceil


def total_tokens(samples: int, tokens_per_sample: float, epochs: float) -> float:
    """samples * tokens of one * epochs."""
    return samples * tokens_per_sample * epochs


def hours_of_tokens(tokens: float, tokens_per_second: float) -> float:
    """tokens / throughput / 3600."""
    _require_positive("tokens per second", tokens_per_second)
    return tokens / tokens_per_second / 3600


def steps_of_samples(samples: int, batch: int, epochs: float = 1.0) -> int:
    """ceil(samples / batch) an epoch, so many epochs: the last batch may be smaller."""
    _require_positive("batch", batch)
    return round(ceil(samples / batch) * epochs)


def seconds_of_steps(steps: int, steps_per_second: float) -> float:
    """steps / speed."""
    _require_positive("steps per second", steps_per_second)
    return steps / steps_per_second


def checkpoint_bytes(size_bytes: float, num_batches: int, save_interval_steps: int) -> float:
    """size * (num_batches / save_interval_steps): of checkpoints that are all kept."""
    _require_positive("save_interval_steps", save_interval_steps)
    return size_bytes * (num_batches / save_interval_steps)


def effective_parallelism(
    runs: int, *, parallel: bool, max_workers: int | None = None, max_concurrent: int | None = None
) -> int:
    """min(max_workers or runs, runs, max_concurrent if there is one) when parallel, otherwise 1."""
    if not parallel:
        return 1
    limits = [runs, runs if max_workers is None else max_workers]
    return min(limits if max_concurrent is None else [*limits, max_concurrent])


def campaign_seconds(
    runs: int, median_seconds: float, effective: int, stagger_seconds: float = 0.0
) -> float:
    """runs * median / effective parallelism + stagger * (effective - 1).

    Counted in steps (conditions * seeds * max_steps, the median of one step) it is the same sum.
    """
    _require_positive("effective parallelism", effective)
    return runs * median_seconds / effective + stagger_seconds * (effective - 1)


def _require_positive(name: str, value: float) -> None:
    if not value > 0:
        raise ValueError(f"{name}: expected more than 0, got {value:g}")
