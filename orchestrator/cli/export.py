"""`export slurm|optuna|shards`: for other programs."""

from orchestrator.cli.optuna import as_study
from orchestrator.cli.program import examples, group
from orchestrator.cli.shards import shards
from orchestrator.cli.slurm import slurm

exports = group("For other programs.", "export slurm search.toml", "export optuna --out study.db")
exports.command(
    "slurm",
    epilog=examples("export slurm search.toml", "export slurm campaign.toml --out jobs --write"),
)(slurm)
exports.command("optuna", epilog=examples("export optuna min-nanochat-s1 --out study.db"))(as_study)
exports.command("shards", epilog=examples("export shards --out shards --shards 4"))(shards)
