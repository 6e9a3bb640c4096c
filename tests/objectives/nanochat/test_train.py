import math
from collections.abc import Callable

import pytest
import torch

from objectives.nanochat.config import NanochatConfig
from objectives.nanochat.optim import Muon, get_lr_multiplier, orthogonal
from objectives.nanochat.train import Trainer, diagnose

Build = Callable[..., Trainer]


def advance(trainer: Trainer, steps: int | None = None) -> Trainer:
    for _ in range(trainer.steps if steps is None else steps):
        trainer.step()
    return trainer


def same(one: Trainer, other: Trainer) -> bool:
    pairs = zip(one.model.state_dict().values(), other.model.state_dict().values(), strict=True)
    return torch.equal(one.losses, other.losses) and all(torch.equal(a, b) for a, b in pairs)


def test_weights_and_batches_are_common_to_all_candidates_of_a_seed(trainer: Build) -> None:
    one = trainer(5, stochastic_train_frac=0.0)
    other = trainer(5, stochastic_train_frac=0.4, matrix_lr=0.1)
    pairs = zip(one.model.parameters(), other.model.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    assert all(map(torch.equal, one.batches, other.batches))
    assert torch.equal(one.val, other.val)


@pytest.mark.parametrize("model", ["gpt", "synaptic"])
def test_the_score_is_the_mean_over_all_targets_of_all_windows(trainer: Build, model: str) -> None:
    subject = advance(trainer(10, val_windows=19, model=model))  # no whole number of parts
    tokens = subject.val
    subject.model.eval()
    with torch.no_grad():
        rows = [subject.model.logits(row[None, :-1])[0].log_softmax(-1) for row in tokens]
    picked = [p.gather(1, row[1:, None]) for p, row in zip(rows, tokens, strict=True)]
    expected = -torch.cat(picked).double().mean().item() / math.log(2.0)
    assert subject.evaluate_bpb() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("warmup", "warmdown", "expected"),
    [
        (0.0, 0.0, [1.0, 1.0, 1.0, 1.0]),
        (0.5, 0.0, [0.5, 1.0, 1.0, 1.0]),
        (0.0, 0.5, [1.0, 1.0, 1.0, 0.5]),
        (0.5, 1.0, [0.5, 0.75, 0.5, 0.25]),
    ],
)
def test_the_learning_rate_rises_stays_and_falls(
    warmup: float, warmdown: float, expected: list[float]
) -> None:
    config = NanochatConfig(warmup_ratio=warmup, warmdown_ratio=warmdown)
    assert [get_lr_multiplier(step, 4, config) for step in range(4)] == pytest.approx(expected)


def test_a_step_of_muon_is_that_of_torch_up_to_its_bfloat16() -> None:
    shapes = [(24, 8), (8, 8), (24, 8), (8, 32)]
    generator = torch.Generator().manual_seed(0)
    start = [torch.randn(shape, generator=generator) for shape in shapes]
    ours, theirs = ([torch.nn.Parameter(w.clone()) for w in start] for _ in range(2))
    optimizers = (
        Muon(ours, lr=0.1, momentum=0.9, weight_decay=0.1),
        torch.optim.Muon(theirs, lr=0.1, momentum=0.9, weight_decay=0.1),
    )
    for _ in range(3):
        for one, other in zip(ours, theirs, strict=True):
            one.grad = torch.randn(one.shape, generator=generator)
            other.grad = one.grad.clone()
        for optimizer in optimizers:
            optimizer.step()
    for one, other in zip(ours, theirs, strict=True):
        assert torch.allclose(one, other, atol=0.01)
    assert not orthogonal(torch.zeros(1, 4, 4)).any()


def diagnosed(losses: torch.Tensor) -> dict[str, float]:
    return diagnose(losses, torch.linspace(0.1, 2.0, len(losses)))


def test_spikes_and_explosions_are_told_from_a_run_that_learns() -> None:
    noise = torch.randn(200, generator=torch.Generator().manual_seed(0))
    falling = 3.0 + 2.0 * torch.exp(-torch.arange(200) / 40.0) + 0.05 * noise
    spike, spikes, rising = falling.clone(), falling.clone(), falling.clone()
    spike[120] += 1.0
    spikes[40::25] += 1.0
    rising[150:] += torch.linspace(0.0, 2.0, 50)
    lost = torch.cat((torch.tensor([5.5, 5.5]), torch.full((198,), 7.0)))
    flags = ("loss_spikes", "unstable", "exploding")
    cases = (
        (falling, (0, 0, 0)),
        (spike, (1, 0, 0)),
        (spikes, (5, 1, 0)),
        (rising, (13, 1, 1)),
        (lost, (0, 0, 1)),
        (torch.full((100,), 5.5), (0, 0, 0)),
        (torch.tensor([5.0]), (0, 0, 0)),
    )
    for losses, expected in cases:
        assert tuple(diagnosed(losses)[flag] for flag in flags) == expected
    assert 2.9 < diagnosed(falling)["train_loss_tail"] < 3.1


def test_memory_does_not_grow_with_the_steps(trainer: Build) -> None:
    subject = trainer(10**9)
    subject.step()
    assert len(subject.losses) < 10**4


@pytest.mark.gpu
@pytest.mark.parametrize("model", ["gpt", "synaptic"])
def test_on_a_gpu_the_same_seed_gives_the_same_losses(text: str, model: str) -> None:
    from objectives.nanochat import data

    config = NanochatConfig(data=text, model=model, num_batches=30)
    one, other = (advance(Trainer(config, data.load(text), 0, "cuda")) for _ in range(2))
    assert same(one, other)
    assert one.evaluate_bpb() < 6.0
