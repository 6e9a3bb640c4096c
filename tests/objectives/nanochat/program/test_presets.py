import pytest

from objectives.nanochat.program.options import Asked, resolve
from objectives.nanochat.program.presets import PRESETS, PROFILES, unusual


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_a_configuration(preset: str) -> None:
    found = resolve(Asked(preset=preset))
    assert found.training.num_batches is not None
    assert found.training.target_flops is None


@pytest.mark.parametrize(
    ("profile", "micro", "accumulation", "length", "recompute"),
    [
        ("fast", 8, 4, 1024, False),
        ("balanced", 4, 8, 2048, True),
        ("quality", 2, 16, 4096, True),
        ("memory_efficient", 1, 32, 2048, True),
    ],
)
def test_profiles_cut_the_same_effective_batch_to_the_memory(
    profile: str, micro: int, accumulation: int, length: int, recompute: bool
) -> None:
    config = resolve(Asked(profile=profile)).training
    assert (config.micro_batch_size, config.gradient_accumulation_steps) == (micro, accumulation)
    assert micro * accumulation == 32
    assert (config.sequence_len, config.gradient_checkpointing) == (length, recompute)
    assert config.dtype == "auto"


def test_every_profile_is_tested() -> None:
    assert list(PROFILES) == ["fast", "balanced", "quality", "memory_efficient"]


def test_unusual_values_are_warned_of_and_customary_ones_are_not() -> None:
    assert unusual({"micro_batch_size": 4, "num_epochs": None, "n_embd": 10**6}) == []
    assert unusual({"micro_batch_size": 64, "log_interval_steps": 100}) == [
        "micro_batch_size 64 is outside the customary 1 to 16"
    ]
