"""Where nanochat keeps its files."""

import os


def get_base_dir() -> str:
    """As the real one: it is made where it is missing."""
    base = os.environ.get("NANOCHAT_BASE_DIR") or os.path.expanduser("~/.cache/nanochat")
    os.makedirs(base, exist_ok=True)
    return base
