import subprocess
import sys
from collections.abc import Callable

import pytest

from objectives.api import Measurement, SetupError, Variant
from objectives.nanochat.flops import Plan, plan
from objectives.nanochat.objective import NanochatObjective
from objectives.registry import varied


@pytest.fixture(scope="module")
def preloaded(tmp_path_factory: pytest.TempPathFactory) -> tuple[bool, int]:
    """Of a process that has what a fork server preloads: whether that touched CUDA, and how many
    modules an evaluation there imports."""
    objective = NanochatObjective.from_settings({"target_flops": 3e9, "val_windows": 8})
    place = tmp_path_factory.mktemp("preloaded")
    code = f"""
import sys, {", ".join(objective.preload)}
from pathlib import Path
from objectives import registry
from objectives.api import Context, ObjectiveSpec
print(int(torch.cuda.is_initialized()))
objective = registry.load(ObjectiveSpec.model_validate_json({objective.spec.model_dump_json()!r}))
knobs = {{knob.name: knob.baseline for knob in objective.space.knobs}}
before = set(sys.modules)
objective.evaluate(knobs, 1, Context(Path({str(place)!r}), "cpu", 1, lambda metrics: None))
print(len(set(sys.modules) - before))
"""
    answer = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE)
    touched, imported = answer.stdout.split()
    return bool(int(touched)), int(imported)


def test_an_evaluation_imports_no_module_that_was_not_preloaded(
    preloaded: tuple[bool, int],
) -> None:
    assert preloaded[1] < 10  # torch.profiler's own, at the end


def test_what_a_fork_server_preloads_does_not_touch_cuda(preloaded: tuple[bool, int]) -> None:
    assert not preloaded[0]


def test_preflight_warns_of_few_steps_and_repeated_text_and_refuses_too_few(
    objective: Callable[..., NanochatObjective],
) -> None:
    assert "steps: below 200" in objective(40).preflight()[0]
    many = objective(steps=5000).preflight()
    assert any("passes over the training text" in warning for warning in many)
    with pytest.raises(SetupError, match="at least 20"):
        objective(15).preflight()


def test_preflight_looks_at_the_largest_shape_that_may_be_searched(
    objective: Callable[..., NanochatObjective],
) -> None:
    assert objective(target_flops=3e8, n_layer=2).preflight()
    with pytest.raises(SetupError, match="target_flops pays for"):
        objective(target_flops=3e8, n_layer=2, space="shape").preflight()


def test_the_record_says_which_text_was_split_how_and_tokenized_by_what(
    objective: Callable[..., NanochatObjective],
) -> None:
    bytes_, bpe = objective(40).provenance, objective(40, tokenizer="bpe:300").provenance
    assert bytes_["documents"] == 300
    assert bytes_["data_sha256"] == bpe["data_sha256"]
    assert (bytes_["tokenizer_sha256"], len(str(bpe["tokenizer_sha256"]))) == ("", 64)
    assert int(bpe["train_tokens"]) < int(bytes_["train_tokens"])
    assert int(bytes_["train_bytes"]) > 8 * int(bytes_["val_bytes"])


def test_all_starts_lie_in_their_ranges() -> None:
    space = NanochatObjective.from_settings({"space": "synaptic+optimizer+shape"}).space
    assert space.dimension == 21
    assert all(0.0 <= x <= 1.0 for x in space.baseline)


def variant(objective: NanochatObjective, chosen: Variant | None) -> NanochatObjective:
    assert chosen is not None
    return NanochatObjective.from_settings(varied(objective.spec, chosen.settings).settings)


SPACES = ["", "synaptic", "optimizer", "synaptic + optimizer", "shape+synaptic"]


@pytest.mark.parametrize("space", SPACES)
def test_the_control_of_the_synaptic_model_is_plain_attention_at_the_same_points_and_flops(
    space: str, objective: Callable[..., NanochatObjective]
) -> None:
    subject = objective(target_flops=3e8, space=space)
    (control,) = subject.controls()
    plain = variant(subject, control)
    assert (control.label, control.length) == ("synapses off", 1.0)
    assert (plain.config.model, plain.config.target_flops) == ("gpt", 3e8)
    assert plain.space == subject.space
    assert plain.fingerprint != subject.fingerprint
    assert plain.controls() == ()


@pytest.mark.parametrize("space", ["", "synaptic+optimizer"])
def test_synaptic_knobs_move_nothing_in_the_control(
    space: str,
    objective: Callable[..., NanochatObjective],
    evaluate: Callable[..., Measurement],
) -> None:
    subject = objective(25, space=space)
    control = variant(subject, subject.controls()[0])
    plain = evaluate(objective(25, model="gpt")).score
    score = evaluate(control).score
    assert score == pytest.approx(plain, rel=1e-6)  # a knob's way to the unit cube and back rounds
    assert evaluate(control, lambda_loge=4.0, post_fast_lr=1e-2).score == score
    assert evaluate(subject).score != pytest.approx(plain, rel=1e-4)


def test_the_plain_model_has_no_control() -> None:
    assert NanochatObjective.from_settings({"model": "gpt"}).controls() == ()


@pytest.mark.parametrize("factor", [0.37, 1.0, 1.31, 4.0])
@pytest.mark.parametrize(
    "length",
    [
        {"target_flops": 3e9},
        {"num_batches": 500},
        {"num_epochs": 2.0},
        {"num_epochs": 2.0, "num_batches": 500},
        {"num_epochs": 2.0, "num_batches": 500, "target_flops": 3e9},
    ],
    ids="-".join,
)
def test_a_rung_trains_with_so_many_times_the_flops_whatever_decides_the_length(
    length: dict[str, float], factor: float, text: str
) -> None:
    def bought(objective: NanochatObjective) -> Plan:
        return plan(objective.config, train_tokens=100_000)

    subject = NanochatObjective.from_settings({"data": text} | length)
    rung = subject.rung(factor)
    assert rung is not None
    longer = variant(subject, rung)
    assert rung.length == factor
    whole_steps = (1 + factor) * bought(subject).flops_per_step
    expected = factor * bought(subject).train_flops
    assert bought(longer).train_flops == pytest.approx(expected, abs=whole_steps)
    assert bought(longer).paid_by == bought(subject).paid_by
    assert longer.space == subject.space


def test_a_rung_of_the_control_is_the_control_at_equal_seconds(
    objective: Callable[..., NanochatObjective],
) -> None:
    subject = objective(target_flops=3e8)
    control = variant(subject, subject.controls()[0])
    longer = variant(control, control.rung(1.3))
    assert longer.config == control.config.model_copy(update={"target_flops": 3.9e8})


@pytest.mark.parametrize("factor", [0.0, -1.0, float("inf"), float("nan")])
def test_a_rung_needs_a_positive_factor(factor: float) -> None:
    with pytest.raises(ValueError, match="factor must be positive and finite"):
        NanochatObjective.from_settings({"num_batches": 100}).rung(factor)
