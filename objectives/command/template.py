"""Text with `{placeholders}`: each gives one argument, whatever is put into it."""

import re
from collections.abc import Collection, Iterator, Mapping

from objectives.settings import cut

_PART = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")

LONGEST_SHOWN = 60
"""Characters of a text that a message repeats: it may be a program."""


def placeholders(text: str) -> tuple[str, ...]:
    """The names in braces. Raises ValueError on a brace by itself."""
    return tuple(name for _, name in _parts(text) if name is not None)


def require_known(place: str, text: str, known: Collection[str]) -> None:
    """Raises ValueError, naming the place and all that are known, on another placeholder."""
    for name in placeholders(text):
        if name not in known:
            raise ValueError(
                f"{place}: unknown placeholder {{{cut(name, LONGEST_SHOWN)}}} in "
                f"{cut(text, LONGEST_SHOWN)!r}. Known are "
                f"{', '.join(f'{{{one}}}' for one in known)}; a brace itself is {{{{ or }}}}"
            )


def filled(text: str, values: Mapping[str, str]) -> str:
    """The text with each placeholder's value; one that has none stays as it is."""
    return "".join(
        literal if name is None else values.get(name, f"{{{name}}}")
        for literal, name in _parts(text)
    )


def _parts(text: str) -> Iterator[tuple[str, str | None]]:
    """Pieces of text, and the names between them."""
    end = 0
    for found in _PART.finditer(text):
        yield text[end : found.start()], None
        end = found.end()
        if found[0] in ("{{", "}}"):
            yield found[0][0], None
        elif found[1] is None:
            brace = found[0]
            raise ValueError(
                f"{cut(text, LONGEST_SHOWN)!r} has a {brace} by itself: write {brace * 2} for one"
            )
        else:
            yield "", found[1]
    yield text[end:], None
