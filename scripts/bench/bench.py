"""A bench: what each `scripts/bench/*` can be asked, and how it says what it has measured."""

import subprocess
import sys
import tempfile
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import isinf
from pathlib import Path
from statistics import quantiles
from typing import Any

from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass as checked

OURS = (0, 4)
"""How a command of ours ends that did what it was told: with a Go, or without one."""


@checked(frozen=True, slots=True)
class Aim:
    """Where a figure should lie; and where that is promised, if it is not only asked for."""

    least: float | None = None
    most: float | None = None
    source: str = ""

    def holds(self, value: float) -> bool:
        low = self.least is None or value >= self.least
        return low and (self.most is None or value <= self.most)

    def words(self, unit: str) -> str:
        ends = {"at least": self.least, "at most": self.most}
        limits = (f"{word} {amount(end, unit)}" for word, end in ends.items() if end is not None)
        return ", ".join(filter(None, (*limits, self.source)))


@checked(frozen=True, slots=True, config=ConfigDict(ser_json_inf_nan="constants"))
class Figure:
    """Something measured; with its interval, or its range, and its aim where it has them."""

    name: str
    value: float
    unit: str = ""
    low: float | None = None
    high: float | None = None
    aim: Aim | None = None

    @property
    def is_missed(self) -> bool:
        return self.aim is not None and not self.aim.holds(self.value)

    @property
    def said(self) -> str:
        """Value and interval with the unit."""
        own = amount(self.value, self.unit)
        if self.low is None or self.high is None or self.low == self.high:
            return own
        return f"{own} ({amount(self.low)} to {amount(self.high)})"

    def row(self, judged: bool = True) -> str:
        """Of a table in Markdown. A quick run has too few of everything to be held to an aim."""
        aim = self.aim.words(self.unit) if self.aim else ""
        verdict = ("**missed**" if self.is_missed else "met") if aim and judged else ""
        return f"| {self.name} | {self.said} | {aim} | {verdict} |"


HEAD = "| figure | value | aim | |\n|---|--:|---|---|"
FIGURES = TypeAdapter(list[Figure])


def amount(value: float, unit: str = "") -> str:
    """A number with three digits that count, or all before its point."""
    if isinf(value):
        return "never"
    number = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{number} {unit}".rstrip()


@dataclass(frozen=True, slots=True)
class Option:
    """A word of a bench's command line, and what it is in a full and in a quick run."""

    name: str
    full: Any
    quick: Any
    about: str = ""
    choices: Collection[Any] | None = None

    def add(self, parser: ArgumentParser, quick: bool) -> None:
        if isinstance(self.full, bool):
            parser.add_argument(f"--{self.name}", action="store_true", help=self.about)
            return
        many = isinstance(self.full, tuple)
        each = next(iter(self.full), "") if many else self.full
        text = f"{self.about} (full: {shown(self.full)}; quick: {shown(self.quick)})"
        parser.add_argument(
            f"--{self.name}",
            type=count if isinstance(each, int) else type(each),
            nargs="+" if many else None,
            choices=self.choices,
            default=self.quick if quick else self.full,
            help=text.replace("%", "%%").strip(),
        )


def shown(value: Any) -> str:
    words = " ".join(map(str, value)) if isinstance(value, tuple) else str(value or "")
    return words or "none"


def count(text: str) -> int:
    """Raises ArgumentTypeError unless it is a whole number of 1 or more."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"expected 1 or more, got {text}")
    return int(text)


def options(doc: str, wanted: Iterable[Option], words: Sequence[str]) -> Namespace:
    """What was asked of a bench, on its command line."""
    parser = ArgumentParser(
        description=doc, formatter_class=RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--quick", action="store_true", help="only show that it still runs")
    parser.add_argument("--json", type=Path, help="the figures into this file as well")
    for option in wanted:
        option.add(parser, "--quick" in words)
    return parser.parse_args(words)


def bench(doc: str, measure: Callable[[Namespace], Iterable[Figure]], *wanted: Option) -> None:
    """A bench's command line: each figure a row of a table, as soon as it is measured."""
    given = options(doc, wanted, sys.argv[1:])
    found: list[Figure] = []
    for figure in measure(given):
        row = figure.row(judged=not given.quick)
        print(row if found else f"{HEAD}\n{row}", flush=True)
        found.append(figure)
    if given.json:
        given.json.write_bytes(FIGURES.dump_json(found, indent=1))


def progress(text: str = "") -> None:
    """A line that the next one replaces."""
    print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def rate_interval(count: int, total: int) -> tuple[float, float]:
    """Where the true rate lies, with 95 % confidence (C. J. Clopper and E. S. Pearson, 1934)."""
    from scipy.special import betaincinv

    low = float(betaincinv(count, total - count + 1, 0.025)) if count else 0.0
    high = float(betaincinv(count + 1, total - count, 0.975)) if count < total else 1.0
    return low, high


def p95(values: Sequence[float]) -> float:
    """What 95 in 100 stay within; of one value, that."""
    return quantiles(values, n=20, method="inclusive")[-1] if len(values) > 1 else values[0]


@contextmanager
def folder(kept: Path | None = None) -> Iterator[Path]:
    """The one that was named, made where it is missing; else one for the time being."""
    if kept:
        kept.mkdir(parents=True, exist_ok=True)
        yield kept
        return
    with tempfile.TemporaryDirectory(prefix="bench-") as place:
        yield Path(place)


def orchestrate(*words: str) -> str:
    """What a command of ours prints, whatever its verdict. Ends the bench where it fails."""
    command = [sys.executable, "-m", "orchestrator", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False, text=True)
    if done.returncode not in OURS:
        print(done.stdout)
        sys.exit(f"orchestrator {' '.join(words)} ended with {done.returncode}, as said above")
    return done.stdout
