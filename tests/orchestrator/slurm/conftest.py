"""Exports without a configuration, and a cluster that consists of a few scripts on the PATH."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from orchestrator.slurm.job import Export, Job
from orchestrator.slurm.options import SlurmOptions
from orchestrator.slurm.tree import files_of
from orchestrator.slurm.write import write

BASH = "/bin/bash"

SBATCH = """#!/usr/bin/env bash
# Answers with the next id, or refuses in the directory named by $REFUSED.
printf '%s|%s\\n' "$(basename "$PWD")" "$*" >>"$CLUSTER/asked.sbatch"
if [[ $(basename "$PWD") == "${REFUSED:-}" ]]; then
  echo 'sbatch: error: no such partition' >&2
  exit 1
fi
echo "$((1000 + $(wc -l <"$CLUSTER/asked.sbatch")))${FEDERATION:-}"
"""

SCONTROL = """#!/usr/bin/env bash
printf '%s\\n' "$*" >>"$CLUSTER/asked.scontrol"
exit "${SCONTROL_CODE:-0}"
"""

PROGRAM = """#!{python}
import os, signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
print("begun", *sys.argv[1:], flush=True)
if code := os.environ.get("CODE"):
    sys.exit(int(code))
while True:
    signal.pause()
"""
"""In the orchestrator's place: ends with $CODE, or drains when it is asked to."""


@dataclass
class Cluster:
    """A directory of fake commands, and what they were asked."""

    place: Path
    variables: dict[str, str] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PATH": f"{self.place}:{os.environ['PATH']}",
            "CLUSTER": str(self.place),
            "SLURM_JOB_ID": "77",
            "SLURM_JOB_NODELIST": "node1",
            **self.variables,
        }

    def install(self, name: str, text: str) -> Path:
        program = self.place / name
        program.write_text(text)
        program.chmod(0o755)
        return program

    def asked(self, name: str) -> list[str]:
        log = self.place / f"asked.{name}"
        return log.read_text().splitlines() if log.exists() else []

    def run(self, *command: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command,
            env=self.environment() | variables,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def signalled(
        self, script: Path, signum: signal.Signals, when: str, **variables: str
    ) -> tuple[int, str]:
        """Exit code and output of a script that gets a signal once it has said `when`."""
        with subprocess.Popen(
            [BASH, str(script)],
            env=self.environment() | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            said, sent = "", False
            assert process.stdout is not None
            for line in process.stdout:
                said += line
                if when in line and not sent:
                    process.send_signal(signum)
                    sent = True
            return process.wait(60), said


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    place = tmp_path / "cluster"
    place.mkdir()
    made = Cluster(place)
    made.install("sbatch", SBATCH)
    made.install("scontrol", SCONTROL)
    return made


@pytest.fixture
def machine(tmp_path: Path) -> Cluster:
    """One without a cluster."""
    return Cluster(tmp_path)


@pytest.fixture
def program(cluster: Cluster) -> Path:
    """What run.slurm takes for the interpreter."""
    return cluster.install("python-of-the-run", PROGRAM.format(python=sys.executable))


Make = Callable[..., Export]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """An export of runs by these names."""

    def made(*names: str, python: str = sys.executable, **options: Any) -> Export:
        chosen = SlurmOptions.model_validate({"time": "2h", **options})
        slots = chosen.nodes
        return Export(
            name="camp",
            directory=tmp_path / "camp",
            work_directory=tmp_path,
            python=python,
            jobs=tuple(
                Job(name, f'objective = "sphere" # {name}\n', name, seed=1, slots=slots)
                for name in names or ("a",)
            ),
            options=chosen,
        )

    return made


@pytest.fixture
def written(make: Make) -> Callable[..., Path]:
    """The directory of such an export."""

    def place(*names: str, **options: Any) -> Path:
        export = make(*names, **options)
        assert write(export.directory, files_of(export))
        return export.directory

    return place
