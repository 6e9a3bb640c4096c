"""The command line that all benchmarks share, and the table of their figures."""

import sys
import tempfile
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import isinf
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass as checked


@checked(frozen=True, slots=True)
class Aim:
    """The limits of a figure, and the document that promises them, if one does."""

    least: float | None = None
    most: float | None = None
    source: str = ""

    def holds(self, value: float) -> bool:
        low = self.least is None or value >= self.least
        return low and (self.most is None or value <= self.most)

    def text(self, unit: str) -> str:
        ends = {"at least": self.least, "at most": self.most}
        limits = (f"{word} {amount(end, unit)}" for word, end in ends.items() if end is not None)
        return ", ".join(filter(None, (*limits, self.source)))


@checked(frozen=True, slots=True, config=ConfigDict(ser_json_inf_nan="constants"))
class Figure:
    """A measured value, with its interval or range and its aim, if it has them."""

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
    def shown(self) -> str:
        """Return the value with unit and interval."""
        own = amount(self.value, self.unit)
        if self.low is None or self.high is None or self.low == self.high:
            return own
        return f"{own} ({amount(self.low)} to {amount(self.high)})"

    def row(self, judged: bool = True) -> str:
        """Return a table's row in Markdown. Quick runs measure too little to be judged."""
        aim = self.aim.text(self.unit) if self.aim else ""
        verdict = ("**missed**" if self.is_missed else "met") if aim and judged else ""
        return f"| {self.name} | {self.shown} | {aim} | {verdict} |"


HEAD = "| figure | value | aim | |\n|---|--:|---|---|"
FIGURES = TypeAdapter(list[Figure])


def amount(value: float, unit: str = "") -> str:
    """Return the number with three significant digits, or all digits before the point."""
    if isinf(value):
        return "never"
    number = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{number} {unit}".rstrip()


@dataclass(frozen=True, slots=True)
class Option:
    """A command-line option, with its default in a full and in a quick run."""

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
        text = f"{self.about} (full: {listed(self.full)}; quick: {listed(self.quick)})"
        parser.add_argument(
            f"--{self.name}",
            type=count if isinstance(each, int) else type(each),
            nargs="+" if many else None,
            choices=self.choices,
            default=self.quick if quick else self.full,
            help=text.replace("%", "%%").strip(),
        )


def listed(value: Any) -> str:
    text = " ".join(map(str, value)) if isinstance(value, tuple) else str(value or "")
    return text or "none"


def count(text: str) -> int:
    """Return the whole number; raise ArgumentTypeError unless it is 1 or more."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"expected 1 or more, got {text}")
    return int(text)


def options(doc: str, wanted: Iterable[Option], arguments: Sequence[str]) -> Namespace:
    """Return the parsed command line."""
    parser = ArgumentParser(
        description=doc, formatter_class=RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--quick", action="store_true", help="only check that it still runs")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    for option in wanted:
        option.add(parser, "--quick" in arguments)
    return parser.parse_args(arguments)


def bench(doc: str, measure: Callable[[Namespace], Iterable[Figure]], *wanted: Option) -> None:
    """Run a benchmark from the command line; print each figure as soon as it is measured."""
    chosen = options(doc, wanted, sys.argv[1:])
    found: list[Figure] = []
    for figure in measure(chosen):
        row = figure.row(judged=not chosen.quick)
        print(row if found else f"{HEAD}\n{row}", flush=True)
        found.append(figure)
    if chosen.json:
        chosen.json.write_bytes(FIGURES.dump_json(found, indent=1))


def progress(text: str = "") -> None:
    """Show a line that the next call replaces."""
    print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def rate_interval(count: int, total: int) -> tuple[float, float]:
    """Return the 95 % interval of a rate (C. J. Clopper and E. S. Pearson, 1934)."""
    from scipy.stats import binomtest

    interval = binomtest(count, total).proportion_ci(0.95, "exact")
    return float(interval.low), float(interval.high)


@contextmanager
def folder(kept: Path | None = None) -> Iterator[Path]:
    """Yield the folder `kept`, made if it is missing, or a temporary one."""
    if kept:
        kept.mkdir(parents=True, exist_ok=True)
        yield kept
        return
    with tempfile.TemporaryDirectory(prefix="bench-") as place:
        yield Path(place)
