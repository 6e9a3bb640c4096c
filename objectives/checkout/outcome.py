"""From what a training printed, and how it ended, to a measurement or to the reason for none."""

import json
import math
import os
import re
import stat
from pathlib import Path
from typing import Any, NoReturn

from objectives.api import DivergedError, Measurement, SetupError
from objectives.checkout.lines import Heard
from objectives.programs.ended import Ended, ProgramFailedError

MOST_META_BYTES = 1 << 20
CLOSE = 0.51e-4
"""Bits per byte: a score is printed with four decimals or more, and saved with all of them."""


METRICS = ("flops_per_token", "parameters", "tokens_per_second", "peak_mib", "epochs")

_SETUP = re.compile(
    r"^\S+: error: (?:unrecognized arguments|argument )"
    r"|^AssertionError: total_batch_size .* must be a multiple"
    r"|^FileNotFoundError|No dataset parquet files found|Token bytes not found"
    r"|^(?:ModuleNotFoundError|ImportError)|: No module named "
    r"|installation is not configured for (?:CUDA|MPS)"
)
"""What a program that failed says of a reason that is every candidate's."""


def measured(heard: Heard, ended: Ended, base: Path, eval_tokens: float | None) -> Measurement:
    """What the evaluation measured.

    The score is that of the last step, if that is the step that was planned: what nanochat calls
    its minimum may be the untrained model's. Raises the reason where there is none.
    """
    if ended.code != 0:
        _raise_failure(ended)
    steps, score = _final(heard, ended)
    require_agreement(score, steps, base)
    facts = heard.facts
    scored = _whole(eval_tokens or 0, facts.get("micro_batch_tokens", 0)) * len(heard.scores)
    metrics = {name: facts[name] for name in METRICS if name in facts}
    metrics |= {"initial_bpb": heard.scores[0][1], "checkpoint_bytes": float(held_bytes(base))}
    return Measurement(
        score=score,
        train_seconds=heard.train_seconds,
        steps=steps,
        tokens=int(facts.get("tokens", 0)),
        train_flops=facts.get("train_flops", 0.0),
        eval_flops=scored * facts.get("flops_per_token", 0.0) / 3,
        metrics={n: v for n, v in (metrics | heard.same).items() if math.isfinite(v)},
    )


def _whole(tokens: float, of: float) -> float:
    """Tokens that are scored: as many as fill micro-batches."""
    return tokens // of * of if of > 0 else 0.0


def _raise_failure(ended: Ended) -> NoReturn:
    """As the last that it said of a setup, unless its memory did not suffice; else as it ended."""
    said = next((line for line in reversed(ended.tail) if _SETUP.search(line)), None)
    if said is not None and not ended.short_of_memory:
        raise SetupError(said.strip())
    ended.require_success()
    raise AssertionError("it did not fail")


def _final(heard: Heard, ended: Ended) -> tuple[int, float]:
    """The planned steps and the score after them."""
    planned = heard.facts.get("steps")
    if planned is None or math.isnan(planned):
        raise SetupError(
            "it did not say how many iterations it calculates from the target FLOPs: expected a "
            f"nanochat whose scripts.base_train takes --target-flops{_last(ended)}"
        )
    if not heard.scores:
        raise SetupError(
            f"it printed no line 'Step N | Validation bpb': see eval-every{_last(ended)}"
        )
    step, score = heard.scores[-1]
    if step != planned:
        raise ProgramFailedError(
            f"exited with status 0 without a score at its last step {planned:.0f}: the last is "
            f"of step {step}{_last(ended)}"
        )
    if not math.isfinite(score):
        raise DivergedError(f"the score after {step} steps is {score}")
    return step, score


def _last(ended: Ended) -> str:
    return f". Its last line: {ended.last_line}" if ended.last_line else ""


def require_agreement(score: float, steps: int, base: Path) -> None:
    """Raises ProgramFailedError unless what was saved beside the model is the score.

    A checkout that saves nothing is believed.
    """
    for path in saved(base, steps):
        value = _saved_score(path)
        if not abs(value - score) <= CLOSE:
            raise ProgramFailedError(
                f"{path.name} has val_bpb {value}, and what was printed after {steps} steps is "
                f"{score}: expected one score"
            )


def saved(base: Path, steps: int) -> list[Path]:
    """`meta_*.json` of the last step: one, as every evaluation has a base directory of its own."""
    return sorted((base / "base_checkpoints").glob(f"*/meta_{steps:06d}.json"))


def _saved_score(path: Path) -> float:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            data = file.read(MOST_META_BYTES + 1)
        if len(data) > MOST_META_BYTES:
            raise ValueError(f"more than {MOST_META_BYTES} bytes")
        document: Any = json.loads(data)
        value = document["val_bpb"]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError(f"val_bpb is {type(value).__name__}, expected a number")
    except OSError as error:
        raise ProgramFailedError(f"{path.name} cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise ProgramFailedError(f"{path.name} is not what nanochat saves: {error}") from error
    return float(value)


def held_bytes(base: Path) -> int:
    """Of the files among the checkpoints, links not followed."""
    every = (path.lstat() for path in (base / "base_checkpoints").rglob("*"))
    return sum(status.st_size for status in every if stat.S_ISREG(status.st_mode))
