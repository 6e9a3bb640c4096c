"""A checkout that trains nothing: its settings, its search space, and each end of an evaluation."""

import json
import math
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from objectives import registry
from objectives.api import (
    Context,
    DivergedError,
    Measurement,
    NoScoreError,
    ObjectiveError,
    ObjectiveSpec,
    OutOfMemoryError,
    ProgramFailedError,
    SetupError,
)
from objectives.checkout.objective import SHIM, CheckoutObjective, declared_flags

FAKE = Path(__file__).parent / "fake_nanochat"

FLAGS: dict[str, Any] = {
    "depth": 4,
    "aspect-ratio": 32,
    "head-dim": 64,
    "max-seq-len": 128,
    "device-batch-size": 16,
    "total-batch-size": 2048,
    "eval-tokens": 8192,
}
KNOBS: dict[str, Any] = {
    "matrix-lr": {"kind": "log10", "min": 0.002, "max": 2.0, "baseline": 0.02},
    "warmup-steps": {"kind": "int", "min": 0, "max": 4, "baseline": 2},
}
TARGET_FLOPS = 1e11
"""Seven steps of 2,048 tokens."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A fake checkout, the test's own."""
    return shutil.copytree(FAKE, tmp_path / "nanochat", ignore=shutil.ignore_patterns("*.pyc"))


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """Where its data and tokenizer are."""
    base = tmp_path / "base"
    for name in (
        "base_data_climbmix/shard_00000.parquet",
        "base_data_climbmix/shard_00001.parquet",
    ):
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_bytes(name.encode() * 10)
    (base / "tokenizer").mkdir()
    for name in ("tokenizer.pkl", "token_bytes.pt"):
        (base / "tokenizer" / name).write_bytes(name.encode())
    return base


Settings = Callable[..., dict[str, Any]]


@pytest.fixture
def settings(checkout: Path, base: Path) -> Settings:
    """`settings(flags={...}, ...)`: those of a short training, with others laid over them."""

    def laid(flags: dict[str, Any] | None = None, trap: str = "", **more: Any) -> dict[str, Any]:
        usual = {
            "checkout": str(checkout),
            "python": sys.executable,
            "data": str(base / "base_data_climbmix"),
            "tokenizer": str(base / "tokenizer"),
            "target_flops": TARGET_FLOPS,
            "eager": True,
            "flags": FLAGS | (flags or {}),
            "knobs": KNOBS,
            "environment": {"FAKE_TRAP": trap} if trap else {},
        }
        return usual | more

    return laid


Load = Callable[..., CheckoutObjective]


@pytest.fixture
def load(settings: Settings) -> Load:
    """`load(flags={...}, trap="nan", ...)`: the objective with those settings."""
    return lambda **more: CheckoutObjective.from_settings(settings(**more))


@dataclass
class Place:
    """Where evaluations of a test are made, and what they told while they ran."""

    root: Path
    beats: list[dict[str, float]] = field(default_factory=list)
    made: int = 0

    def context(self, device: str = "cpu") -> Context:
        self.made += 1
        directory = self.root / f"attempt{self.made}"
        directory.mkdir(parents=True)
        return Context(directory, device, 1, lambda m: self.beats.append(dict(m)), "an-attempt")

    @property
    def last(self) -> Path:
        """The directory of the last evaluation."""
        return self.root / f"attempt{self.made}"

    def evaluate(self, objective: CheckoutObjective, seed: int = 1, **knobs: float) -> Measurement:
        """An evaluation of the baseline with some knobs elsewhere."""
        baseline = {knob.name: knob.baseline for knob in objective.space.knobs}
        elsewhere = {name.replace("_", "-"): value for name, value in knobs.items()}
        return objective.evaluate(baseline | elsewhere, seed, self.context())


@pytest.fixture
def attempts(tmp_path: Path) -> Place:
    return Place(tmp_path / "attempts")


# Settings and space

