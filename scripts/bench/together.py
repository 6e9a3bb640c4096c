"""All benches in one go: each a process of its own, whose figures are kept, and a sheet of all."""

import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked

from objectives.programs.git import revision
from objectives.programs.kernel import memory_bytes
from orchestrator.execution.devices import cpu_name
from scripts.bench.bench import FIGURES, HEAD, Figure

PACKAGES = (
    *("cma", "numpy", "pydantic", "ray", "torch"),
    *("cmaes", "coco-experiment", "nevergrad", "optuna", "scipy"),
)
"""Those that decide a figure, peers included: some are not everywhere."""

THIS = "all"


@checked(frozen=True, slots=True, config=ConfigDict(ser_json_inf_nan="constants"))
class Record:
    """One bench, as it was run."""

    bench: str
    words: tuple[str, ...]  # on its command line
    began: datetime
    seconds: float
    load: tuple[float, float]  # of the last minute, before it and after
    commit: str
    machine: dict[str, str]
    figures: tuple[Figure, ...] = ()
    error: str = ""  # the last that it said, where it failed

    @property
    def missed(self) -> list[Figure]:
        return [figure for figure in self.figures if figure.is_missed]

    @property
    def aims(self) -> int:
        return sum(figure.aim is not None for figure in self.figures)


@checked(frozen=True, slots=True, config=ConfigDict(ser_json_inf_nan="constants"))
class Sheet:
    """All that was run into one folder, and on what."""

    machine: dict[str, str]
    quick: bool
    records: tuple[Record, ...]


RECORD, SHEET = TypeAdapter(Record), TypeAdapter(Sheet)


def benches(scripts: Path) -> dict[str, Path]:
    """Every one that lies there, by name: a new one is part of it at once."""
    found = (path for path in sorted(scripts.iterdir()) if path.is_file() and not path.suffix)
    return {path.name: path for path in found if path.name != THIS}


def kept(out: Path, name: str, words: Sequence[str]) -> Record | None:
    """What the folder has of it, if that was asked the same on a machine as this one is now."""
    with suppress(OSError, ValidationError):
        record = RECORD.validate_json((out / f"{name}.json").read_bytes())
        if record.words == tuple(words) and record.machine == machine():
            return record
    return None


def run(script: Path, words: Sequence[str], out: Path) -> Record:
    """Run it, what it says shown and kept in a log; failed, its record has no figures."""
    found, log = out / f"{script.name}.figures", out / f"{script.name}.log"
    found.unlink(missing_ok=True)
    began, before, clock = datetime.now(UTC), os.getloadavg()[0], time.monotonic()
    command = [sys.executable, str(script), *words, "--json", str(found)]
    code = followed(command, log)
    seconds, load = time.monotonic() - clock, (before, os.getloadavg()[0])
    figures, error = list[Figure](), ""
    try:
        if code != 0:
            raise ValueError(f"ended with {code}: {last_line(log)}")
        figures = FIGURES.validate_json(found.read_bytes())
    except (OSError, ValueError) as wrong:
        error = str(wrong)
    found.unlink(missing_ok=True)
    record = Record(
        bench=script.name,
        words=tuple(words),
        began=began,
        seconds=seconds,
        load=load,
        commit=commit(script.parents[2]),
        machine=machine(),
        figures=tuple(figures),
        error=error,
    )
    (out / f"{script.name}.json").write_bytes(RECORD.dump_json(record, indent=1))
    return record


def commit(checkout: Path) -> str:
    """In ten digits; with a plus where the files are not those of the commit."""
    found = revision(checkout)
    return str(found.get("commit", ""))[:10] + "+" * int(found.get("dirty", 0))


def followed(command: Sequence[str], log: Path) -> int:
    """How the command ended. All that it says goes to this process's stdout and to the log."""
    with (
        log.open("wb") as file,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process,
    ):
        assert process.stdout is not None
        while said := process.stdout.read1():  # type: ignore[attr-defined]
            file.write(said)
            sys.stdout.write(said.decode(errors="replace"))
            sys.stdout.flush()
    return process.returncode


def last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")


@cache
def machine() -> dict[str, str]:
    """What the figures depend on."""
    versions = {}
    for name in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return {
        "processor": cpu_name(),
        "cores": f"{len(os.sched_getaffinity(0))} of {os.cpu_count()}",
        "memory": f"{memory_bytes()[0] / 2**30:.0f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "packages": ", ".join(f"{name} {version}" for name, version in versions.items()),
    }


def markdown(sheet: Sheet) -> Iterator[str]:
    """The sheet's lines: what went wrong, what fell short, the machine, every figure."""
    yield "# Benchmarks, quick: held to no aim" if sheet.quick else "# Benchmarks"
    yield ""
    for record in sheet.records:
        if record.error:
            yield f"- **{record.bench} failed**: {record.error}"
        for figure in () if sheet.quick else record.missed:
            aim = figure.aim.words(figure.unit) if figure.aim else ""
            yield f"- **{record.bench}: missed**: {figure.name}: {figure.said}; {aim}"
    yield "\n| machine | |\n|---|---|"
    yield from (f"| {name} | {value} |" for name, value in sheet.machine.items())
    yield "\n| bench | begun | took | load before, after | commit | aims met |"
    yield "|---|---|--:|--:|---|--:|"
    yield from (row(record, sheet.quick) for record in sheet.records)
    for record in sheet.records:
        if record.figures:
            yield f"\n## {record.bench}\n\n{HEAD}"
            yield from (figure.row(judged=not sheet.quick) for figure in record.figures)


def row(record: Record, quick: bool) -> str:
    cells = (
        record.bench,
        f"{record.began:%Y-%m-%d %H:%M}",
        f"{record.seconds:,.0f} s",
        "{:.1f}, {:.1f}".format(*record.load),
        record.commit,
        verdict(record, quick),
    )
    return f"| {' | '.join(cells)} |"


def verdict(record: Record, quick: bool) -> str:
    """In a few words, how it went."""
    if record.error:
        return "**failed**"
    if quick or not record.aims:
        return "ran"
    return f"{record.aims - len(record.missed)} of {record.aims}"
