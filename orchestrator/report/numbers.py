"""Numbers as a report's tables have them."""

from budgets.report.markdown import duration


def score(value: float | None) -> str:
    """Five digits; `-` for none."""
    return "-" if value is None else f"{value:.5g}"


def short(value: float | None) -> str:
    """Four digits; `-` for none."""
    return "-" if value is None else f"{value:.4g}"


def time_in_words(seconds: float) -> str:
    """`6.4 s`, `41 s`, `3 min 20 s`: a tenth, or two digits, where that is something."""
    if 0 < seconds < 0.1:
        return f"{seconds:.2g} s"
    return f"{seconds:.1f} s" if 0 < seconds < 10 else duration(seconds)


def about(seconds: float) -> str:
    """`under a second`, `2 s`, `8 min 16 s`: for who wants to know what it costs."""
    return "under a second" if 0 < seconds < 1 else duration(seconds)


def in_bytes(count: int) -> str:
    """`312 MiB`, `1.4 GiB`; `-` for none."""
    if count <= 0:
        return "-"
    mebibytes = count / 2**20
    return f"{mebibytes:.0f} MiB" if mebibytes < 1000 else f"{mebibytes / 1024:.3g} GiB"
