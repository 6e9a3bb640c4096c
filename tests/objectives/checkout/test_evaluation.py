"""One evaluation of a checkout: what is measured, and each way in which it may come to no score."""

import json
import math
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from objectives.api import (
    DivergedError,
    ObjectiveError,
    OutOfMemoryError,
    ProgramFailedError,
    SetupError,
)


def test_an_evaluation_measures_what_the_program_reports(load: Any, attempts: Any) -> None:
    found = attempts.evaluate(load())

    per_token = 6 * (12 * 4 * 128**2 + 2048 * 128)
    assert 2.9 < found.score < 3.6
    assert (found.steps, found.tokens) == (8, 8 * 2048)
    assert found.train_flops == pytest.approx(per_token * found.tokens, rel=1e-6)
    assert found.eval_flops == pytest.approx(2 * 8192 * per_token / 3, rel=1e-6)
    assert found.train_seconds == 8 * 0.5
    assert found.metrics == {
        "initial_bpb": 3.602092,
        "flops_per_token": per_token,
        "parameters": 12 * 4 * 128**2 + 6 * 2048 * 128,
        "tokens_per_second": 4096.0,
        "peak_mib": 12.5,
        "epochs": 1.0,
        "checkpoint_bytes": pytest.approx(2500, abs=500),
    }


def test_only_the_tokens_that_fill_micro_batches_are_scored(load: Any, attempts: Any) -> None:
    found = attempts.evaluate(load(flags={"eval-tokens": 8191}))
    assert found.eval_flops == pytest.approx(2 * 6144 * found.metrics["flops_per_token"] / 3)


def test_every_evaluation_on_the_way_is_counted(load: Any, attempts: Any) -> None:
    found = attempts.evaluate(load(flags={"eval-every": 3}))
    assert found.eval_flops == pytest.approx(4 * 8192 * found.metrics["flops_per_token"] / 3)


def test_knobs_and_seeds_move_the_score_and_nothing_else_does(load: Any, attempts: Any) -> None:
    objective = load()
    first, again = attempts.evaluate(objective), attempts.evaluate(objective)
    assert first.score == again.score
    assert attempts.evaluate(objective, seed=2).score != first.score
    assert attempts.evaluate(objective, matrix_lr=0.06).score < first.score - 0.01


def test_without_seeds_of_ours_every_evaluation_has_the_programs_own(
    load: Any, attempts: Any
) -> None:
    objective = load(seeds=False)
    assert attempts.evaluate(objective).score == attempts.evaluate(objective, seed=2).score
    plain = load(seeds=False, eager=False)
    assert attempts.evaluate(plain).score == attempts.evaluate(plain, seed=2).score


def test_compiled_and_eager_are_two_scores(load: Any, attempts: Any) -> None:
    compiled = attempts.evaluate(load(eager=False)).score
    assert compiled == pytest.approx(attempts.evaluate(load()).score + 0.01, abs=2e-6)


def test_a_gpu_gets_the_seed_too(load: Any, attempts: Any) -> None:
    line = load().command_line(
        load().space.decode(load().space.baseline), 5, attempts.context("cuda")
    )
    assert "--device-type=cuda" in line.argv
    assert "CUDA_VISIBLE_DEVICES" not in line.environment or (
        line.environment["CUDA_VISIBLE_DEVICES"] == os.environ["CUDA_VISIBLE_DEVICES"]
    )


# What stops an evaluation

DIVERGED = [
    ("nan", {}, "the loss is nan at step 4, 3 times in a row"),
    ("late nan", {}, "the score after 8 steps is nan"),
    ("late inf", {}, "the score after 8 steps is inf"),
    ("", {"matrix_lr": 0.3}, "the loss is nan at step 4"),
]


@pytest.mark.parametrize(("trap", "knobs", "said"), DIVERGED, ids=lambda value: str(value)[:12])
def test_a_training_that_diverges_is_no_score_though_it_ends_with_0(
    trap: str, knobs: dict[str, float], said: str, load: Any, attempts: Any
) -> None:
    with pytest.raises(DivergedError, match=said):
        attempts.evaluate(load(trap=trap), **knobs)


