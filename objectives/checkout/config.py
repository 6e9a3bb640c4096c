"""The settings of a search over a checkout of nanochat, and the knobs that it has by default."""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from objectives.environment import ONE_PROCESS, check_variables
from objectives.files import absolute
from objectives.program import ProgramConfig
from objectives.space import DeclaredKnob, Kind, SearchSpace

Flag = bool | int | float | str
"""`true` is the bare flag, `false` none at all."""

OURS = {
    "target-flops": "the setting target_flops is the budget",
    "num-iterations": "it would take precedence over target_flops, which is the budget",
    "resume-from-step": "every evaluation begins anew",
    "device-type": "whoever runs the evaluation gives it its device",
    "model-tag": "every evaluation has a directory of its own, and no other",
}
"""Flags that a configuration cannot have, and why."""

BASE = "NANOCHAT_BASE_DIR"

_FLAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")

Place = Annotated[str, BeforeValidator(absolute)]


class CheckoutConfig(ProgramConfig):
    """Every setting. Declared `knobs` are searched instead of the default ones."""

    checkout: Place  # the directory
    python: Place  # the interpreter that has nanochat's packages; default: the checkout's .venv
    module: str = Field(default="scripts.base_train", pattern=r"\A[A-Za-z_]\w*(\.[A-Za-z_]\w*)*\z")
    target_flops: float = Field(gt=0)  # of one evaluation, forward and backward
    flags: dict[str, Flag] = Field(default={})  # without the hyphens in front
    data: Place  # a directory of *.parquet, the last of them held out
    tokenizer: Place  # a directory with tokenizer.pkl and token_bytes.pt
    eager: bool = False  # torch.compile does nothing
    environment: dict[str, str] = Field(default={})
    pass_environment: tuple[str, ...] = ()  # names of variables of ours that it may see
    sources: tuple[str, ...] = ("nanochat/*.py", "scripts/*.py", "tasks/*.py")

    @model_validator(mode="before")
    @classmethod
    def _where_nanochat_has_them(cls, settings: Any) -> Any:
        if not isinstance(settings, dict):
            return settings
        base = os.environ.get(BASE) or "~/.cache/nanochat"
        defaults = {"data": f"{base}/base_data_climbmix", "tokenizer": f"{base}/tokenizer"}
        if isinstance(checkout := settings.get("checkout"), str) and checkout.strip():
            defaults["python"] = f"{checkout}/.venv/bin/python"
        return defaults | {name: value for name, value in settings.items() if value is not None}

    @field_validator("flags")
    @classmethod
    def _flags(cls, flags: dict[str, Flag]) -> dict[str, Flag]:
        for name in flags:
            if not _FLAG.fullmatch(name):
                raise ValueError(f"{name!r}: expected a flag's name without the hyphens in front")
            if why := OURS.get(name.replace("_", "-")):
                raise ValueError(f"{name} cannot be set here: {why}")
        return flags

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_variables(self.environment)  # here: pydantic would repeat a field's values
        for name in self.environment:
            if name == BASE:
                raise ValueError(f"{BASE}: every evaluation has its own; say data and tokenizer")
            if name in ONE_PROCESS:
                raise ValueError(f"{name}: an evaluation is one process on one device")
        for name, knob in self.knobs.items():
            if not _FLAG.fullmatch(name) or name.replace("_", "-") in OURS:
                raise ValueError(f"knobs: {name!r} is no flag that can be searched")
            if name in self.flags and self.flags[name] != knob.baseline:
                raise ValueError(
                    f"{name} is {self.flags[name]} in flags, and {knob.baseline:g} as a knob's "
                    "baseline: give only one"
                )
        return self

    @property
    def source(self) -> Path:
        """The file that is run."""
        return Path(self.checkout).joinpath(*self.module.split(".")).with_suffix(".py")

    def space(self) -> SearchSpace:
        """The declared knobs, else the default ones. Raises ValueError on an impossible range."""
        around = {name: _around(name, self.flags) for name in DEFAULT_KNOBS}
        return SearchSpace.declared(self.knobs or around)


class _Default(NamedTuple):
    """Where a knob begins unless a flag says otherwise, and its range around where it begins."""

    value: float  # nanochat's own, in July 2026
    ends: Callable[[float], tuple[float, float]]
    kind: Kind = "linear"


def _decade(value: float) -> tuple[float, float]:
    """A decade down and a decade up."""
    return value / 10, value * 10


DEFAULT_KNOBS: Mapping[str, _Default] = {
    "embedding-lr": _Default(0.3, _decade, "log10"),
    "unembedding-lr": _Default(0.008, _decade, "log10"),
    "matrix-lr": _Default(0.02, _decade, "log10"),
    "scalar-lr": _Default(0.5, _decade, "log10"),
    "weight-decay": _Default(0.28, lambda value: (0.0, 2 * value or 0.5)),
    "warmup-steps": _Default(40, lambda value: (0, max(2 * value, 10)), "int"),
    "warmdown-ratio": _Default(0.65, lambda _: (0.0, 1.0)),
    # Of the learning rate, at the end: half of it is more than anybody leaves.
    "final-lr-frac": _Default(0.05, lambda value: (0.0, 0.5 if value <= 0.5 else 1.0)),
}


def _around(name: str, flags: Mapping[str, Flag]) -> DeclaredKnob:
    default = DEFAULT_KNOBS[name]
    value = flags.get(name, default.value)
    try:
        if isinstance(value, str | bool) or value < 0:
            raise ValueError("expected a number")
        low, high = default.ends(float(value))
        return DeclaredKnob(kind=default.kind, min=low, max=high, baseline=float(value))
    except ValueError:
        raise ValueError(
            f"flags.{name}: a search cannot begin at {value}: declare its bounds as "
            f"[training.knobs.{name}], and those of the other knobs"
        ) from None
