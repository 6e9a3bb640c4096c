"""Templates filled in: everything escaped, nothing steering the page, one style and its policy."""

import base64
import hashlib
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from budgets.plain import printable
from objectives.settings import cut
from orchestrator.charts.chart import Plot
from orchestrator.charts.svg import STYLE, svg
from orchestrator.report.contents.blocks import Ruler
from orchestrator.report.prose import Span, spans, unmarked

MOST_CHARACTERS = 4000
"""Of one text: nobody reads more, and a browser would choke on it."""

LONG = 60
"""Characters: a cell with more may be broken over lines."""

TALL = 16
"""Rows: a table with more is in a box of its own height."""

WIDE = 6
"""Columns: one with more may have to be scrolled sideways, by a keyboard too."""

RULER_WIDTH, RULER_EDGE = 120, 6
"""Of a knob's range, in the units of its drawing."""


@cache
def style() -> str:
    """The style sheet of a page and of its plots."""
    own = (files("orchestrator.report") / "templates" / "style.css").read_text()
    return f"{own}{STYLE}"


def hash_of(sheet: str) -> str:
    """As a policy names the only style that a page may have."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode()}'"


def policy(sheet: str) -> str:
    """What a browser may do with a page of that style: show it, and load nothing at all."""
    return (
        f"default-src 'none'; style-src {hash_of(sheet)}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


def filled(template: str, **values: Any) -> str:
    """A template of this package with those values."""
    return _environment().get_template(template).render(**values)


def whole(template: str, title: str, **values: Any) -> str:
    """The same as a document of its own, with the style and its policy."""
    sheet = style()
    head = {"title": title, "style": Markup(sheet), "policy": policy(sheet)}  # noqa: S704 - ours
    return filled(template, **head, **values)


@cache
def _environment() -> Environment:
    return environment(
        "orchestrator.report",
        kind=_kind,
        is_long=_is_long,
        place=_place,
        refuse=_refuse,
        ruler_in_words=_ruler_in_words,
        spans=_spans,
        svg=_drawn,
        tall=TALL,
        wide=WIDE,
    )


def environment(package: str, **known: Any) -> Environment:
    """A package's templates: all of it escaped, and nothing unknown left out in silence."""
    made = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(known)
    return made


def _shown(value: Any) -> Any:
    """Text without characters that steer: a page has no NUL, and nothing turns its text around."""
    return printable(cut(value, MOST_CHARACTERS)) if type(value) is str else value


def _spans(text: object) -> list[Span]:
    return spans(cut(str(text), MOST_CHARACTERS))


def _kind(value: object) -> str:
    return type(value).__name__


def _refuse(block: object) -> None:
    """Raises TypeError: what no template shows must not be left out in silence."""
    raise TypeError(f"no template shows a block of {_kind(block)}")


def _is_long(value: object) -> bool:
    return isinstance(value, str) and len(unmarked(cut(value, MOST_CHARACTERS))) > LONG


def _drawn(plot: Plot) -> Markup:
    described = replace(plot, description=cut(plot.description, MOST_CHARACTERS))
    return Markup(svg(described))  # noqa: S704 - its writer escapes every text


def _place(unit: float) -> float:
    return round(RULER_EDGE + RULER_WIDTH * min(max(unit, 0.0), 1.0), 1)


def _ruler_in_words(cell: Ruler) -> str:
    if cell.recommended is None:
        return f"{cell.baseline:.2f} of its range"
    return f"from {cell.baseline:.2f} to {cell.recommended:.2f} of its range"
