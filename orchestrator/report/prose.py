"""The little Markdown that reports are written in, taken apart: code, bold, escapes, nothing else.

`budgets.plain.plain` makes any text fit for it; what is no mark of these stays text.
"""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

Style = Literal["", "code", "strong"]

_MARKS = re.compile(r"\\(?P<plain>[\\`<\[\]|*~_])|`(?P<code>[^`]+)`|\*\*(?P<strong>.+?)\*\*", re.S)


class Span(NamedTuple):
    """A stretch of text in one style."""

    text: str
    style: Style = ""


def spans(markdown: str) -> list[Span]:
    """A line as stretches of text, in order, the marks taken away."""
    found: list[Span] = []
    for span in _spans(markdown):
        if found and found[-1].style == span.style == "":
            found[-1] = Span(found[-1].text + span.text)
        elif span.text:
            found.append(span)
    return found


def _spans(markdown: str) -> Iterator[Span]:
    end = 0
    for mark in _MARKS.finditer(markdown):
        yield Span(markdown[end : mark.start()])
        end = mark.end()
        if (text := mark["plain"]) is not None:
            yield Span(text)
        elif (text := mark["code"]) is not None:
            yield Span(text, "code")
        else:
            yield Span(unmarked(mark["strong"]), "strong")
    yield Span(markdown[end:])


def unmarked(markdown: str) -> str:
    """What a line says, without its marks."""
    return "".join(span.text for span in spans(markdown))
