"""Which release this is: pyproject.toml says it, and what was installed from it knows it."""

from importlib import metadata

DISTRIBUTION = "cmaes-orchestrator"


def version() -> str:
    """Ours, as it was installed; `unknown` where only the sources are on the path."""
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "unknown"
