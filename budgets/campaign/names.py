"""Names cut to a width, and still told apart."""

from collections.abc import Sequence


def shortened(names: Sequence[str], width: int) -> list[str]:
    """The names as they are, or with their middles left out where they are longer than `width`.

    Two that would look alike begin with their numbers instead, counted from 1.
    """
    cut = [_cut(name, width) for name in names]
    return [
        short if cut.count(short) == 1 else _cut_behind(f"{number}", name, width)
        for number, (name, short) in enumerate(zip(names, cut, strict=True), 1)
    ]


def _cut(name: str, width: int) -> str:
    if len(name) <= width:
        return name
    tail = 2 * (width - 1) // 3  # levels that differ and `_base` stand at the end
    return f"{name[: width - 1 - tail]}…{name[-tail:]}"


def _cut_behind(number: str, name: str, width: int) -> str:
    return f"{number}…{name[-(width - 1 - len(number)) :]}"
