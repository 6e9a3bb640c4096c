"""A user's own checkout of karpathy/nanochat: flags in, held-out bits per byte out.

The checkout stays as it is. Every evaluation is one process of its interpreter, in a base
directory of its own.
"""

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from objectives.api import Context, Knobs, Measurement, SetupError, digest
from objectives.command import OUTPUT, CommandConfig, CommandObjective, Scalar
from objectives.files import Place, cache_directory
from objectives.process import ONE_PROCESS, check_variables
from objectives.program import ProgramConfig, ProgramObjective, hashes
from objectives.results import Failure, Locator
from objectives.settings import unknown

MODULE = "scripts.base_train"
SHIM = Path(__file__).with_name("shim.py")
BASE = "NANOCHAT_BASE_DIR"

TAIL_BYTES = 64 << 10
"""Of each shard that are hashed: the end of a parquet file says where everything in it lies."""

SOURCES = ("nanochat", "scripts", "tasks")  # their *.py decide a score
TOKENIZER_FILES = ("tokenizer.pkl", "token_bytes.pt")

DEFAULT_FLAGS: Mapping[str, Scalar] = {
    "run": "dummy",  # no wandb
    "device-type": "{device}",
    "core-metric-every": -1,  # it would download its tasks
    "sample-every": -1,
    "eval-every": 1_000_000_000,  # steps, as no run has: step 0 and the last are scored
}
"""Given where the checkout has them, unless the configuration says otherwise."""

OURS = frozenset({"target-flops", "num-iterations", "resume-from-step", "device-type", "model-tag"})
"""Flags that an evaluation sets, or that would take its budget or its directory from it."""

SCORE = Locator(pattern=r"^Step (?!0+ )\d+ \| Validation bpb: (\S+)")
"""The last scoring after the untrained model's, which is that of step 0."""

MEASURES = {
    "steps": Locator(pattern=r"^Calculated number of iterations from target FLOPs: (\S+)"),
    "tokens": Locator(pattern=r"^Total number of training tokens: (\S+)"),
    "train_flops": Locator(pattern=r"^Total training FLOPs estimate: (\S+)"),
    "peak_mib": Locator(pattern=r"^Peak memory usage: (\S+)MiB"),
    "loss": Locator(pattern=r"^step \d+/.*\| loss: (\d\S*)"),
}
FAILURES: Mapping[str, Failure] = {
    r"^step \d+/.*\| loss: nan": "nan",  # nanochat would train on to the last step
    "DATASET UPGRADE REQUIRED": "error",  # it would train on another data set
}


def _base(name: str) -> str:
    """Return a directory of nanochat's base directory."""
    return str(Path(os.environ.get(BASE) or "~/.cache/nanochat") / name)


class CheckoutConfig(ProgramConfig):
    """Every setting. Knobs have the names of flags."""

    checkout: Place  # the directory
    # the interpreter that has nanochat's packages
    python: Place = Field(
        default_factory=lambda own: f"{own['checkout']}/.venv/bin/python", validate_default=True
    )
    target_flops: float = Field(gt=0)  # of one evaluation, forward and backward
    # without the hyphens in front; `true` is the bare flag, `false` leaves it out
    flags: dict[str, Scalar] = Field(default={})
    # directories of *.parquet, the last of them held out, and of tokenizer.pkl, token_bytes.pt
    data: Place = Field(default_factory=lambda: _base("base_data_climbmix"), validate_default=True)
    tokenizer: Place = Field(default_factory=lambda: _base("tokenizer"), validate_default=True)
    environment: dict[str, str] = Field(default={})
    pass_environment: tuple[str, ...] = ()  # names of variables of ours that it may see

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_variables(self.environment)
        own = {BASE, *ONE_PROCESS} & self.environment.keys()
        own |= {name for name in (*self.flags, *self.knobs) if name.replace("_", "-") in OURS}
        for name in own:
            raise ValueError(f"{name} cannot be set here: every evaluation has its own")
        return self

    @property
    def source(self) -> Path:
        """The file that is run."""
        return Path(self.checkout).joinpath(*MODULE.split(".")).with_suffix(".py")