SETUP: list[tuple[str, dict[str, Any], str]] = [
    (
        "no step",
        {"target_flops": 1e9},
        r"target_flops pays for no step \(one, of 2,048 tokens, takes 1\.29e\+10 FLOPs\): raise",
    ),
    ("nothing scored", {"flags": {"eval-tokens": 2047}}, "inf: nothing was scored.*eval-tokens"),
    (
        "no score",
        {"flags": {"eval-every": -1}},
        "no line 'Step N | Validation bpb': see eval-every",
    ),
    (
        "batch",
        {"flags": {"total-batch-size": 3000}},
        r"AssertionError: total_batch_size \(3000\) must be a multiple of 2048",
    ),
    ("unknown flag", {"flags": {"grad-clip": 1.0}}, "unrecognized arguments: --grad-clip=1.0"),
    ("wrong value", {"flags": {"depth": "four"}}, "argument --depth: invalid int value: 'four'"),
]


@pytest.mark.parametrize(("wrong", "said"), [s[1:] for s in SETUP], ids=[s[0] for s in SETUP])
def test_what_lets_no_evaluation_come_to_a_score_is_a_fault_of_the_setup(
    wrong: dict[str, Any], said: str, load: Any, attempts: Any
) -> None:
    with pytest.raises(SetupError, match=said):
        attempts.evaluate(load(**wrong))


def test_where_a_knob_may_be_a_shape_it_is_the_candidate_s_own_doing(
    load: Any, attempts: Any
) -> None:
    shape = {"depth": {"kind": "int", "min": 1, "max": 4, "baseline": 4}}
    with pytest.raises(ProgramFailedError, match="target_flops pays for no step"):
        attempts.evaluate(load(target_flops=1e9, knobs=shape))


def test_a_missing_tokenizer_is_a_fault_of_the_setup(load: Any, attempts: Any, base: Path) -> None:
    shutil.rmtree(base / "tokenizer")
    with pytest.raises(SetupError, match=r"where tokenizer\.pkl is not to be had"):
        attempts.evaluate(load())


def test_data_that_is_gone_is_not_replaced_by_other_data(
    load: Any, attempts: Any, base: Path
) -> None:
    shutil.rmtree(base / "base_data_climbmix")
    with pytest.raises(SetupError, match=r"data: expected two or more .* which cannot be read"):
        attempts.evaluate(load())


def test_a_program_that_plans_otherwise_is_no_nanochat_that_can_be_scored(
    load: Any, attempts: Any, checkout: Path
) -> None:
    source = checkout / "scripts/base_train.py"
    source.write_text(
        source.read_text().replace(
            "num_iterations = args.num_it", "num_iterations = 4 or args.num_it"
        )
    )
    with pytest.raises(SetupError, match=r"did not say how many iterations.*last line: Minimum"):
        attempts.evaluate(load())


@pytest.mark.parametrize("trap", ["oom", "cpu oom"])
def test_memory_that_does_not_suffice_is_told_by_what_the_program_says(
    trap: str, load: Any, attempts: Any
) -> None:
    with pytest.raises(OutOfMemoryError, match="memory"):
        attempts.evaluate(load(trap=trap))


FAILED = [
    ("killed", "killed by signal 9 SIGKILL"),
    ("crash", "exited with status 1: RuntimeError: the loss is a tensor of another shape"),
    ("short", "exited with status 0 without a score at its last step 8: the last is of step 0"),
    ("other meta", r"meta_000008\.json has val_bpb 1\.5, and what was printed after 8 steps is"),
    ("typed meta", r"meta_000008\.json is not what nanochat saves: val_bpb is str"),
    ("cut meta", r"meta_000008\.json is not what nanochat saves"),
    ("deep meta", r"meta_000008\.json is not what nanochat saves"),
    ("huge meta", r"meta_000008\.json is not what nanochat saves: expected 1048576 bytes at most"),
    ("linked meta", r"meta_000008\.json cannot be read"),
]


