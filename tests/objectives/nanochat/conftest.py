"""A small language to learn, and objectives that train on it in a few milliseconds a step."""

import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from objectives.api import Context, Measurement
from objectives.nanochat import data
from objectives.nanochat.objective import NanochatObjective
from objectives.nanochat.train import Trainer

TINY = {
    "n_layer": 1,
    "n_embd": 16,
    "sequence_len": 64,
    "micro_batch_size": 2,
    "val_windows": 32,
}


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> Iterator[None]:
    """As the programs train: two threads of so small a model mostly wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """300 documents of words in a learnable order."""
    choice = random.Random(0)  # noqa: S311 - no secret hangs on it
    words = ["".join(choice.choices("abcdefgh", k=choice.randint(2, 6))) for _ in range(40)]
    follow = {word: choice.sample(words, 3) for word in words}

    def document() -> Iterator[str]:
        word = choice.choice(words)
        for _ in range(60):
            yield word
            word = choice.choice(follow[word])

    path = tmp_path_factory.mktemp("text") / "language.txt"
    path.write_text("\n\n".join(" ".join(document()) for _ in range(300)))
    return str(path)


@pytest.fixture
def objective(text: str) -> Callable[..., NanochatObjective]:
    def build(steps: int = 40, **settings: Any) -> NanochatObjective:
        length = {} if "target_flops" in settings else {"num_batches": steps}
        return NanochatObjective.from_settings(
            "nanochat", {"data": text} | TINY | length | settings
        )

    return build


@pytest.fixture
def trainer(objective: Callable[..., NanochatObjective]) -> Callable[..., Trainer]:
    def build(steps: int = 40, seed: int = 0, **settings: Any) -> Trainer:
        config = objective(steps, **settings).config
        return Trainer(config, data.load(config.data), seed, "cpu")

    return build


@pytest.fixture
def evaluate(tmp_path: Path) -> Callable[..., Measurement]:
    def run(
        objective: NanochatObjective,
        seed: int = 0,
        beats: list[Mapping[str, float]] | None = None,
        **knobs: float,
    ) -> Measurement:
        heard: list[Mapping[str, float]] = [] if beats is None else beats
        baseline = objective.space.decode(objective.space.baseline)
        context = Context(tmp_path, "cpu", 1, heard.append)
        return objective.evaluate(baseline | knobs, seed, context)

    return run
