from pathlib import Path
from typing import Any

import pytest

from objectives.nanochat.flops import parts, per_token
from objectives.nanochat.program.count import as_text, document


@pytest.mark.parametrize("model", ["synaptic", "gpt"])
@pytest.mark.parametrize("recompute", [False, True])
def test_the_parts_add_up_and_torch_counts_the_same(
    small: Any, tmp_path: Path, model: str, recompute: bool
) -> None:
    resolved = small(tmp_path, model=model, gradient_checkpointing=recompute)
    cost = per_token(resolved.training)
    per_part = tuple(parts(resolved.training).values())
    assert sum(part.forward for part in per_part) == pytest.approx(cost.forward)
    assert sum(part.backward for part in per_part) == pytest.approx(cost.backward)
    assert (per_part[-1].backward > 0) == recompute
    found = document(resolved, count=True)
    assert found["micro_batch"]["ratio"] == pytest.approx(1.0, rel=0.01)
    assert (found["steps"], found["paid_by"]) == (12, "num_batches")


def test_the_text_names_every_part_and_the_ratio(small: Any, tmp_path: Path) -> None:
    text = "\n".join(as_text(document(small(tmp_path), count=True)))
    for word in ("attention", "head", "calcium", "chain", "one step", "ratio 1.0"):
        assert word in text
