import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from objectives.api import SetupError
from objectives.nanochat.program.forecast import forecast, warnings
from objectives.nanochat.program.options import Asked, Resolved, resolve
from objectives.nanochat.program.room import free_bytes, require_disk
from objectives.nanochat.program.store import Entry
from objectives.nanochat.text import data
from objectives.nanochat.train import Trainer

Small = Callable[..., Resolved]


def told(*assignments: str, tokens: int | None = 4_500_000) -> list[str]:
    resolved = resolve(Asked(assignments=assignments))
    return list(warnings(resolved, forecast(resolved, tokens)))


@pytest.mark.parametrize("model", ["synaptic", "gpt"])
@pytest.mark.parametrize(
    "shape", [{}, {"n_head": 4, "n_kv_head": 2, "n_embd": 64}], ids=["plain", "grouped"]
)
def test_parameters_and_the_size_of_a_checkpoint_are_those_of_a_real_one(
    small: Small, tmp_path: Path, model: str, shape: dict[str, Any]
) -> None:
    resolved = small(tmp_path, model=model, **shape)
    corpus = data.load(resolved.training.data)
    trainer = Trainer(resolved.training, corpus, 0, "cpu")
    trainer.step()
    file = io.BytesIO()
    torch.save(trainer.state_dict(), file)
    expected = forecast(resolved, len(corpus.train))
    assert expected.parameters == sum(p.numel() for p in trainer.model.parameters())
    assert expected.checkpoint_bytes == pytest.approx(len(file.getvalue()), rel=0.1)


def test_the_first_length_that_is_set_pays() -> None:
    resolved = resolve(Asked(assignments=["num_epochs=2", "num_batches=50"]))
    assert forecast(resolved, None).plan.steps == 50
    epochs = resolve(Asked(assignments=["num_epochs=2"]))
    assert forecast(epochs, 38_400).plan.steps == 200
    with pytest.raises(ValueError, match=r"num_epochs: how long .* without the text"):
        forecast(epochs, None)


def test_too_little_for_one_step_is_refused_with_what_would_do() -> None:
    resolved = resolve(Asked(profile="balanced"))
    with pytest.raises(ValueError, match=r"pays for no step: .*target_flops=7\.4e\+13"):
        forecast(resolved, 10_000)


def test_a_sound_run_is_told_nothing() -> None:
    assert told() == []


@pytest.mark.parametrize(
    ("assignments", "warning"),
    [
        (("num_batches=15",), "15 steps: below 20 the model is as good as untrained"),
        (("num_batches=60",), "60 steps: below 200"),
        (("num_batches=60000",), "5.1 passes over the training text"),
        (("val_windows=32",), "val_windows 32: below 64"),
        (("micro_batch_size=17",), "micro_batch_size 17 is outside the customary 1 to 16"),
        (
            ("target_flops=3e10", "num_batches=300"),
            "num_batches (--set) is not used: target_flops (--set) decides",
        ),
    ],
)
def test_what_makes_a_run_doubtful_is_told(assignments: tuple[str, ...], warning: str) -> None:
    assert any(line.startswith(warning) for line in told(*assignments))


def test_a_preset_is_not_warned_of_its_own_values() -> None:
    resolved = resolve(Asked(preset="quick"))
    assert not any("customary" in line for line in warnings(resolved, forecast(resolved, 10**6)))


def test_disk_is_needed_for_the_checkpoints_kept_and_the_one_being_written() -> None:
    resolved = resolve(Asked(assignments=["keep_checkpoints=2", "keep_best=false"]))
    expected = forecast(resolved, 10**6)
    assert expected.disk_bytes == 3 * expected.checkpoint_bytes
    held = [Entry(name="a", step=1, bpb=None, sha256="", bytes=expected.checkpoint_bytes)]
    enough = 2 * expected.checkpoint_bytes
    require_disk(expected, resolved.program, held, lambda _: enough)
    with pytest.raises(SetupError, match=r"needs .* more for 2 checkpoints .*keep_checkpoints=1"):
        require_disk(expected, resolved.program, held, lambda _: enough - 1)


def test_free_disk_is_known_for_a_directory_still_to_be_made(tmp_path: Path) -> None:
    assert free_bytes(tmp_path / "not" / "there") > 0
