"""Which release this is: pyproject.toml says it, and what was installed from it knows it."""

DISTRIBUTION = "cmaes-orchestrator"


def version() -> str:
    """Ours, as it was installed; `unknown` where only the sources are on the path."""
    from importlib import metadata  # with half of the standard library

    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "unknown"
