"""The objective as a search calls it: evaluations, controls, budgets, preflight."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from objectives.api import DivergedError, Measurement, OutOfMemoryError, SetupError, Variant
from objectives.nanochat.config import NanochatConfig, search_space
from objectives.nanochat.objective import NanochatObjective
from objectives.nanochat.train import torch_set
from objectives.registry import varied
from objectives.space import Knob

Build = Callable[..., NanochatObjective]
Evaluate = Callable[..., Measurement]


def test_the_same_seed_gives_the_same_score_in_any_order_and_leaves_torch_alone(
    objective: Build, evaluate: Evaluate
) -> None:
    state = torch.get_rng_state()
    scores = [evaluate(objective(25), seed).score for seed in (0, 1, 0)]
    assert scores[0] == scores[2] != scores[1]
    assert torch.equal(torch.get_rng_state(), state)


KNOBS = [
    (group, knob)
    for group in ("synaptic", "optimizer")
    for knob in search_space(NanochatConfig(space=group, n_embd=16)).knobs
]


@pytest.mark.parametrize(("group", "knob"), KNOBS, ids=[knob.name for _, knob in KNOBS])
def test_every_knob_changes_the_score_between_its_bounds(
    group: str, knob: Knob, objective: Build, evaluate: Evaluate
) -> None:
    loud = {"weight_decay": 0.1, "lambda_loge": 3.0, "val_windows": 8}
    subject = objective(25, n_layer=2, space=group, **loud)
    low, high = (evaluate(subject, **{knob.name: knob.decode(unit)}).score for unit in (0.0, 1.0))
    assert abs(low - high) > 1e-4


def test_a_loss_that_is_not_finite_ends_the_evaluation(
    objective: Build, evaluate: Evaluate
) -> None:
    with pytest.raises(DivergedError, match="at step"):
        evaluate(objective(40, embedding_lr=1e38))


def test_only_too_little_memory_is_called_that() -> None:
    with pytest.raises(OutOfMemoryError), torch_set(1, "cpu"):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
    with pytest.raises(RuntimeError, match="shapes"), torch_set(1, "cpu"):
        raise RuntimeError("shapes do not match")


@pytest.mark.slow
def test_an_evaluation_imports_no_module_that_was_not_preloaded(tmp_path: Path) -> None:
    objective = NanochatObjective.from_settings("nanochat", {"target_flops": 3e9, "val_windows": 8})
    code = f"""
import sys, {", ".join(objective.preload)}
from pathlib import Path
from objectives import registry
from objectives.api import Context, ObjectiveSpec
assert not torch.cuda.is_initialized()
objective = registry.load(ObjectiveSpec.model_validate_json({objective.spec.model_dump_json()!r}))
knobs = {{knob.name: knob.baseline for knob in objective.space.knobs}}
before = set(sys.modules)
objective.evaluate(knobs, 1, Context(Path({str(tmp_path)!r}), "cpu", 1, lambda metrics: None))
print(len(set(sys.modules) - before))
"""
    answer = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE)
    assert int(answer.stdout) < 10  # torch.profiler's own, at the end


def test_preflight_warns_of_few_steps_and_repeated_text_and_refuses_too_few(
    objective: Build, evaluate: Evaluate
) -> None:
    assert "steps: below 200" in objective(40).preflight()[0]
    many = objective(steps=5000).preflight()
    assert any("passes over the training text" in warning for warning in many)
    for call in (objective(15).preflight, lambda: evaluate(objective(15))):
        with pytest.raises(SetupError, match=r"pays for 15 steps .* at least 20"):
            call()


def variant(objective: NanochatObjective, chosen: Variant | None) -> NanochatObjective:
    assert chosen is not None
    return NanochatObjective.from_settings(
        "nanochat", varied(objective.spec, chosen.settings).settings
    )


@pytest.mark.parametrize("space", ["", "synaptic + optimizer"])
def test_the_control_of_the_synaptic_model_is_plain_attention_at_the_same_points_and_flops(
    space: str, objective: Build
) -> None:
    subject = objective(target_flops=3e8, space=space)
    (control,) = subject.controls()
    plain = variant(subject, control)
    assert (control.name, control.cost_factor) == ("synapses off", 1.0)
    assert (plain.config.model, plain.config.target_flops) == ("gpt", 3e8)
    assert plain.space == subject.space
    assert plain.fingerprint != subject.fingerprint
    assert plain.controls() == ()
    longer = variant(plain, plain.scaled(1.3))  # at equal seconds
    assert longer.config == plain.config.model_copy(update={"target_flops": 3.9e8})
