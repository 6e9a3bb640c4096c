"""`export shards`: a text as the files that an external nanochat trains on."""

from pathlib import Path
from typing import Annotated

from typer import Option

from budgets.formatting import counted, printable
from objectives.nanochat.config import NanochatConfig
from objectives.nanochat.shards import write
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
        print_json(written)
        return
    files = written["files"]
    said = (
        "{directory}: {train_documents:,} documents of {train_bytes:,} bytes to train on in "
        "{count}, {val_documents:,} of {val_bytes:,} held out in {last}."
    )
    line = said.format(count=counted(len(files) - 1, "file"), last=files[-1], **written)
    print_line(printable(line))