DEPTH = {"kind": "int", "min": 1, "max": 9, "baseline": 5}
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"checkout": "/nowhere"}, "git clone"),
    ({"checkout": " "}, "checkout: expected a path"),
    ({"target_flop": 1}, "'target_flops'"),
    ({"target_flops": None}, "target_flops"),
    ({"target_flops": float("inf")}, "target_flops"),
    ({"flags": {"--depth": 4}}, "without the hyphens"),
    ({"flags": {"depth": [4]}}, "flags.depth"),
    ({"flags": {"num-iterations": 5}}, "num-iterations cannot be set here"),
    ({"flags": {"target_flops": 5}}, "target_flops cannot be set here"),
    ({"environment": {"NANOCHAT_BASE_DIR": "/x"}}, "data and tokenizer"),
    ({"environment": {"RANK": "0"}}, "RANK"),
    ({"environment": {"HF_TOKEN": "swordfish"}}, "pass_environment"),
    ({"flags": {"run": "https://me:swordfish@host/"}}, "a URL with a user name"),
    ({"knobs": {}}, "at least one"),
    ({"knobs": {"depth": DEPTH}}, "depth: a knob's value"),
    ({"knobs": {"target-flops": DEPTH}}, "target-flops cannot be set here"),
]


@pytest.mark.parametrize(("wrong", "word"), WRONG)
def test_a_wrong_setting_is_refused_by_name(wrong: dict[str, Any], word: str, load: Load) -> None:
    with pytest.raises(ValueError, match=re.escape(word)) as caught:
        load(**wrong)
    assert "swordfish" not in str(caught.value)


def test_a_spec_loads_the_same_objective_without_the_checkout(load: Load, checkout: Path) -> None:
    objective = load()
    spec = ObjectiveSpec.model_validate_json(objective.spec.model_dump_json())
    shutil.rmtree(checkout)
    assert registry.load(spec) == objective
    assert registry.load(spec).spec == spec


def test_the_fingerprint_is_of_all_that_decides_a_score(
    load: Load, checkout: Path, base: Path, tmp_path: Path
) -> None:
    before = load().fingerprint
    (checkout / "README.md").write_text("read me")
    moved = shutil.copytree(base / "base_data_climbmix", tmp_path / "elsewhere")
    elsewhere = shutil.copytree(checkout, tmp_path / "another")
    assert load(checkout=str(elsewhere), data=str(moved)).fingerprint == before

    files: tuple[str, ...] = ("nanochat/scripts/base_train.py", "nanochat/nanochat/common.py")
    files += ("base/base_data_climbmix/shard_00000.parquet", "base/tokenizer/token_bytes.pt")
    seen = [before]
    for name in files:
        with (tmp_path / name).open("a") as file:
            file.write("# another line\n")
        seen.append(load().fingerprint)
    shard = base / "base_data_climbmix/shard_00001.parquet"
    shard.write_bytes(shard.read_bytes()[:-1] + b"x")  # the same size
    more: list[dict[str, Any]] = [{"target_flops": 2e11}, {"eager": False}]
    more += [{}, {"environment": {"A": "b"}}, {"flags": {"depth": 5}}]
    seen += [load(**settings).fingerprint for settings in more]
    assert len(set(seen)) == len(seen)
    assert {"program_torch", "data_sha256", "tokenizer_sha256"} <= set(load().provenance)


# What is refused before anything is trained

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"python": "/nowhere/python"}, "setting python"),
    ({"data": "/nowhere"}, "/nowhere"),
    ({"tokenizer": "/nowhere"}, "tokenizer.pkl"),
    ({"flags": {"warmup-ratio": 0.1}}, "'warmup-ratio'"),
    ({"flags": {"eval_every": 3}}, "'eval-every'"),
    ({"knobs": {"adam-beta1": DEPTH}}, "'adam-beta1'"),
]


@pytest.mark.parametrize(("wrong", "word"), REFUSED)
def test_what_cannot_come_to_a_score_is_refused(
    wrong: dict[str, Any], word: str, load: Load
) -> None:
    with pytest.raises(SetupError) as refused:
        load(**wrong).preflight()
    assert word in str(refused.value)


def test_flags_are_read_from_the_source(load: Load, checkout: Path, tmp_path: Path) -> None:
    assert load().preflight() == ()
    known = declared_flags(checkout / "scripts/base_train.py")
    assert {"matrix-lr", "eval-tokens", "fp8"} < known
    (tmp_path / "base_train.py").write_text("def (")
    with pytest.raises(SetupError, match="base_train"):
        declared_flags(tmp_path / "base_train.py")


# One evaluation


def test_an_evaluation_measures_what_the_program_reports(load: Load, attempts: Place) -> None:
    found = attempts.evaluate(load())
    per_token = 6 * (12 * 4 * 128**2 + 2048 * 128)
    assert 2.9 < found.score < 3.6
    assert (found.steps, found.tokens) == (8, 8 * 2048)
    assert found.train_flops == pytest.approx(per_token * found.tokens, rel=1e-6)
    assert found.metrics == {
        "parameters": 12 * 4 * 128**2 + 6 * 2048 * 128,
        "peak_mib": 12.5,
        "loss": pytest.approx(7.53),
    }
    noted = json.loads((attempts.last / "program.json").read_text())
    assert noted["argv"][-2:] == list(
        load().arguments({knob.name: knob.baseline for knob in load().space.knobs})
    )


