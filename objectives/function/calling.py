"""One call of a user's function: a heartbeat while it computes, and its answer as a measurement."""

import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Real
from typing import Any

from pydantic import ValidationError

from objectives.api import Measurement, NoScoreError
from objectives.programs.process import LEAST_CPU_SHARE, cpu_seconds
from objectives.settings import cut, in_words

CHECK_SECONDS = 2.0

Heartbeat = Callable[[Mapping[str, float]], None]


@contextmanager
def beating(heartbeat: Heartbeat, every_seconds: float = CHECK_SECONDS) -> Iterator[None]:
    """Within the block a heartbeat, whenever this process or one that it started has computed."""
    over = threading.Event()
    thread = threading.Thread(target=_beat, args=(heartbeat, every_seconds, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _beat(heartbeat: Heartbeat, every_seconds: float, over: threading.Event) -> None:
    """Other processes are looked at only while this one rests: to look at all takes time."""
    own, others = _own_cpu_seconds(), math.inf
    least = LEAST_CPU_SHARE * every_seconds
    while not over.wait(every_seconds):
        own_before, own = own, _own_cpu_seconds()
        is_alive = own - own_before >= least
        if not is_alive:
            others_before, others = others, _others_cpu_seconds()
            is_alive = others - others_before >= least
        if is_alive:
            heartbeat({})


def _own_cpu_seconds() -> float:
    """Without what this thread takes to look."""
    return time.process_time() - time.thread_time()


def _others_cpu_seconds() -> float:
    """Of what this process started, as far as it lives or was waited for."""
    times = os.times()
    return times.children_user + times.children_system + cpu_seconds(os.getpid(), itself=False)


def measurement_of(value: object, train_seconds: float) -> Measurement:
    """What a function returned as a measurement; one without its own time took `train_seconds`.

    Raises NoScoreError, naming what came. Not a number is a score too: the runner calls it `nan`.
    """
    if isinstance(value, Measurement):
        return value
    if isinstance(value, Mapping):
        fields = {"train_seconds": train_seconds, **_plain(value)}
        try:
            return Measurement.model_validate(fields)
        except ValidationError as error:
            raise NoScoreError(f"the function returned a mapping: {in_words(error)}") from error
    number = _plain(value)
    if isinstance(number, Real) and not isinstance(number, bool):
        try:
            return Measurement(score=float(number), train_seconds=train_seconds)
        except OverflowError:
            raise NoScoreError("the function returned a number that no float can hold") from None
    shown = repr(value) if value is None or isinstance(value, str | bool) else type(value).__name__
    raise NoScoreError(
        f"the function returned {cut(shown, 60)}: expected a number, a Measurement, or a mapping "
        "with its fields"
    )


def _plain(value: Any) -> Any:
    """Without arrays of no dimension, as numpy and torch make one of a number."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        return value.item()
    return value
