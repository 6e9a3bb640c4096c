"""Differences and effects in words: how large, which way, how sure."""

from math import floor, log10

from budgets.effects import Difference, Effect


def in_words(own: Difference) -> str:
    """`3.1% better (2.2 to 4.0)`, in the score's own unit where there are no percents.

    Negative bounds reach to the other side. Without an interval none is given.
    """
    if own.mean is None:
        return "-"
    mean, lower, upper, unit = own.percent, own.percent_lower, own.percent_upper, "%"
    if mean is None:
        mean, lower, upper, unit = own.mean, own.lower, own.upper, ""
    reach = 0.0 if lower is None or upper is None else (upper - lower) / 2
    digits = _digits(reach or mean)
    size = f"{abs(mean):.{digits}f}"
    if not float(size):
        said, sign = f"{size}{unit} apart", 1
    else:
        said, sign = (f"{size}{unit} better", -1) if mean < 0 else (f"{size}{unit} worse", 1)
    if lower is None or upper is None:
        return said
    low, high = sorted((sign * lower, sign * upper))
    return f"{said} ({low:.{digits}f} to {high:.{digits}f})"


def _digits(size: float) -> int:
    """Behind the point: two, or more where `size` is too small to be seen in them."""
    return 2 if not size else min(max(-floor(log10(abs(size))), 2), 6)


def with_level(own: Difference, level: float) -> str:
    """`3.1% better (95%: 2.2 to 4.0)`."""
    return in_words(own).replace("(", f"({100 * (1 - level):g}%: ", 1)


def chance_in_words(own: Difference) -> str:
    if own.chance is None:
        return "-"
    return "<0.0001" if own.chance < 0.0001 else f"{own.chance:.2g}"


def name_of(effect: Effect) -> str:
    """`n_embd: 64 against 32`, `n_embd 64 with n_layer 4`."""
    if effect.is_interaction:
        pairs = zip(effect.factors, effect.levels, strict=True)
        return " with ".join(f"{factor} {level}" for factor, level in pairs)
    return f"{effect.factors[0]}: {effect.levels[0]} against {effect.against[0]}"


def moves(effects: tuple[Effect, ...], level: float) -> list[str]:
    """What was found, one clause a factor, then one an interaction. Empty: nothing was."""
    clauses = []
    for factor in dict.fromkeys(e.factors[0] for e in effects if not e.is_interaction):
        own = [e for e in effects if e.factors == (factor,)]
        levels = ", ".join(
            f"{e.levels[0]} against {e.against[0]} is {with_level(e.difference, level)}"
            for e in own
        )
        clauses.append(f"{factor} moves the score: {levels}")
    clauses += [
        f"{' and '.join(e.factors)} act together: {name_of(e)} is "
        f"{with_level(e.difference, level)} than the two add up to"
        for e in effects
        if e.is_interaction
    ]
    return clauses
