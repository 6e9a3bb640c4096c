from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.fx import GraphModule

from objectives.nanochat.config import NanochatConfig, search_space
from objectives.nanochat.model import GPT
from objectives.nanochat.synaptic import release_noise
from objectives.nanochat.train import Trainer

pytestmark = pytest.mark.filterwarnings(  # torch's own: as it traces an autograd function, and
    "ignore:.*autograd.function.Function.*should not be instantiated:DeprecationWarning",
    "ignore:.*torch.jit.script_method. is deprecated:DeprecationWarning",  # imports its compiler
)
SMALL = NanochatConfig(n_layer=1, n_embd=16, sequence_len=64)


def graphs(config: NanochatConfig) -> list[str]:
    """The code of every graph that a training and a scoring pass are compiled to."""
    found: list[str] = []

    def backend(module: GraphModule, _: list[Tensor]) -> Callable[..., Any]:
        found.extend(part.code for part in module.modules() if isinstance(part, GraphModule))
        return module.forward

    torch._dynamo.reset()
    generator = torch.Generator().manual_seed(0)
    model = GPT(config, generator, torch.device("cpu"))
    compiled = torch.compile(model, backend=backend)
    tokens = torch.zeros(2, config.sequence_len, dtype=torch.long)
    compiled(tokens, tokens, release_noise(config, generator)).backward()
    with torch.no_grad():
        compiled(tokens, tokens)
    return found


def test_all_candidates_compile_to_the_same_graph() -> None:
    knobs = search_space(SMALL)
    other = SMALL.with_knobs(knobs.decode([0.9] * knobs.dimension))
    one = graphs(SMALL)
    assert len(one) >= 2
    assert one == graphs(other)
    assert one != graphs(SMALL.with_knobs({"n_embd": 32}))


@pytest.mark.slow
@pytest.mark.parametrize("model", ["gpt", "synaptic"])
def test_compiled_training_is_that_of_eager_up_to_rounding(
    trainer: Callable[..., Trainer], model: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    eager, compiled = (trainer(10, model=model, compile=on) for on in (False, True))
    for _ in range(10):
        eager.step()
        compiled.step()
    assert torch.allclose(eager.losses, compiled.losses, atol=1e-4)
