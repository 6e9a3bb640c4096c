"""A user's own checkout of karpathy/nanochat: flags in, held-out bits per byte out.

The checkout stays as it is. Every evaluation is one process of its interpreter, in a base
directory of its own.
"""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from objectives.api import (
    CommandLine,
    Context,
    Knobs,
    Measurement,
    ObjectiveSpec,
    ProgramFailedError,
    SetupError,
)
from objectives.checkout import flags
from objectives.checkout.config import CheckoutConfig, space
from objectives.checkout.output import Output, saved
from objectives.environment import cleaned, python_versions
from objectives.files import cache_directory
from objectives.program import ProgramObjective
from objectives.settings import parse
from objectives.space import SearchSpace

SHIM = Path(__file__).with_name("shim.py")
BASE, CHECKPOINTS = "base", "base_checkpoints"
DATA, TOKENIZER = "base_data_climbmix", "tokenizer"

TAIL_BYTES = 64 << 10
"""Of each shard that are hashed: the end of a parquet file says where everything in it lies."""

TOKENIZER_FILES = ("tokenizer.pkl", "token_bytes.pt")


class CheckoutObjective(ProgramObjective[CheckoutConfig]):
    """Trains nanochat for `target_flops` and scores it on the shard that it holds out."""

    budget_setting = "target_flops"
    budget_unit = "FLOPs"
    unscored = frozenset({"checkout", "data", "tokenizer", "keep"})  # what lies there decides

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Raises ValueError on an unknown or a wrong setting, and on what is no checkout."""
        config = parse(CheckoutConfig, settings, "nanochat checkout")
        objective = cls("nanochat", config)
        objective.space  # noqa: B018 - an impossible space is a wrong setting too
        if config.code is None and not config.source.is_file():
            raise ValueError(
                f"checkout: expected a checkout of nanochat with {config.module} in it, got "
                f"{config.checkout}: git clone https://github.com/karpathy/nanochat, or name "
                "another"
            )
        try:
            return objective.pinned()
        except SetupError as error:
            raise ValueError(str(error)) from error

    @property
    def directory(self) -> Path:
        return Path(self.config.checkout)

    def program_files(self) -> tuple[Path]:
        return (self.config.source,)

    @property
    def space(self) -> SearchSpace:
        return space(self.config)

    def data(self) -> dict[str, str | int]:
        """`data_sha256` is over name, size and the last 64 KiB of each shard."""
        tokenizer = tokenizer_sha256(Path(self.config.tokenizer))
        return {**shards(Path(self.config.data)), "tokenizer_sha256": tokenizer}

    def versions(self) -> Mapping[str, str]:
        return python_versions(self.config.python, "python")

    def command_line(self, knobs: Knobs, seed: int, context: Context) -> CommandLine:
        """Raises SetupError if the checkout's flags cannot be read."""
        config = self.config
        known = flags.declared(config.source)
        given = flags.given(config, context.device, known)
        fixed = flags.as_arguments({n: v for n, v in given.items() if n not in knobs})
        program: tuple[str, ...] = (config.python, "-m", config.module)
        if config.seeds or config.eager:
            mode = "eager" if config.eager else "compiled"
            offset = str(seed if config.seeds else 0)
            program = (config.python, str(SHIM), config.module, offset, mode)
        return CommandLine(
            argv=(*program, *fixed, *self.arguments(knobs)),
            directory=self.directory,
            environment=self._environment(context),
        )

    def with_baseline(self, knobs: Knobs) -> ObjectiveSpec:
        """A default knob begins where its flag says; a declared knob may have a flag as well."""
        spec = super().with_baseline(knobs)
        flags, values = spec.settings["flags"], self.space.typed(knobs)
        if self.config.knobs:
            values = {name: value for name, value in values.items() if name in flags}
        return spec.model_copy(update={"settings": {**spec.settings, "flags": {**flags, **values}}})

    @property
    def reading(self) -> str:
        return "held-out bits per byte in the last `Step N | Validation bpb`, N the planned steps"

    def arguments(self, knobs: Knobs) -> tuple[str, ...]:
        return tuple(f"--{name}={value!r}" for name, value in self.space.rounded(knobs).items())

    def _environment(self, context: Context) -> dict[str, str]:
        config = self.config
        # Compiled code is kept for all evaluations of one version of the program and torch.
        version = repr((config.code, config.python, _torch(Path(config.python))))
        compiled = cache_directory() / "inductor" / sha256(version.encode()).hexdigest()[:16]
        variables = {
            "NANOCHAT_BASE_DIR": str(context.directory / BASE),
            "WANDB_MODE": "disabled",
            "HF_HUB_OFFLINE": "1",
            "OMP_NUM_THREADS": str(context.threads),
            "TORCHINDUCTOR_CACHE_DIR": str(compiled),
            "PYTORCH_ALLOC_CONF": "expandable_segments:True",  # as nanochat sets it before torch
        }
        if context.device == "cpu":  # a GPU in sight would decide the dtype
            variables["CUDA_VISIBLE_DEVICES"] = ""
        if config.dtype is not None:
            variables["NANOCHAT_DTYPE"] = config.dtype
        return cleaned(config.pass_environment, variables | config.environment)

    def preflight(self) -> tuple[str, ...]:
        config = self.config
        if "program_torch" not in self.versions():
            raise SetupError(
                f"python: {config.python} has no torch: expected the interpreter that has "
                "nanochat's packages (in the checkout: uv sync, or pip install into .venv)"
            )
        self.data()
        return flags.check(config, self.space)

    def evaluate(self, knobs: Knobs, seed: int, context: Context) -> Measurement:
        self._require_data(context.pinned)
        before = self.data()
        self.require_same_sources()
        line = self.command_line(knobs, seed, context)
        known, output = flags.declared(self.config.source), Output()
        eval_tokens = flags.Values(self.config, self.space, known).number("eval-tokens")
        with self._base(context.directory) as base:
            with self._blamed():
                exit_ = self.run(line, output.line, context)
                found = output.measurement(exit_, base, eval_tokens)
            self._require_data(before)
            for path in saved(base, found.steps):  # all flags are among what it wrote there
                shutil.copyfile(path, context.directory / path.name, follow_symlinks=False)
        return found

    def _require_data(self, expected: Mapping[str, str | int]) -> None:
        """Raises SetupError on other data, or another tokenizer, than a run was planned with."""
        for name, value in self.data().items():
            if expected.get(name, value) != value:
                raise SetupError(
                    f"{name} is {value}, and the run was planned with {expected[name]}: the data "
                    f"in {self.config.data} or the tokenizer in {self.config.tokenizer} has "
                    "changed. Put it back, let nothing write there, or begin another run"
                )

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

    @contextmanager
    def _base(self, directory: Path) -> Iterator[Path]:
        """nanochat's base directory, gone after the block however that ends.

        With `keep = "all"` the checkpoints stay. Only links to data and tokenizer are removed,
        never what they lead to.
        """
        base = directory / BASE
        base.mkdir(mode=0o700)
        try:
            (base / DATA).symlink_to(self.config.data)
            (base / TOKENIZER).symlink_to(self.config.tokenizer)
            yield base
        finally:
            kept = CHECKPOINTS if self.config.keep == "all" else ""
            for path in list(base.iterdir()) if base.is_dir() else []:
                if path.is_dir() and not path.is_symlink() and path.name != kept:
                    shutil.rmtree(path, ignore_errors=True)
                with suppress(OSError):  # a file that cannot be removed loses no score
                    path.unlink()
            with suppress(OSError):  # not empty
                base.rmdir()


