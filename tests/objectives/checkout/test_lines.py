"""What nanochat prints, as it printed it on a CPU in July 2026, and what is made of it."""

import pytest

from objectives.api import DivergedError, SetupError
from objectives.checkout.lines import Heard

RUN = """\
COMPUTE_DTYPE: torch.float32 (auto-detected: no CUDA (CPU/MPS))
WARNING: Flash Attention 3 not available, using PyTorch SDPA fallback
WARNING: Training will be less efficient without FA3
Vocab size: 2,048
lm_head                 : 262,144
total                   : 1,835,090
Estimated FLOPs per token: 7.078320e+06
Scaling LRs by 0.0625 for batch size 2,048 (reference: 524,288)
Scaling weight decay from 0.280000 to 0.367490 for depth 4
Calculated number of iterations from target FLOPs: 1,234
Total number of training tokens: 2,527,232
Total training FLOPs estimate: 1.788856e+13
Tokens / micro-batch / rank: 16 x 128 = 4,096
Tokens / micro-batch: 2,048
Total batch size 2,048 => gradient accumulation steps: 1
Step 00000 | Validation bpb: 3.664837
Step 01234 | Validation bpb: 3.620078
Peak memory usage: 1024.50MiB
Total training time: 0.00m
Minimum validation bpb: 3.620078
"""


def step(number: int, loss: str = "7.624755") -> str:
    return (
        f"step {number:05d}/00007 (0.00%) | loss: {loss} | lrm: 0.50 | dt: 485.77ms | tok/sec: "
        "4,215 | bf16_mfu: 0.00 | epoch: 2 pq: 0 rg: 4 | total time: 0.00m"
    )


def test_counts_and_scores_are_heard() -> None:
    heard = Heard()
    for line in RUN.splitlines():
        assert heard.line(line) is None
    assert heard.facts == {
        "parameters": 1835090.0,
        "flops_per_token": 7078320.0,
        "batch_tokens": 2048.0,
        "steps": 1234.0,
        "tokens": 2527232.0,
        "train_flops": 1.788856e13,
        "micro_batch_tokens": 2048.0,
        "peak_mib": 1024.5,
    }
    assert heard.scores == [(0, 3.664837), (1234, 3.620078)]
    assert heard.same == {"same.compute_dtype_bits": 32.0, "same.flash_attention_3": 0.0}


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("✓ Using Flash Attention 3: efficient, new and awesome.", "flash_attention_3", 1.0),
        (
            "WARNING: Flash Attention 3 only supports bf16, but COMPUTE_DTYPE=torch.float32. Using",
            "flash_attention_3",
            0.0,
        ),
        ("COMPUTE_DTYPE: torch.bfloat16 (auto-detected: CUDA SM 90)", "compute_dtype_bits", 16.0),
        ("COMPUTE_DTYPE: torch.float16 (set via NANOCHAT_DTYPE)", "compute_dtype_bits", 16.0),
    ],
)
def test_what_all_evaluations_must_share_is_heard(line: str, name: str, value: float) -> None:
    heard = Heard()
    heard.line(line)
    assert heard.same == {f"same.{name}": value}


def test_a_step_tells_how_far_it_is() -> None:
    heard = Heard()
    assert heard.line(step(0)) == {"step": 0, "loss": 7.624755}
    assert heard.line(step(1, "inf")) == {"step": 1}
    assert heard.facts == {"tokens_per_second": 4215.0, "epochs": 2.0}
    assert heard.train_seconds == pytest.approx(2 * 0.48577)


def test_three_losses_in_a_row_that_are_no_number_end_it() -> None:
    heard = Heard()
    for number, loss in enumerate(["nan", "nan", "7.0", "nan", "nan"]):
        heard.line(step(number, loss))
    with pytest.raises(DivergedError, match="nan at step 5, 3 times in a row"):
        heard.line(step(5, "nan"))


def test_a_score_has_four_digits_or_more() -> None:
    heard = Heard()
    heard.line("Step 00069 | Validation bpb: 3.0187")
    heard.line("Step 1,000,000 | Validation bpb: nan")
    assert heard.scores[0] == (69, 3.0187)
    assert heard.scores[1][0] == 1_000_000


@pytest.mark.parametrize(
    "line",
    [
        "Minimum validation bpb: 3.018695",
        "  Step 00069 | Validation bpb: 1.0",
        "Step 00069 | Validation bpb: 1.0 | Step 00069 | Validation bpb: 0.5",
        "Step 00069 | Validation bpb: 1.2.3",
        "Step ,,, | Validation bpb: 1.0",
        "Step 00069 | Validation bpb: -1.0",
        f"Step {'9' * 5000} | Validation bpb: 1.0",
    ],
)
def test_what_only_looks_like_a_score_is_none(line: str) -> None:
    heard = Heard()
    heard.line(line)
    assert heard.scores == []


@pytest.mark.parametrize(
    "line",
    [
        "Total training FLOPs estimate: 9e999",
        "Total training FLOPs estimate: 1.2.3e5",
        "Estimated FLOPs per token: nan",
        "Tokens / micro-batch: ,",
        "step x/y | loss: 1 |",
        "step 00001/00002 | loss: high | dt: 1ms",
        "total: none",
        "",
    ],
)
def test_a_line_that_is_no_count_tells_nothing(line: str) -> None:
    heard = Heard()
    assert heard.line(line) is None
    assert heard.facts == {}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("Calculated number of iterations from target FLOPs: 0", "pays for no step: raise it"),
        ("Step 00000 | Validation bpb: inf", "nothing was scored, because eval-tokens is less"),
        ("  WARNING: DATASET UPGRADE REQUIRED", "falls back to another data set"),
    ],
)
def test_what_can_come_to_nothing_ends_at_once(line: str, said: str) -> None:
    with pytest.raises(SetupError, match=said):
        Heard().line(line)
