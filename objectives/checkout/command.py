"""One evaluation as a command line: arguments, where it is started, all that it gets to see."""

from hashlib import sha256
from pathlib import Path

from objectives.api import CommandLine, Context, Knobs
from objectives.checkout import flags
from objectives.checkout.base import BASE
from objectives.checkout.config import CheckoutConfig
from objectives.keeping import cache_directory
from objectives.programs.declared import as_text
from objectives.programs.environment import cleaned
from objectives.space import SearchSpace

SHIM = Path(__file__).with_name("shim.py")


def command_line(
    config: CheckoutConfig, space: SearchSpace, knobs: Knobs, seed: int, context: Context
) -> CommandLine:
    """The training as it is started. Raises SetupError if the checkout's flags cannot be read."""
    known = flags.declared(config.source)
    fixed = flags.given(config, context.device, known)
    arguments = flags.as_arguments({n: v for n, v in fixed.items() if n not in knobs})
    return CommandLine(
        argv=(*_program(config, seed), *arguments, *knob_arguments(space, knobs)),
        directory=config.directory,
        environment=_environment(config, context),
    )


def knob_arguments(space: SearchSpace, knobs: Knobs) -> tuple[str, ...]:
    return tuple(f"--{name}={text}" for name, text in as_text(space, knobs).items())


def _program(config: CheckoutConfig, seed: int) -> tuple[str, ...]:
    if not config.seeds and not config.eager:
        return (config.python, "-m", config.module)
    offset = seed if config.seeds else 0
    mode = "eager" if config.eager else "compiled"
    return (config.python, str(SHIM), config.module, str(offset), mode)


def _environment(config: CheckoutConfig, context: Context) -> dict[str, str]:
    ours = {
        "NANOCHAT_BASE_DIR": str(context.directory / BASE),
        "WANDB_MODE": "disabled",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": str(context.threads),
        "TORCHINDUCTOR_CACHE_DIR": str(_compiled(config)),
        "PYTORCH_ALLOC_CONF": "expandable_segments:True",  # as nanochat sets it before torch
    }
    if context.device == "cpu":  # a GPU in sight would decide the dtype
        ours["CUDA_VISIBLE_DEVICES"] = ""
    if config.dtype is not None:
        ours["NANOCHAT_DTYPE"] = config.dtype
    return cleaned(config.pass_environment, ours | config.environment)


def _compiled(config: CheckoutConfig) -> Path:
    """Where compiled code is kept for all evaluations of one version of the program and torch."""
    parts = (config.code, config.python, torch_version(Path(config.python)))
    return cache_directory() / "inductor" / sha256(repr(parts).encode()).hexdigest()[:16]


def torch_version(python: Path) -> str:
    """As its packages lie on disk, without starting it; "" where they lie elsewhere."""
    found = python.parent.parent.glob("lib/python3*/site-packages/torch-*.dist-info")
    return next((path.name for path in sorted(found)), "")


def help_environment(config: CheckoutConfig) -> dict[str, str]:
    """What the program gets, besides a base directory, when it is only asked for its flags."""
    ours = {"WANDB_MODE": "disabled", "HF_HUB_OFFLINE": "1"}
    shown = {"CUDA_VISIBLE_DEVICES": "", "NO_COLOR": "1", "COLUMNS": "200"}
    nothing_left = {"PYTHONDONTWRITEBYTECODE": "1"}
    return cleaned(config.pass_environment, ours | config.environment | shown | nothing_left)
