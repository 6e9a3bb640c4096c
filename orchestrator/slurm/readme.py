"""What a person finds beside the scripts: what the runs are, and what to type."""

import shlex
from string import Template

from budgets.plain import plain
from orchestrator.slurm.job import Export, lead_seconds
from orchestrator.slurm.page import runs_table
from orchestrator.slurm.script import template


def readme(export: Export) -> str:
    """Markdown, without a moment in it: the same export is the same file."""
    return Template(template("README.md")).substitute(
        name=plain(export.name),
        count=export.jobs_in_words,
        table=runs_table(export),
        directory=shlex.quote(str(export.directory)),
        python=shlex.quote(export.python),
        first=shlex.quote(export.jobs[0].name),
        lead=max(lead_seconds(export.options, job) for job in export.jobs),
        requeues=max(export.requeues(job) for job in export.jobs),
    )
