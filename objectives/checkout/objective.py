"""A user's own checkout of karpathy/nanochat: flags in, held-out bits per byte out.

The checkout stays as it is. Every evaluation is one process of its interpreter, in a base
directory of its own.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from objectives.api import (
    CommandLine,
    Context,
    Knobs,
    Measurement,
    ObjectiveSpec,
    SetupError,
    Variant,
    require_factor,
)
from objectives.checkout import command, data, preflight
from objectives.checkout.base import fresh, keep_record
from objectives.checkout.best import keep_if_best
from objectives.checkout.config import NO_SCORE, CheckoutConfig
from objectives.checkout.flags import Values, declared
from objectives.checkout.knobs import space
from objectives.checkout.lines import Heard
from objectives.checkout.outcome import measured, saved
from objectives.programs import git, interpreter, process, record, sources
from objectives.programs.declared import as_given
from objectives.programs.ended import ProgramFailedError
from objectives.space import SearchSpace

VERSION = 1  # part of the fingerprint: raise it with any change of ours that moves a score

MARK_DIGITS = 12
"""Hexadecimal: 48 bits, which a float has room for."""


@dataclass(frozen=True)
class CheckoutObjective:
    """Trains nanochat for `target_flops` and scores it on the shard that it holds out."""

    config: CheckoutConfig

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Raises ValueError on an unknown or a wrong setting."""
        objective = cls(CheckoutConfig.from_settings(settings))
        objective.space  # noqa: B018 - an impossible space is a wrong setting too
        return objective

    @property
    def spec(self) -> ObjectiveSpec:
        settings = self.config.model_dump(mode="json", exclude_none=True)
        return ObjectiveSpec(name="nanochat", settings=settings)

    @property
    def space(self) -> SearchSpace:
        return space(self.config)

    @property
    def fingerprint(self) -> str:
        """Raises SetupError when data or tokenizer cannot be read."""
        parts = {
            "settings": self.config.model_dump(mode="json", exclude=set(NO_SCORE)),
            "space": self.space.model_dump(),
            "data": data.shards(Path(self.config.data)).sha256,
            "tokenizer": data.tokenizer_sha256(Path(self.config.tokenizer)),
            "version": VERSION,
        }
        return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    @property
    def provenance(self) -> dict[str, str | int]:
        """`data_sha256` is over name, size and the last 64 KiB of each shard."""
        shards = data.shards(Path(self.config.data))
        versions = interpreter.versions(self.config.python)
        return {
            **git.revision(self.config.directory),
            **{f"program_{name}": version for name, version in versions.items()},
            "data": self.config.data,
            "data_files": shards.files,
            "data_bytes": shards.bytes,
            "data_sha256": shards.sha256,
            "tokenizer_sha256": data.tokenizer_sha256(Path(self.config.tokenizer)),
        }

    @property
    def preload(self) -> tuple[str, ...]:
        return (__name__,)

    def controls(self) -> tuple[Variant, ...]:
        """Nanochat's flags name no simpler model that everybody would compare with."""
        return ()

    def rung(self, factor: float) -> Variant:
        require_factor(factor)
        settings = {"target_flops": self.config.target_flops * factor}
        return Variant(label=f"{factor:g} x FLOPs", settings=settings, length=factor)

    def flops(self) -> None:
        """Only the program knows what its model computes; each evaluation reports it."""

    def command_line(self, knobs: Knobs, seed: int, context: Context) -> CommandLine:
        return command.command_line(self.config, self.space, knobs, seed, context)

    def arguments(self, knobs: Knobs) -> tuple[str, ...]:
        return command.knob_arguments(self.space, knobs)

    @property
    def reading(self) -> str:
        """How the score is found, for a person."""
        return "held-out bits per byte in the last `Step N | Validation bpb`, N the planned steps"

    @property
    def source_files(self) -> list[Path]:
        return sources.files(self.config.directory, self.config.sources)

    def preflight(self) -> tuple[str, ...]:
        return preflight.check(self.config, self.space)

    def evaluate(self, knobs: Knobs, seed: int, context: Context) -> Measurement:
        config = self.config
        trained_on = self._data_mark()
        heard = Heard(same={"same.eager": float(config.eager), "same.data": trained_on})
        assert config.code is not None
        sources.require_same(
            config.code, _digest(config), config.directory, lambda: self.source_files
        )
        line = self.command_line(knobs, seed, context)
        record.note(line, context, {"code": config.code})
        eval_tokens = Values(config, self.space, declared(config.source)).number("eval-tokens")
        with fresh(config, context.directory) as base:
            with self._blamed():
                ended = process.run(line, heard.line, context.heartbeat)
                found = measured(heard, ended, base, eval_tokens)
            if self._data_mark() != trained_on:
                raise SetupError(
                    f"the data in {config.data} or the tokenizer in {config.tokenizer} changed "
                    "while it trained: its score is of neither. Let nothing write there"
                )
            keep_record(base, found.steps, context.directory)
            if config.keep == "best":
                self._keep_if_best(base, found, knobs, seed)
        return found

    @contextmanager
    def _blamed(self) -> Iterator[None]:
        """The ready knobs move no size, so what nanochat says of its setup is every candidate's.

        A declared knob of whole numbers may be a shape: then it is this candidate's.
        """
        try:
            yield
        except SetupError as error:
            if any(knob.kind == "int" for knob in self.config.knobs.values()):
                raise ProgramFailedError(str(error)) from error
            raise

    def _data_mark(self) -> float:
        """Data and tokenizer by their hash, as far as a metric can hold it: one value in a run."""
        parts = (
            data.shards(Path(self.config.data)).sha256,
            data.tokenizer_sha256(Path(self.config.tokenizer)),
        )
        return float(int(sha256("".join(parts).encode()).hexdigest()[:MARK_DIGITS], 16))

    def _keep_if_best(self, base: Path, found: Measurement, knobs: Knobs, seed: int) -> None:
        """Runs of one fingerprint share the place: only their scores can be compared."""
        checkpoints = [path.parent for path in saved(base, found.steps)]
        if len(checkpoints) != 1:
            raise SetupError(
                f'keep = "best": expected the checkpoint of step {found.steps} in one directory of '
                f"base_checkpoints, found it in {len(checkpoints)}"
            )
        assert self.config.checkpoints is not None
        place = Path(self.config.checkpoints) / self.fingerprint[:10]
        facts = {
            "score": found.score,
            "knobs": as_given(self.space, knobs),
            "arguments": self.arguments(knobs),
            "seed": seed,
            "steps": found.steps,
        }
        keep_if_best(place, checkpoints[0], facts)


def _digest(config: CheckoutConfig) -> str:
    return sources.digest(config.directory, config.sources)