@pytest.mark.parametrize("trap", ["late nan", "late inf"])
def test_a_score_that_is_not_finite_is_what_it_is(trap: str, load: Load, attempts: Place) -> None:
    assert not math.isfinite(attempts.evaluate(load(trap=trap)).score)


def test_knobs_seeds_and_eager_move_the_score_and_nothing_else_does(
    load: Load, attempts: Place
) -> None:
    objective = load()
    first = attempts.evaluate(objective).score
    assert attempts.evaluate(objective).score == first
    assert attempts.evaluate(objective, seed=2).score != first
    assert attempts.evaluate(objective, matrix_lr=0.06).score < first - 0.01
    assert attempts.evaluate(load(eager=False)).score == pytest.approx(first + 0.01, abs=2e-6)
    line = objective.command_line(
        objective.space.decode(objective.space.baseline), 5, attempts.context("cuda")
    )
    assert "--device-type=cuda" in line.argv


ENDS: list[tuple[dict[str, Any], type[ObjectiveError], str]] = [
    ({"trap": "nan"}, DivergedError, "loss: nan"),
    ({"target_flops": 1e9}, NoScoreError, "no score"),
    ({"flags": {"eval-every": -1}}, NoScoreError, "no score"),
    ({"flags": {"grad-clip": 1.0}}, ProgramFailedError, "--grad-clip=1.0"),
    ({"trap": "oom"}, OutOfMemoryError, "memory"),
    ({"trap": "cpu oom"}, OutOfMemoryError, "memory"),
    ({"trap": "killed"}, ProgramFailedError, "SIGKILL"),
    ({"trap": "crash"}, ProgramFailedError, "a tensor of another shape"),
    ({"trap": "short"}, NoScoreError, "no score"),
]


@pytest.mark.parametrize(("given", "error", "word"), ENDS)
def test_every_other_end_says_why_and_leaves_nothing(
    given: dict[str, Any],
    error: type[ObjectiveError],
    word: str,
    load: Load,
    attempts: Place,
    base: Path,
) -> None:
    before = sorted(base.rglob("*"))
    with pytest.raises(error) as raised:
        attempts.evaluate(load(**given))
    assert word in str(raised.value)
    assert {path.name for path in attempts.last.iterdir()} == {"program.json"}
    assert sorted(base.rglob("*")) == before


def test_sources_that_changed_are_refused_and_new_files_are_not(
    load: Load, attempts: Place, checkout: Path
) -> None:
    objective = load()
    (checkout / "nanochat/copy.py").write_text("new = 1\n")
    attempts.evaluate(objective)
    (checkout / "nanochat/common.py").write_text("nothing = 1\n")
    with pytest.raises(SetupError, match=r"nanochat/common\.py"):
        attempts.evaluate(objective)
    assert list(attempts.last.iterdir()) == []


@pytest.mark.parametrize("name", ["base_data_climbmix/shard_00001.parquet", "tokenizer/new"])
def test_other_data_than_the_plans_is_refused(
    name: str, load: Load, attempts: Place, base: Path
) -> None:
    objective = load()
    context = replace(attempts.context(), pinned=objective.provenance)
    (base / name.replace("new", "tokenizer.pkl")).write_bytes(b"others")
    with pytest.raises(SetupError, match="has changed"):
        objective.evaluate(objective.space.decode(objective.space.baseline), 1, context)
    assert not list(context.directory.iterdir())


PROGRAM = """
import sys
import torch

@torch.compile(dynamic=False, fullgraph=True)
def doubled(x):
    return 2 * x

torch.manual_seed(42)
print(__name__, sys.argv[1:], torch.initial_seed(), torch.compile(len) is len)
print(torch.rand(1).item() == torch.rand(1, generator=torch.Generator().manual_seed(42 + 7)).item())
print(doubled(torch.ones(1)).item())
sys.exit(3)
"""


@pytest.mark.slow  # it imports torch
def test_torch_itself_is_seeded_and_left_uncompiled(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    argv = (sys.executable, str(SHIM), "program", "7", "eager", "--depth=4")
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["__main__ ['--depth=4'] 49 True", "True", "2.0"]
    assert done.returncode == 3
