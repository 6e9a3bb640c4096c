"""What `[slurm]` and `[backend]` say together, or why they cannot both be meant."""

from pydantic import ValidationError

from objectives.settings import unknown
from orchestrator.config import Config, invalid
from orchestrator.slurm.options import SlurmOptions


def slurm_options(resolved: Config) -> SlurmOptions:
    """`[slurm]`, with GPUs where the device says so. Raises ValueError, naming the key."""
    known = SlurmOptions.model_fields
    for key in resolved.slurm:
        if key not in known:
            raise unknown(f"key in [slurm] ({resolved.source(f'slurm.{key}')})", key, known)
    try:
        options = SlurmOptions.model_validate(dict(resolved.slurm))
    except ValidationError as error:
        raise invalid("slurm", error, resolved.sources) from error
    device = resolved.backend.device
    if options.gpus is None:
        options = options.model_copy(update={"gpus": int(device == "cuda")})
    if device != "auto" and (device == "cuda") != bool(options.gpus):
        raise ValueError(
            f"slurm.gpus = {options.gpus} and backend.device = {device!r} contradict each other: "
            "an evaluation runs on one GPU (1, cuda) or on none (0, cpu)"
        )
    return options


def check_backend(resolved: Config, options: SlurmOptions) -> None:
    """Raises ValueError on an engine that the jobs cannot have."""
    backend = resolved.backend
    if backend.address is not None:
        raise ValueError(
            f"backend.address = {backend.address!r}: jobs of several nodes start a Ray of their "
            "own, others need none; take it out"
        )
    is_chosen = resolved.source("backend.executor") != "default"
    if options.nodes > 1 and is_chosen and backend.executor != "ray":
        raise ValueError(
            f"backend.executor = {backend.executor!r} knows one machine, slurm.nodes = "
            f"{options.nodes} needs ray"
        )
