import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from objectives.api import SetupError
from objectives.nanochat.objective import NanochatObjective


def test_planning_imports_neither_torch_nor_numpy() -> None:
    code = (
        "import sys; from objectives.nanochat.objective import NanochatObjective as N; "
        "o = N.from_settings({}); o.space; o.fingerprint; o.spec; "
        "sys.exit(bool({'torch', 'numpy'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_evaluation_imports_no_module_that_was_not_preloaded(tmp_path: Path) -> None:
    objective = NanochatObjective.from_settings({"target_flops": 3e9, "val_windows": 8})
    code = f"""
import sys, {", ".join(objective.preload)}
from pathlib import Path
from objectives import registry
from objectives.api import Context, ObjectiveSpec
objective = registry.load(ObjectiveSpec.model_validate_json({objective.spec.model_dump_json()!r}))
knobs = {{knob.name: knob.baseline for knob in objective.space.knobs}}
before = set(sys.modules)
objective.evaluate(knobs, 1, Context(Path({str(tmp_path)!r}), "cpu", 1, lambda metrics: None))
print(len(set(sys.modules) - before))
"""
    answer = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert int(answer.stdout) < 10  # torch.profiler's own, at the end


def test_what_a_fork_server_preloads_does_not_touch_cuda() -> None:
    modules = ", ".join(NanochatObjective.from_settings({}).preload)
    code = f"import sys, {modules}; sys.exit(torch.cuda.is_initialized())"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_fingerprint_follows_the_settings_and_the_text_not_the_path(tmp_path: Path) -> None:
    def fingerprint(**settings: Any) -> str:
        return NanochatObjective.from_settings(settings).fingerprint

    one, same, other = (tmp_path / name for name in ("one.txt", "same.txt", "other.txt"))
    one.write_text("a\n\nb")
    same.write_text("a\n\nb")
    other.write_text("a\n\nc")
    assert fingerprint() == fingerprint()
    assert fingerprint() != fingerprint(n_layer=3)
    assert fingerprint() != fingerprint(space="optimizer")
    assert fingerprint(data=str(one)) != fingerprint(data=str(one), tokenizer="bpe:300")
    assert fingerprint() != fingerprint(data="builtin:kjv-v1")
    assert fingerprint(data=str(one)) == fingerprint(data=str(same))
    assert fingerprint(data=str(one)) != fingerprint(data=str(other))


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
