"""What it is called when a ledger cannot be made again."""


class ReplayError(Exception):
    """The search no longer proposes what the ledger says it proposed.

    Named here, not beside the search, so that naming it imports no cma.
    """

    def __init__(self, generation: int, why: str) -> None:
        super().__init__(
            f"the replay diverges at generation {generation}: {why}. The ledger was changed, or "
            "written with another version of this program, of cma or of numpy"
        )
        self.generation = generation


class DivergedError(Exception):
    """A check's own word for what is wrong."""
