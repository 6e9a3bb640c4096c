from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch

from objectives.api import DivergedError, Measurement, OutOfMemoryError, SetupError
from objectives.nanochat.config import NanochatConfig, search_space
from objectives.nanochat.objective import NanochatObjective
from objectives.nanochat.train import Trainer
from objectives.space import Knob

Build = Callable[..., NanochatObjective]
Evaluate = Callable[..., Measurement]


def test_an_evaluation_reports_what_it_trained_and_how_it_went(
    objective: Build, evaluate: Evaluate
) -> None:
    beats: list[Mapping[str, float]] = []
    subject = objective(target_flops=3e8)
    measured = evaluate(subject, beats=beats)
    assert measured.score < measured.metrics["initial_bpb"] - 1.0
    assert measured.tokens == measured.steps * 128
    assert measured.metrics["planned_flops"] == 3e8
    assert 0.9 * 3e8 < measured.train_flops <= 3e8
    assert 0 < measured.eval_flops < measured.train_flops
    assert measured.metrics["train_cpu_seconds"] > 0
    assert beats[-1]["step"] == measured.steps
    assert len(beats) >= measured.steps / 10
    flags = {
        "exploding",
        "unstable",
        "loss_spikes",
        "largest_grad_norm",
        "train_loss_tail",
        "epochs",
    }
    assert flags < set(measured.metrics)


def test_the_same_seed_gives_the_same_score_in_any_order_and_another_seed_another(
    objective: Build, evaluate: Evaluate
) -> None:
    subject = objective(25)
    scores = [evaluate(subject, seed).score for seed in (0, 1, 0)]
    assert scores[0] == scores[2]
    assert scores[0] != scores[1]


def test_an_evaluation_leaves_the_state_of_torch_alone(
    objective: Build, evaluate: Evaluate
) -> None:
    torch.manual_seed(7)
    before = (torch.get_rng_state(), torch.get_num_threads(), torch.get_default_dtype())
    evaluate(objective(25))
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (torch.get_num_threads(), torch.get_default_dtype()) == before[1:]
    assert torch.is_grad_enabled()


KNOBS = [
    (group, knob)
    for group in ("synaptic", "optimizer", "shape")
    for knob in search_space(NanochatConfig(space=group, n_embd=16)).knobs
]


@pytest.mark.parametrize(("group", "knob"), KNOBS, ids=[knob.name for _, knob in KNOBS])
def test_every_knob_changes_the_score_between_its_bounds(
    group: str, knob: Knob, objective: Build, evaluate: Evaluate
) -> None:
    subject = objective(40, n_layer=2, space=group, weight_decay=0.1, lambda_loge=3.0)
    low, high = (evaluate(subject, **{knob.name: knob.decode(unit)}).score for unit in (0.0, 1.0))
    assert abs(low - high) > 1e-4


def test_a_loss_that_is_not_finite_ends_the_evaluation(
    objective: Build, evaluate: Evaluate
) -> None:
    with pytest.raises(DivergedError, match="at step"):
        evaluate(objective(40, embedding_lr=1e38))


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (torch.OutOfMemoryError("CUDA out of memory"), OutOfMemoryError),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), OutOfMemoryError),
        (MemoryError(), OutOfMemoryError),
        (RuntimeError("shapes do not match"), RuntimeError),
    ],
)
def test_only_memory_that_did_not_suffice_is_called_that(
    objective: Build,
    evaluate: Evaluate,
    monkeypatch: pytest.MonkeyPatch,
    raised: Exception,
    expected: type[Exception],
) -> None:
    def fail(*_: object) -> None:
        raise raised

    monkeypatch.setattr(Trainer, "step", fail)
    with pytest.raises(expected) as error:
        evaluate(objective(40))
    assert type(error.value) is expected


@pytest.mark.parametrize(
    "settings",
    [
        {"n_layer": 2, "n_head": 4, "n_kv_head": 2, "n_embd": 32},
        {"tokenizer": "bpe:300"},
        {"gradient_accumulation_steps": 2},
        {"gradient_checkpointing": True},
        {"model": "gpt", "attention": "fused"},
    ],
    ids="-".join,
)
def test_other_shapes_tokens_and_ways_of_computing_train_too(
    objective: Build, evaluate: Evaluate, settings: dict[str, Any]
) -> None:
    measured = evaluate(objective(40, **settings))
    assert measured.score < 0.8 * measured.metrics["initial_bpb"]


def test_missing_and_unknown_knobs_are_named(objective: Build, evaluate: Evaluate) -> None:
    with pytest.raises(ValueError, match=r"unknown \['tau'\]"):
        evaluate(objective(40), tau=0.5)


def test_too_few_steps_are_refused_before_anything_is_trained(
    objective: Build, evaluate: Evaluate
) -> None:
    with pytest.raises(SetupError, match="pays for 15 steps"):
        evaluate(objective(15))