@pytest.mark.parametrize(("trap", "said"), FAILED, ids=[f[0] for f in FAILED])
def test_an_evaluation_that_fails_by_itself_says_how(
    trap: str, said: str, load: Any, attempts: Any
) -> None:
    with pytest.raises(ProgramFailedError, match=said):
        attempts.evaluate(load(trap=trap))


def test_a_checkout_that_saves_nothing_is_believed(load: Any, attempts: Any) -> None:
    assert math.isfinite(attempts.evaluate(load(trap="no meta")).score)


def test_sources_that_changed_are_refused_before_anything_is_started(
    load: Any, attempts: Any, checkout: Path
) -> None:
    objective = load()
    (checkout / "nanochat/common.py").write_text("nothing = 1\n")
    with pytest.raises(SetupError, match="have changed since the run was planned"):
        attempts.evaluate(objective)
    assert list(attempts.last.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["base_data_climbmix/shard_00001.parquet", "tokenizer/tokenizer.pkl"]
)
def test_other_data_than_the_plans_is_refused(
    name: str, load: Any, attempts: Any, base: Path
) -> None:
    objective = load()
    context = replace(attempts.context(), pinned=objective.provenance)
    baseline = objective.space.decode(objective.space.baseline)
    (base / name).write_bytes(b"others")
    with pytest.raises(SetupError, match="has changed"):
        objective.evaluate(baseline, 1, context)
    assert not list(context.directory.iterdir())


def test_data_that_changes_while_it_trains_is_refused(
    load: Any, attempts: Any, base: Path, checkout: Path
) -> None:
    another = base / "base_data_climbmix/shard_00002.parquet"
    with (checkout / "scripts/base_train.py").open("a") as source:
        source.write(f"\nopen({str(another)!r}, 'w').close()\n")
    with pytest.raises(SetupError, match="has changed"):
        attempts.evaluate(load())


def test_knobs_that_are_not_its_own_are_refused(load: Any, attempts: Any) -> None:
    with pytest.raises(ValueError, match=r"missing \['matrix-lr'\], unknown \['momentum'\]"):
        load(space="matrix-lr").evaluate({"momentum": 1.0}, 1, attempts.context())


# What is left, and what it costs


@pytest.mark.parametrize("trap", ["", "crash", "nan", "killed", "other meta"])
def test_nothing_is_left_of_the_base_directory_and_the_data_stays(
    trap: str, load: Any, attempts: Any, base: Path
) -> None:
    before = sorted(path.relative_to(base) for path in base.rglob("*"))
    try:
        attempts.evaluate(load(trap=trap))
    except ObjectiveError:
        assert trap
    meta = set() if trap else {"meta_000008.json"}
    assert {path.name for path in attempts.last.iterdir()} == {"program.json"} | meta
    assert sorted(path.relative_to(base) for path in base.rglob("*")) == before


def test_all_checkpoints_stay_where_that_is_asked_for(load: Any, attempts: Any) -> None:
    attempts.evaluate(load(keep="all"))
    kept = [path.name for path in (attempts.last / "base/base_checkpoints/d4").iterdir()]
    assert sorted(kept) == ["meta_000008.json", "model_000008.pt", "optim_000008_rank0.pt"]
    assert [path.name for path in (attempts.last / "base").iterdir()] == ["base_checkpoints"]


def test_what_was_started_is_on_record(load: Any, attempts: Any, checkout: Path) -> None:
    objective = load()
    attempts.evaluate(objective, seed=9)
    noted = json.loads((attempts.last / "program.json").read_text())
    baseline = {knob.name: knob.baseline for knob in objective.space.knobs}
    line = objective.command_line(baseline, 9, attempts.context())
    assert tuple(noted["argv"]) == line.argv
    assert noted["directory"] == str(checkout)
    assert noted["code"] == objective.config.code
