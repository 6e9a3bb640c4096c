"""The base directory of one evaluation: nanochat's own, with links to what all of them share."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from objectives.checkout.config import CheckoutConfig
from objectives.checkout.outcome import saved

BASE = "base"
CHECKPOINTS = "base_checkpoints"
DATA, TOKENIZER = "base_data_climbmix", "tokenizer"


@contextmanager
def fresh(config: CheckoutConfig, directory: Path) -> Iterator[Path]:
    """A base directory below `directory`, gone after the block however that ends.

    With `keep = "all"` the checkpoints stay. Only links to data and tokenizer are removed, never
    what they lead to.
    """
    base = directory / BASE
    base.mkdir(mode=0o700)
    try:
        (base / DATA).symlink_to(config.data)
        (base / TOKENIZER).symlink_to(config.tokenizer)
        yield base
    finally:
        _empty(base, keep_checkpoints=config.keep == "all")


def _empty(base: Path, *, keep_checkpoints: bool) -> None:
    """A file that cannot be removed is no reason to lose a score."""
    for path in list(base.iterdir()) if base.is_dir() else []:
        if keep_checkpoints and path.name == CHECKPOINTS:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink()
    with suppress(OSError):  # not empty
        base.rmdir()


def keep_record(base: Path, steps: int, directory: Path) -> None:
    """Copy what nanochat wrote beside the model, all of its flags among it, to the evaluation's."""
    for path in saved(base, steps):
        shutil.copyfile(path, directory / path.name, follow_symlinks=False)