def _torch(python: Path) -> str:
    """Its version as the packages lie on disk, without starting it; "" where they do not."""
    found = python.parent.parent.glob("lib/python3*/site-packages/torch-*.dist-info")
    return next((path.name for path in sorted(found)), "")


def shards(directory: Path) -> dict[str, str | int]:
    """Count, bytes and hash of the shards: over name, size and the hash of the last 64 KiB of each.

    Hundreds of gigabytes cost nothing, and a change in the middle of a file that keeps its size
    and its end is not seen. Raises SetupError on fewer than two.
    """
    try:
        names = sorted(name for name in os.listdir(directory) if name.endswith(".parquet"))
        found = tuple((name, os.stat(directory / name)) for name in names)
    except OSError as error:
        raise _missing(directory, f"cannot be read ({error.strerror})") from error
    if len(found) < 2:
        raise _missing(directory, f"has {len(found)}")
    stamps = tuple((name, status.st_size, status.st_mtime_ns) for name, status in found)
    return {
        "data_files": len(stamps),
        "data_bytes": sum(size for _, size, _ in stamps),
        "data_sha256": _hashed(directory, stamps),
    }


def _missing(directory: Path, found: str) -> SetupError:
    return SetupError(
        f"data: expected two or more *.parquet in {directory} (the last is held out), which "
        f"{found}: python -m nanochat.dataset -n 8 downloads some, or name another directory"
    )


@lru_cache(maxsize=16)
def _hashed(directory: Path, stamps: tuple[tuple[str, int, int], ...]) -> str:
    whole = sha256()
    for name, size, _ in stamps:
        try:
            with (directory / name).open("rb") as file:
                file.seek(max(0, size - TAIL_BYTES))
                tail = sha256(file.read(TAIL_BYTES)).hexdigest()
        except OSError as error:
            raise SetupError(f"data: cannot read {directory / name}: {error.strerror}") from error
        whole.update(f"{name}\0{size}\0{tail}\n".encode())
    return whole.hexdigest()


def tokenizer_sha256(directory: Path) -> str:
    """Over the tokenizer and the bytes of its tokens. Raises SetupError if one is not there."""
    whole = sha256()
    for name in TOKENIZER_FILES:
        try:
            whole.update(sha256((directory / name).read_bytes()).digest())
        except OSError as error:
            raise SetupError(
                f"tokenizer: expected {' and '.join(TOKENIZER_FILES)} in {directory}, where "
                f"{name} cannot be read ({error.strerror}): python -m scripts.tok_train makes both"
            ) from error
    return whole.hexdigest()