class CheckoutObjective(ProgramObjective[CheckoutConfig]):
    """Trains nanochat for `target_flops` and scores it on the shard that it holds out."""

    model = CheckoutConfig
    budget_settings, budget_unit = ("target_flops",), "FLOPs"
    place_setting = "checkout"
    # the files there decide, not where they are
    unscored = ProgramObjective.unscored | {"checkout", "data", "tokenizer"}

    def program_files(self) -> Iterator[Path]:
        if not self.config.source.is_file():
            raise ValueError(
                f"checkout: {self.config.checkout} has no {MODULE}: expected a clone of "
                "https://github.com/karpathy/nanochat"
            )
        for folder in SOURCES:
            yield from self.directory.glob(f"{folder}/*.py")

    @property
    def provenance(self) -> dict[str, str | int]:
        """Hashes of the tokenizer, and of name, size and last 64 KiB of each shard."""
        tokenizer = Path(self.config.tokenizer)
        found = hashes(tokenizer, (tokenizer / name for name in TOKENIZER_FILES))
        return {**_shards(Path(self.config.data)), "tokenizer_sha256": digest(found)}

    @cached_property
    def command(self) -> CommandObjective:
        """What an evaluation starts. Raises SetupError if the checkout's flags cannot be read."""
        config, known = self.config, declared_flags(self.config.source)
        flags = {name: value for name, value in DEFAULT_FLAGS.items() if name in known}
        flags |= {"target-flops": config.target_flops}
        for name, value in config.flags.items():
            flags[name] = value if isinstance(value, bool) else _literal(value)
        given = (
            f"--{name}" if value is True else f"--{name}={value}"
            for name, value in flags.items()
            if value is not False
        )
        variables = {
            "TORCHINDUCTOR_CACHE_DIR": _literal(cache_directory() / "inductor"),
            "PYTORCH_ALLOC_CONF": "expandable_segments:True",  # as nanochat sets it before torch
            **{name: _literal(value) for name, value in config.environment.items()},
            BASE: "{directory}",
            "WANDB_MODE": "disabled",
            "HF_HUB_OFFLINE": "1",
        }
        own = CommandConfig(
            argv=(_literal(config.python), _literal(SHIM), MODULE, "{seed}", *given),
            directory=config.checkout,
            knobs=config.knobs,
            send="flags",
            environment=variables,
            pass_environment=config.pass_environment,
            score=SCORE,
            measures=MEASURES,
            failures=FAILURES,
            code=config.code,
        )
        return CommandObjective(self.name, own)

    def arguments(self, knobs: Knobs) -> tuple[str, ...]:
        return tuple(f"--{name}={value}" for name, value in self.space.rounded(knobs).items())

    def require_program(self) -> None:
        """Raises SetupError without the interpreter, and on flags that there are not."""
        known = declared_flags(self.config.source)
        for name in ("target-flops", *self.config.flags, *self.config.knobs):
            if name not in known:
                raise SetupError(f"{self.config.checkout}: {unknown('flag', name, sorted(known))}")
        self.command.require_program()

    def evaluate(self, knobs: Knobs, seed: int, context: Context) -> Measurement:
        """Train in a base directory with links to data and tokenizer.

        Raises SetupError where data or sources are not what the run was planned with.
        """
        pinned, found = context.pinned, self.provenance
        if changed := [name for name in found if pinned.get(name, found[name]) != found[name]]:
            raise SetupError(
                f"{', '.join(changed)}: the data in {self.config.data} or the tokenizer in "
                f"{self.config.tokenizer} has changed since the run was planned"
            )
        links = {"base_data_climbmix": self.config.data, "tokenizer": self.config.tokenizer}
        try:
            return self.command.evaluate(knobs, seed, context, links)
        finally:
            shutil.rmtree(context.directory / OUTPUT, ignore_errors=True)  # which follows no link


def _literal(value: object) -> str:
    """Return a value as text that has no placeholder."""
    return str(value).replace("{", "{{").replace("}", "}}")


def declared_flags(source: Path) -> frozenset[str]:
    """Return the flags that a source file declares by `add_argument`. It is read, not run.

    Raises SetupError if it cannot be read.
    """
    try:
        text = source.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise SetupError(f"checkout: cannot read {source}: {error}") from error
    return frozenset(re.findall(r"add_argument\(\s*[\"']--([\w-]+)", text))


def _shards(directory: Path) -> dict[str, str | int]:
    """Return count, bytes and hash of the shards. Raises SetupError on fewer than two.

    The hash is over name, size and the last 64 KiB of each, so hundreds of gigabytes cost nothing;
    a change in the middle of a file that keeps its size and its end is not seen.
    """
    whole, total, files = sha256(), 0, sorted(directory.glob("*.parquet"))
    if len(files) < 2:
        raise SetupError(
            f"data: expected two or more *.parquet in {directory} (the last is held out), got "
            f"{len(files)}: python -m nanochat.dataset -n 8 downloads some"
        )
    for path in files:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL_BYTES))
            tail = sha256(file.read()).hexdigest()
        whole.update(f"{path.name}\0{size}\0{tail}\n".encode())
        total += size
    return {"data_files": len(files), "data_bytes": total, "data_sha256": whole.hexdigest()}
