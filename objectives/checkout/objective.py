"""A user's own checkout of karpathy/nanochat: flags in, held-out bits per byte out.

The checkout stays as it is. Every evaluation is one process of its interpreter, in a base
directory of its own.
"""

import ast
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
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
from objectives.checkout.config import DEFAULT_KNOBS, CheckoutConfig, Flag
from objectives.checkout.output import Output
from objectives.environment import cleaned, python_versions
from objectives.files import cache_directory
from objectives.program import ProgramObjective
from objectives.settings import parse
from objectives.space import SearchSpace

SHIM = Path(__file__).with_name("shim.py")

TAIL_BYTES = 64 << 10
"""Of each shard that are hashed: the end of a parquet file says where everything in it lies."""

TOKENIZER_FILES = ("tokenizer.pkl", "token_bytes.pt")

NEVER = 1_000_000_000  # steps: no run has so many, so only step 0 and the last are scored

DEFAULT_FLAGS: Mapping[str, Flag] = {
    "run": "dummy",  # no wandb
    "core-metric-every": -1,  # it would download its tasks
    "sample-every": -1,
    "eval-every": NEVER,
}
"""Unless the configuration says otherwise, and only where the checkout has them."""


class CheckoutObjective(ProgramObjective[CheckoutConfig]):
    """Trains nanochat for `target_flops` and scores it on the shard that it holds out."""

    budget_setting = "target_flops"
    budget_unit = "FLOPs"
    unscored = frozenset({"checkout", "data", "tokenizer"})  # what lies there decides

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Raises ValueError on an unknown or a wrong setting, and on what is no checkout."""
        config = parse(CheckoutConfig, settings, "nanochat checkout")
        config.space()  # an impossible space is a wrong setting too
        if config.code is None and not config.source.is_file():
            raise ValueError(
                f"checkout: expected a checkout of nanochat with {config.module} in it, got "
                f"{config.checkout}: git clone https://github.com/karpathy/nanochat, or name "
                "another"
            )
        try:
            return cls("nanochat", config).pinned()
        except SetupError as error:
            raise ValueError(str(error)) from error

    @property
    def directory(self) -> Path:
        return Path(self.config.checkout)

    def program_files(self) -> tuple[Path]:
        return (self.config.source,)

    @property
    def space(self) -> SearchSpace:
        return self.config.space()

    def data(self) -> dict[str, str | int]:
        """`data_sha256` is over name, size and the last 64 KiB of each shard."""
        tokenizer = _tokenizer_sha256(Path(self.config.tokenizer))
        return {**_shards(Path(self.config.data)), "tokenizer_sha256": tokenizer}

    def versions(self) -> Mapping[str, str]:
        return python_versions(self.config.python, "python")

    @property
    def reading(self) -> str:
        return "held-out bits per byte in the last `Step N | Validation bpb`, N the planned steps"

    def command_line(self, knobs: Knobs, seed: int, context: Context) -> CommandLine:
        """Raises SetupError if the checkout's flags cannot be read."""
        config, known = self.config, declared_flags(self.config.source)
        usual = {**DEFAULT_FLAGS, "device-type": context.device}
        flags: dict[str, Flag] = {name: usual[name] for name in usual if name in known}
        flags |= {"target-flops": config.target_flops, **config.flags}
        given = (
            f"--{name}" if value is True else f"--{name}={value}"
            for name, value in flags.items()
            if value is not False and name not in knobs
        )
        mode = "eager" if config.eager else "compiled"
        return CommandLine(
            argv=(
                *(config.python, str(SHIM), config.module, str(seed), mode),
                *(*given, *self.arguments(knobs)),
            ),
            directory=self.directory,
            environment=self._environment(context),
        )

    def arguments(self, knobs: Knobs) -> tuple[str, ...]:
        return tuple(f"--{name}={value!r}" for name, value in self.space.rounded(knobs).items())

    def _environment(self, context: Context) -> dict[str, str]:
        variables = {
            "NANOCHAT_BASE_DIR": str(context.directory / "base"),
            "WANDB_MODE": "disabled",
            "HF_HUB_OFFLINE": "1",
            "OMP_NUM_THREADS": str(context.threads),
            "TORCHINDUCTOR_CACHE_DIR": str(cache_directory() / "inductor"),
            "PYTORCH_ALLOC_CONF": "expandable_segments:True",  # as nanochat sets it before torch
        }
        if context.device == "cpu":  # a GPU in sight would decide the dtype
            variables["CUDA_VISIBLE_DEVICES"] = ""
        return cleaned(self.config.pass_environment, variables | self.config.environment)

    def with_baseline(self, knobs: Knobs) -> ObjectiveSpec:
        """A default knob begins where its flag says; a declared knob may have a flag as well."""
        spec = super().with_baseline(knobs)
        flags, values = spec.settings["flags"], self.space.typed(knobs)
        if self.config.knobs:
            values = {name: value for name, value in values.items() if name in flags}
        return spec.model_copy(update={"settings": {**spec.settings, "flags": {**flags, **values}}})

    def preflight(self) -> tuple[str, ...]:
        config = self.config
        if "program_torch" not in self.versions():
            raise SetupError(
                f"python: {config.python} has no torch: expected the interpreter that has "
                "nanochat's packages (in the checkout: uv sync, or pip install into .venv)"
            )
        self.data()
        names = [knob.name for knob in self.space.knobs]
        _require_flags(("target-flops", *config.flags, *names), config)
        return ()

    def evaluate(self, knobs: Knobs, seed: int, context: Context) -> Measurement:
        before = self._require_data(context.pinned)
        self.require_same_sources()
        line, output = self.command_line(knobs, seed, context), Output()
        scored = self.config.flags.get("eval-tokens")
        eval_tokens = float(scored) if isinstance(scored, int | float) else 0.0
        with self._base(context.directory):
            try:
                exit_ = self.run(line, output.line, context)
                found = output.measurement(exit_, eval_tokens)
            except SetupError as error:
                # The default knobs move no size: what nanochat says of its setup is every
                # candidate's. A declared knob of whole numbers may be a shape.
                if any(knob.kind == "int" for knob in self.config.knobs.values()):
                    raise ProgramFailedError(str(error)) from error
                raise
        self._require_data(before)
        return found

    def _require_data(self, expected: Mapping[str, str | int]) -> Mapping[str, str | int]:
        """What there is now. Raises SetupError if it is not what a run was planned with."""
        found = self.data()
        for name, value in found.items():
            if expected.get(name, value) != value:
                raise SetupError(
                    f"{name} is {value}, and the run was planned with {expected[name]}: the data "
                    f"in {self.config.data} or the tokenizer in {self.config.tokenizer} has "
                    "changed. Put it back, let nothing write there, or begin another run"
                )
        return found

    @contextmanager
    def _base(self, directory: Path) -> Iterator[None]:
        """nanochat's base directory, gone after the block; data and tokenizer are links in it."""
        base = directory / "base"
        base.mkdir(mode=0o700)
        try:
            (base / "base_data_climbmix").symlink_to(self.config.data)
            (base / "tokenizer").symlink_to(self.config.tokenizer)
            yield
        finally:
            shutil.rmtree(base, ignore_errors=True)  # which follows no link


