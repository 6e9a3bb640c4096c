"""A training run as a file: all it goes on from, and whose it is."""

from collections.abc import Callable
from typing import IO

import torch

from objectives.nanochat.program.store import Entry, Store
from objectives.nanochat.program.tally import Tally
from objectives.nanochat.train import Trainer


def save(trainer: Trainer, tally: Tally, store: Store) -> Entry:
    """Keep the run as it stands. Raises OSError."""
    content = {
        "trainer": trainer.state_dict(),
        "tally": tally.state_dict(),
        "identity": store.manifest.identity.model_dump(mode="json"),
    }

    def write(file: IO[bytes]) -> None:
        try:
            torch.save(content, file)
        except RuntimeError as error:  # torch's complaint about the file that a full disk cut off
            if isinstance(error.__context__, OSError):
                raise error.__context__ from None
            raise

    return store.add(trainer.done, tally.bpb_at(trainer.done), write)


def resume(
    trainer: Trainer, tally: Tally, store: Store, say: Callable[[str], None]
) -> Entry | None:
    """Bring a new trainer to where the newest whole checkpoint left the run; None if there is none.

    What is damaged is reported through `say`, and the checkpoint before it taken.
    """
    for entry, path in store.whole(say):
        # On the CPU: the state of a random generator must stay there.
        content = torch.load(path, map_location="cpu", weights_only=True)
        trainer.load_state_dict(content["trainer"])
        tally.load_state_dict(content["tally"])
        return entry
    return None
