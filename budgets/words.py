"""Numbers, times, sizes and lists as people read them."""

from collections.abc import Iterable, Sequence
from math import ceil, floor, log10


def number(value: float | None, digits: int = 5, none: str = "-") -> str:
    """`3.1385`: a score's five digits unless others are asked for."""
    return none if value is None else f"{value:.{digits}g}"


def rounded_up(value: float, digits: int = 3) -> str:
    """`0.0485` of 0.04841: never less than it is."""
    step = 10.0 ** (floor(log10(value)) + 1 - digits)
    return f"{ceil(value / step - 1e-9) * step:.{max(digits, 1 + floor(log10(value)))}g}"


def figure(value: float) -> str:
    """`12.3`, `1,234`: three digits, and no more than the whole number."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def percent(share: float, digits: int = 4) -> str:
    """`99%`, `99.5%`, `1.234%`: as many digits as it takes, four at most."""
    return f"{100 * share:.{digits}g}%"


def duration(seconds: float) -> str:
    """`41 s`, `3 min 20 s`, `2 h 05 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def precise_duration(seconds: float) -> str:
    """`0.031 s`, `6.4 s`, `41 s`: a tenth, or two digits, where that is something."""
    if 0 < seconds < 0.1:
        return f"{seconds:.2g} s"
    return f"{seconds:.1f} s" if 0 < seconds < 9.95 else duration(seconds)


def against(need: float, free: float, unit: str) -> tuple[str, str]:
    """What is needed and what is free, told apart: `18 s of device time`, `3.6 s`."""
    if unit not in ("hours", "device-hours"):
        return f"{need:.4g} {unit}", f"{free:.4g} {unit}"
    words = [precise_duration(3600 * hours) for hours in (need, free)]
    if words[0] == words[1]:
        words = [f"{3600 * hours:.6g} s" for hours in (need, free)]
    return words[0] + " of device time" * (unit == "device-hours"), words[1]


def about(seconds: float) -> str:
    """`under a second`, `2 s`, `8 min 16 s`: for who wants to know what it costs."""
    return "under a second" if 0 < seconds < 1 else duration(seconds)


def in_bytes(count: float) -> str:
    """`812 B`, `3.4 MiB`, `120 GiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 999.5:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} TiB"


def sentence_case(text: str) -> str:
    """With a capital at the beginning, and the rest as it is."""
    return text[:1].upper() + text[1:]


def uncapitalized(text: str) -> str:
    """To stand behind other words."""
    return text[:1].lower() + text[1:]


def quoted(text: str) -> str:
    """As somebody else's words."""
    return f"\N{LEFT DOUBLE QUOTATION MARK}{text}\N{RIGHT DOUBLE QUOTATION MARK}"


def counted(count: int, what: str) -> str:
    """`1 seed`, `8 seeds`, `no seeds`; `2 boundaries`."""
    if count == 1:
        return f"1 {what}"
    plural = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{count or 'no'} {plural}"


def listed(words: Iterable[object], most: int | None = None) -> str:
    """`a, b and c`; `a, b and 5 more`, where there are more than `most`."""
    every = [str(word) for word in words]
    if most is not None and len(every) > most:
        every = [*every[: most - 1], f"{len(every) - most + 1} more"]
    return " and ".join(filter(None, (", ".join(every[:-1]), *every[-1:])))


def first_few(clauses: Sequence[str], most: int) -> str:
    """`a; b; and 4 more`."""
    more = [f"and {len(clauses) - most} more"] * (len(clauses) > most)
    return "; ".join([*clauses[:most], *more])
