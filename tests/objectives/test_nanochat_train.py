import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from objectives.api import Context, DivergedError, Measurement, OutOfMemoryError, SetupError
from objectives.nanochat import train
from objectives.nanochat.knobs import SPACE
from objectives.nanochat.objective import NanochatObjective
from objectives.space import Knob

Beats = list[Mapping[str, float]]
BASELINE = SPACE.decode(SPACE.baseline)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A small language: 300 documents of words in a learnable order."""
    choice = random.Random(0)  # noqa: S311 - no secret hangs on it
    words = ["".join(choice.choices("abcdefgh", k=choice.randint(2, 6))) for _ in range(40)]
    follow = {word: choice.sample(words, 3) for word in words}

    def document() -> Iterator[str]:
        word = choice.choice(words)
        for _ in range(60):
            yield word
            word = choice.choice(follow[word])

    path = tmp_path_factory.mktemp("text") / "language.txt"
    path.write_text("\n\n".join(" ".join(document()) for _ in range(300)))
    return str(path)


def objective(text: str, steps: int = 40, **settings: Any) -> NanochatObjective:
    """A model that trains in a few milliseconds a step."""
    shape = {"n_layer": 1, "n_embd": 16, "sequence_len": 64, "batch_size": 2, "val_windows": 32}
    flops = steps * (7.0e6 if settings.get("model") == "gpt" else 8.0e6)
    return NanochatObjective.from_settings({"data": text, "target_flops": flops} | shape | settings)


def evaluate(
    objective: NanochatObjective,
    tmp_path: Path,
    seed: int = 0,
    beats: Beats | None = None,
    knobs: Mapping[str, float] = BASELINE,
) -> Measurement:
    heard: Beats = [] if beats is None else beats
    return objective.evaluate(knobs, seed, Context(tmp_path, "cpu", 1, heard.append))


def test_training_lowers_the_held_out_bits_per_byte(text: str, tmp_path: Path) -> None:
    beats: Beats = []
    measured = evaluate(objective(text), tmp_path, beats=beats)
    assert measured.metrics["initial_bpb"] == pytest.approx(8.0, abs=0.05)
    assert measured.score < 5.0
    assert measured.tokens == measured.steps * 128
    assert 0 < measured.train_flops <= objective(text).config.target_flops
    assert measured.eval_flops > 0
    assert beats[-1]["step"] == measured.steps
    assert len(beats) >= measured.steps / 10
    assert set(measured.metrics) == {
        "initial_bpb",
        "tokens_per_second",
        "train_loss_tail",
        "max_grad_norm",
        "epochs",
    }


def test_the_same_seed_gives_the_same_score_in_any_order_and_another_seed_another(
    text: str, tmp_path: Path
) -> None:
    subject = objective(text, steps=25)
    scores = [evaluate(subject, tmp_path, seed).score for seed in (0, 1, 0)]
    assert scores[0] == scores[2]
    assert scores[0] != scores[1]


def test_an_evaluation_leaves_the_state_of_torch_alone(text: str, tmp_path: Path) -> None:
    torch.manual_seed(7)
    before = (torch.get_rng_state(), torch.get_num_threads(), torch.get_default_dtype())
    evaluate(objective(text, steps=25), tmp_path)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (torch.get_num_threads(), torch.get_default_dtype()) == before[1:]
    assert torch.is_grad_enabled()


@pytest.fixture(scope="module")
def alive(text: str) -> NanochatObjective:
    return objective(text, steps=80, n_layer=2)


@pytest.mark.parametrize("knob", SPACE.knobs, ids=lambda knob: knob.name)
def test_every_knob_changes_the_score_between_its_bounds(
    knob: Knob, alive: NanochatObjective, tmp_path: Path
) -> None:
    loud = BASELINE | {"lambda_loge": 3.0, "alpha_c": 1.0}
    low, high = (
        evaluate(alive, tmp_path, knobs=loud | {knob.name: knob.decode(unit)}).score
        for unit in (0.0, 1.0)
    )
    assert abs(low - high) > 1e-4


def test_the_plain_model_ignores_the_knobs(text: str, tmp_path: Path) -> None:
    plain = objective(text, steps=25, model="gpt")
    assert (
        evaluate(plain, tmp_path).score
        == evaluate(plain, tmp_path, knobs=BASELINE | {"lambda_loge": 4.0}).score
    )


def test_a_loss_that_is_not_finite_is_named_with_its_step(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = train.Trial._step

    def broken(self: train.Trial, index: int) -> None:
        step(self, index)
        if index == 12:
            self.model.head.data.fill_(torch.nan)

    monkeypatch.setattr(train.Trial, "_step", broken)
    with pytest.raises(DivergedError, match="loss is nan at step 14"):
        evaluate(objective(text), tmp_path)


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
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    raised: Exception,
    expected: type[Exception],
) -> None:
    def fail(*_: object) -> None:
        raise raised

    monkeypatch.setattr(train.Trial, "_step", fail)
    with pytest.raises(expected) as error:
        evaluate(objective(text), tmp_path)
    assert type(error.value) is expected


def test_the_batch_of_a_shape_with_grouped_heads_trains(text: str, tmp_path: Path) -> None:
    grouped = objective(text, n_layer=2, n_head=4, n_kv_head=2, target_flops=1e9)
    assert evaluate(grouped, tmp_path).score < 7.0


def test_preflight_warns_of_few_steps_and_repeated_text_and_refuses_too_few(text: str) -> None:
    assert "steps: below 200" in objective(text).preflight()[0]
    many = objective(text, target_flops=1e11).preflight()
    assert any("passes over the training text" in warning for warning in many)
    assert any("a control" in w for w in objective(text, steps=300, model="gpt").preflight())
    with pytest.raises(SetupError, match="at least 20"):
        objective(text, steps=15).preflight()


@pytest.mark.gpu
def test_on_a_gpu_the_same_seed_gives_the_same_score(text: str, tmp_path: Path) -> None:
    context = Context(tmp_path, "cuda", 1, lambda _: None)
    one, other = (objective(text).evaluate(BASELINE, 0, context) for _ in range(2))
    assert one.score == other.score < 5.0
