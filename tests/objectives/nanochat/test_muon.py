import pytest
import torch

from objectives.nanochat.optim import Muon, orthogonal


def test_a_step_is_that_of_torch_up_to_its_bfloat16() -> None:
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


@pytest.mark.parametrize("shape", [(3, 8, 32), (3, 32, 8), (3, 16, 16)])
def test_the_direction_is_nearly_orthogonal(shape: tuple[int, ...]) -> None:
    x = orthogonal(torch.randn(shape, generator=torch.Generator().manual_seed(0)))
    singular = torch.linalg.svdvals(x)
    assert singular.max() < 1.4
    assert singular.median() > 0.6


def test_a_gradient_of_zero_moves_nothing() -> None:
    assert not orthogonal(torch.zeros(1, 4, 4)).any()
