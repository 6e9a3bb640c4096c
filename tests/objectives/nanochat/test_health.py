import torch
from torch import Tensor

from objectives.nanochat.train import diagnose


def falling(steps: int = 200) -> Tensor:
    noise = torch.randn(steps, generator=torch.Generator().manual_seed(0))
    return 3.0 + 2.0 * torch.exp(-torch.arange(steps) / 40.0) + 0.05 * noise


def figures(losses: Tensor) -> dict[str, float]:
    return diagnose(losses, torch.linspace(0.1, 2.0, len(losses)), max_grad_norm=1.0)


def test_a_run_that_learns_has_no_flags() -> None:
    found = figures(falling())
    assert found["loss_spikes"] == found["unstable"] == found["exploding"] == 0.0
    assert found["largest_grad_norm"] == 2.0
    assert 0.5 < found["clipped_share"] < 0.6
    assert 2.9 < found["train_loss_tail"] < 3.1


def test_losses_that_jump_now_and_then_are_spikes_and_many_are_unstable() -> None:
    one, many = falling(), falling()
    one[120] += 1.0
    many[40::25] += 1.0
    assert figures(one)["loss_spikes"] == 1.0
    assert figures(one)["unstable"] == 0.0
    assert 4.0 < figures(many)["loss_spikes"] <= 7.0
    assert figures(many)["unstable"] == 1.0


def test_a_loss_that_ends_above_its_lowest_level_is_exploding() -> None:
    losses = falling()
    losses[150:] += torch.linspace(0.0, 2.0, 50)
    assert figures(losses)["exploding"] == 1.0


def test_a_run_that_is_lost_at_once_is_exploding() -> None:
    lost = torch.cat((torch.tensor([5.5, 5.5]), torch.full((198,), 7.0)))
    assert figures(lost)["exploding"] == 1.0


def test_a_run_of_a_few_steps_is_judged_too() -> None:
    assert figures(torch.tensor([5.0, 4.0]))["exploding"] == 0.0
    assert figures(torch.tensor([5.0]))["loss_spikes"] == 0.0


def test_a_flat_loss_has_no_spikes() -> None:
    assert figures(torch.full((100,), 5.5))["loss_spikes"] == 0.0