def declared_flags(source: Path) -> frozenset[str]:
    """The flags that a source file declares by `add_argument`. It is read, not run.

    Raises SetupError if it cannot be read.
    """
    try:
        tree = ast.parse(source.read_bytes())
    except (OSError, ValueError, SyntaxError) as error:  # ValueError: a NUL
        raise SetupError(f"cannot read the flags of {source}: {error}") from error
    found = set[str]()
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument":
            words = (str(word.value) for word in call.args if isinstance(word, ast.Constant))
            found.update(word.removeprefix("--") for word in words if word.startswith("--"))
    return frozenset(found)


def _require_flags(names: Iterable[str], config: CheckoutConfig) -> None:
    """Raises SetupError on flags that the checkout does not have, naming the nearest."""
    known = declared_flags(config.source)
    for name in names:
        if name not in known:
            near = get_close_matches(name, sorted(known), n=1)
            hint = f" Its nearest is --{near[0]}." if near else ""
            default = name in DEFAULT_KNOBS and not config.knobs
            mend = ": declare the knobs to search as [training.knobs]" if default else ""
            raise SetupError(
                f"{config.module} of {config.checkout} has no flag --{name}.{hint} Flags and knobs "
                f"are named as its --help names them{mend}"
            )


def _shards(directory: Path) -> dict[str, str | int]:
    """Count, bytes and hash of the shards: over name, size and the hash of the last 64 KiB of each.

    Hundreds of gigabytes cost nothing, and a change in the middle of a file that keeps its size
    and its end is not seen. Raises SetupError on fewer than two.
    """
    whole, count, total = sha256(), 0, 0
    try:
        for name in sorted(name for name in os.listdir(directory) if name.endswith(".parquet")):
            with (directory / name).open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                file.seek(max(0, size - TAIL_BYTES))
                tail = sha256(file.read(TAIL_BYTES)).hexdigest()
            whole.update(f"{name}\0{size}\0{tail}\n".encode())
            count, total = count + 1, total + size
        found = f"has {count}"
    except OSError as error:
        count, found = 0, f"cannot be read ({error.strerror})"
    if count < 2:
        raise SetupError(
            f"data: expected two or more *.parquet in {directory} (the last is held out), which "
            f"{found}: python -m nanochat.dataset -n 8 downloads some, or name another directory"
        )
    return {"data_files": count, "data_bytes": total, "data_sha256": whole.hexdigest()}


def _tokenizer_sha256(directory: Path) -> str:
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
