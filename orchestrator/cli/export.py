"""`export slurm|table|optuna|shards`: for other programs."""

from pathlib import Path
from typing import Annotated

from typer import Option

from orchestrator.cli.options import DEFAULT_ROOT, Root, RunName
from orchestrator.cli.optuna import as_study
from orchestrator.cli.program import examples, group
from orchestrator.cli.shards import shards
from orchestrator.cli.slurm import slurm
from orchestrator.cli.terminal import print_line, write_bytes
from orchestrator.look.page import named_file
from orchestrator.records.export import Format
from orchestrator.records.export import export as export_run
from orchestrator.records.recorded import find_run, load_state

exports = group("For other programs.", "export slurm search.toml", "export table --out scores.csv")
exports.command(
    "slurm",
    epilog=examples("export slurm search.toml", "export slurm campaign.toml --out jobs --write"),
)(slurm)
exports.command("optuna", epilog=examples("export optuna min-nanochat-s1 --out study.db"))(as_study)
exports.command("shards", epilog=examples("export shards --out shards --shards 4"))(shards)


@exports.command(epilog=examples("export table", "export table min-nanochat-s1 --format json"))
def table(
    run: RunName = None,
    root: Root = DEFAULT_ROOT,
    kind: Annotated[Format, Option("--format", help="Of the table.")] = "csv",
    out: Annotated[
        Path | None, Option("--out", metavar="FILE", help="Where to; default: print it.")
    ] = None,
) -> None:
    """Every evaluation as a row: place, status, score, cost, knobs, metrics.

    Writes nothing but the file --out.
    """
    if kind == "parquet" and out is None:
        raise ValueError("--format parquet: say which file with --out, it is not for terminals")
    if out is not None:
        named_file("--out", out)
    data = export_run(load_state(find_run(run, root)), kind, out)
    if out is None:
        write_bytes(data)
    else:
        print_line(f"{out}: {len(data)} bytes")
