"""The judge's word."""


class InvariantError(AssertionError):
    """Something happened that must never happen: says what."""


def must(holds: bool, what: str) -> None:
    """Raises InvariantError unless it holds."""
    if not holds:
        raise InvariantError(what)
