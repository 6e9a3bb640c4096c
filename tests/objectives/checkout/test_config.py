"""The settings of a checkout, its search space, and what it is known by."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from objectives import registry
from objectives.api import ObjectiveSpec, SetupError
from objectives.checkout.config import CheckoutConfig


def test_a_spec_loads_the_same_objective_without_the_checkout(load: Any, checkout: Path) -> None:
    objective = load(knobs={"matrix-lr": {"kind": "log10", "min": 1e-3, "max": 1, "baseline": 0.1}})
    spec = ObjectiveSpec.model_validate_json(objective.spec.model_dump_json())
    shutil.rmtree(checkout)
    assert registry.load(spec) == objective
    assert registry.load(spec).spec == spec
    assert registry.short_name(spec) == "nanochat-checkout"


def test_every_setting_is_known_to_the_registry() -> None:
    names = registry.named("nanochat", {"checkout"}).settings
    assert names == tuple(CheckoutConfig.model_fields)


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("no checkout", {"checkout": "/nowhere"}, "expected a checkout of nanochat.*got /nowhere"),
    ("empty checkout", {"checkout": " "}, "checkout: expected a path"),
    ("no such setting", {"target_flop": 1}, r"'target_flop'.*Did you mean 'target_flops'\?"),
    ("no budget", {"target_flops": None}, "target_flops: it has to be given"),
    ("budget", {"target_flops": 0}, "target_flops: Input should be greater than 0"),
    ("endless", {"target_flops": float("inf")}, "target_flops: Input should be a finite number"),
    ("hyphens", {"flags": {"--depth": 4}}, "'--depth': expected a flag's name without the hyph"),
    ("newline", {"flags": {"depth\n": 4}}, "expected a flag's name without"),
    ("list", {"flags": {"depth": [4]}}, "flags.depth"),
    ("steps", {"flags": {"num-iterations": 5}}, "num-iterations cannot be set here: it would take"),
    ("underscores", {"flags": {"target_flops": 5}}, "target_flops cannot be set here: the setting"),
    ("resume", {"flags": {"resume-from-step": 5}}, "every evaluation begins anew"),
    ("device", {"flags": {"device-type": "cpu"}}, "gives it its device"),
    ("tag", {"flags": {"model-tag": "../../mine"}}, "a directory of its own"),
    ("module", {"module": "scripts/base_train.py"}, "module: String should match pattern"),
    ("other module", {"module": "scripts.mid_train"}, "with scripts.mid_train in it"),
    ("base", {"environment": {"NANOCHAT_BASE_DIR": "/x"}}, "say data and tokenizer"),
    ("rank", {"environment": {"RANK": "0"}}, "one process on one device"),
    ("variable", {"environment": {"A=B": "0"}}, "is no name of an environment variable"),
    ("secret", {"environment": {"HF_TOKEN": "secret"}}, r'pass_environment = \["HF_TOKEN"\]'),
    ("password", {"flags": {"run": "https://me:secret@host/"}}, "a URL with a user name"),
    ("keep", {"keep": "some"}, "keep: Input should be 'none' or 'all'"),
    ("code", {"code": "abc"}, "code: String should match pattern"),
    ("space", {"space": "matrix-lr+matrix_lr"}, r"'matrix_lr'\. Did you mean 'matrix-lr'\?"),
    ("twice", {"space": "matrix-lr+matrix-lr"}, "expected each knob once"),
    ("no start", {"flags": {"matrix-lr": 0}}, "a search cannot begin at 0: leave it out of space"),
    ("bad start", {"flags": {"matrix-lr": "fast"}}, "expected a number that a search can begin at"),
    ("over the end", {"flags": {"warmdown-ratio": 1.5}}, "warmdown-ratio"),
    (
        "both",
        {"space": "matrix-lr", "knobs": {"depth": {"min": 1, "max": 9, "baseline": 4}}},
        "give only one",
    ),
    (
        "knob and flag",
        {"knobs": {"depth": {"kind": "int", "min": 1, "max": 9, "baseline": 5}}},
        "depth is 4 in flags, and 5 as a knob's baseline",
    ),
    (
        "knob that is ours",
        {"knobs": {"target-flops": {"min": 1, "max": 9, "baseline": 5}}},
        "is no flag that can be searched",
    ),
]


@pytest.mark.parametrize(("wrong", "said"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG])
def test_a_wrong_setting_is_refused_by_name(wrong: dict[str, Any], said: str, load: Any) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        load(**wrong)
    assert "secret" not in str(caught.value).replace("a secret", "")


def test_a_directory_that_is_no_checkout_says_where_to_get_one(load: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"git clone https://github\.com/karpathy/nanochat"):
        load(checkout=str(tmp_path))


# The space


def test_the_ready_knobs_begin_at_nanochats_defaults_or_at_the_flags(load: Any) -> None:
    space = load(flags={"matrix-lr": 0.05}).space
    baselines = {knob.name: knob.baseline for knob in space.knobs}
    assert baselines == {
        "embedding-lr": 0.3,
        "unembedding-lr": 0.008,
        "matrix-lr": 0.05,
        "scalar-lr": 0.5,
        "weight-decay": 0.28,
        "warmup-steps": 2,
        "warmdown-ratio": 0.65,
        "final-lr-frac": 0.05,
    }


@pytest.mark.parametrize(
    ("knob", "value", "ends"),
    [
        ("matrix-lr", 0.02, (0.002, 0.2)),
        ("weight-decay", 0.28, (0.0, 0.56)),
        ("weight-decay", 0.0, (0.0, 0.5)),
        ("warmup-steps", 40, (0, 80)),
        ("warmup-steps", 0, (0, 10)),
        ("warmdown-ratio", 0.65, (0.0, 1.0)),
        ("final-lr-frac", 0.05, (0.0, 0.5)),
        ("final-lr-frac", 1.0, (0.0, 1.0)),
    ],
)
def test_a_ready_knob_reaches_around_where_it_begins(
    knob: str, value: float, ends: tuple[float, float], load: Any
) -> None:
    (one,) = load(space=knob, flags={knob: value}).space.knobs
    assert (one.decode(0.0), one.decode(1.0)) == pytest.approx(ends)
    assert one.baseline == value


def test_space_picks_and_knobs_replace(load: Any) -> None:
    assert [k.name for k in load(space="scalar-lr + matrix-lr").space.knobs] == [
        "scalar-lr",
        "matrix-lr",
    ]
    declared = {"adam_beta1": {"min": 0.5, "max": 0.99, "baseline": 0.8}}
    assert [knob.name for knob in load(knobs=declared).space.knobs] == ["adam_beta1"]


# Variants


def test_a_rung_is_the_same_training_with_more_flops(load: Any) -> None:
    objective = load()
    rung = objective.rung(4)
    longer = type(objective).from_settings(objective.spec.settings | rung.settings)
    assert (rung.label, rung.length) == ("4 x FLOPs", 4)
    assert longer.config.target_flops == 4 * objective.config.target_flops
    assert longer.space == objective.space
    with pytest.raises(ValueError, match="positive"):
        objective.rung(0)


def test_there_is_no_control_and_no_formula_for_flops(load: Any) -> None:
    assert load().controls() == ()
    assert load().flops() is None


def test_knobs_are_given_as_flags(load: Any) -> None:
    objective = load(space="matrix-lr+warmup-steps")
    assert objective.arguments({"matrix-lr": 0.03, "warmup-steps": 5.0}) == (
        "--matrix-lr=0.03",
        "--warmup-steps=5",
    )


# What it is known by


def _edit(path: Path) -> None:
    path.write_text(path.read_text() + "# another line\n")


def test_whatever_decides_a_score_is_in_the_fingerprint(
    load: Any, checkout: Path, base: Path
) -> None:
    def shard() -> None:
        path = base / "base_data_climbmix/shard_00000.parquet"
        path.write_bytes(path.read_bytes() + b"more")

    def same_size() -> None:
        path = base / "base_data_climbmix/shard_00001.parquet"
        data = path.read_bytes()
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        os.utime(path, ns=(1, 1))

    seen = [load().fingerprint]
    for change in (
        lambda: _edit(checkout / "scripts/base_train.py"),
        lambda: _edit(checkout / "nanochat/common.py"),
        shard,
        same_size,
        lambda: (base / "tokenizer/token_bytes.pt").write_bytes(b"other"),
    ):
        change()
        seen.append(load().fingerprint)
    for more in (
        {"target_flops": 2e11},
        {"flags": {"depth": 5}},
        {"eager": False},
        {"seeds": False},
        {"dtype": "bfloat16"},
        {"space": "matrix-lr"},
        {"environment": {"A": "1"}},
    ):
        seen.append(load(**more).fingerprint)
    assert len(set(seen)) == len(seen)


def test_what_decides_no_score_is_not_in_the_fingerprint(
    load: Any, checkout: Path, base: Path, tmp_path: Path
) -> None:
    before = load().fingerprint
    (checkout / "README.md").write_text("read me")
    (checkout / "tests").mkdir()
    (checkout / "tests/test_it.py").write_text("")
    moved = shutil.copytree(base / "base_data_climbmix", tmp_path / "elsewhere")
    elsewhere = shutil.copytree(checkout, tmp_path / "another")
    same = load(checkout=str(elsewhere), data=str(moved), keep="all")
    assert same.fingerprint == before


def test_the_record_says_what_the_scores_rest_on(load: Any, checkout: Path, base: Path) -> None:
    found = load().provenance
    assert found["data_files"] == 2
    assert found["data_bytes"] == sum(p.stat().st_size for p in base.glob("base_data*/*"))
    assert {"program_python", "program_torch", "data_sha256", "tokenizer_sha256"} <= set(found)
    assert "commit" not in found or isinstance(found["dirty"], int)


def test_only_the_end_of_a_shard_is_read(load: Any, base: Path) -> None:
    path = base / "base_data_climbmix/shard_00000.parquet"
    path.write_bytes(b"x" * 200_000)
    before = load().fingerprint
    with path.open("r+b") as file:
        file.write(b"y")
    assert load().fingerprint == before
    with path.open("r+b") as file:
        file.seek(199_999)
        file.write(b"y")
    assert load().fingerprint != before


@pytest.mark.parametrize("kept", [0, 1])
def test_too_few_shards_are_refused(kept: int, load: Any, base: Path) -> None:
    for path in sorted(base.glob("base_data*/*"))[kept:]:
        path.unlink()
    with pytest.raises(
        SetupError, match=rf"two or more \*\.parquet .* which has {kept}: python -m"
    ):
        load().provenance  # noqa: B018 - reading it is the test
