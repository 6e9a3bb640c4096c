"""`export shards`: a text as the files that an external nanochat trains on."""

from pathlib import Path
from typing import Annotated

from typer import Option

from budgets.formatting import counted, printable
from objectives.nanochat.config import NanochatConfig
from objectives.nanochat.text.shards import Written, write
from orchestrator.cli.options import Json
from orchestrator.cli.terminal import print_json, print_line

DATA = str(NanochatConfig.model_fields["data"].default)


def shards(
    out: Annotated[Path, Option("--out", metavar="DIR", help="Where to; it must not exist.")],
    data: Annotated[
        str,
        Option(
            "--data",
            metavar="DATA",
            help="As the setting data names it: a file, a folder, hf:NAME, ...",
        ),
    ] = DATA,
    count: Annotated[
        int, Option("--shards", metavar="N", help="Files to train on; one more is held out.")
    ] = 1,
    as_json: Json = False,
) -> None:
    """A text as the Parquet shards karpathy/nanochat trains on: the same split, the last held out.

    Writes the directory --out.
    """
    if not out.name or not str(out).isprintable():
        raise ValueError(f"--out: expected a directory's name, got {str(out)!r}")
    written = write(data, out, count)
    if as_json:
        print_json(
            {
                "directory": str(written.directory),
                "files": written.files,
                "train_documents": written.train_documents,
                "train_bytes": written.train_bytes,
                "val_documents": written.val_documents,
                "val_bytes": written.val_bytes,
            }
        )
        return
    print_line(printable(_in_words(written)))


def _in_words(written: Written) -> str:
    files = len(written.files) - 1
    return (
        f"{written.directory}: {written.train_documents:,} documents of {written.train_bytes:,} "
        f"bytes to train on in {counted(files, 'file')}, {written.val_documents:,} of "
        f"{written.val_bytes:,} held out in {written.files[-1]}."
    )
