"""What nanochat prints, and what it means: progress, counts, scores."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from objectives.api import DivergedError, SetupError

NAN_LOSSES = 3
"""In a row: nanochat itself would go on to its end."""

_COUNT = r"(\d[\d,]{0,24})(?![\d,])"
_DECIMAL = r"\d{1,20}(?:\.\d{1,20})?"
_AMOUNT = rf"({_DECIMAL}(?:e[+-]?\d{{1,3}})?)(?!\S)"

_FACTS: Mapping[str, re.Pattern[str]] = {
    "steps": re.compile(rf"Calculated number of iterations from target FLOPs: {_COUNT}"),
    "tokens": re.compile(rf"Total number of training tokens: {_COUNT}"),
    "train_flops": re.compile(rf"Total training FLOPs estimate: {_AMOUNT}"),
    "flops_per_token": re.compile(rf"Estimated FLOPs per token: {_AMOUNT}"),
    "batch_tokens": re.compile(rf"(?:Auto-computed optimal|Scaling LRs .*) batch size:? {_COUNT}"),
    "micro_batch_tokens": re.compile(rf"Tokens / micro-batch: {_COUNT}"),
    "parameters": re.compile(rf"total\s*: {_COUNT}"),
    "peak_mib": re.compile(rf"Peak memory usage: ({_DECIMAL})MiB"),
}
_SCORE = re.compile(rf"Step {_COUNT} \| Validation bpb: ({_DECIMAL}|nan|inf)\s*")
_PROGRESS = re.compile(rf"step (\d{{1,18}})/\d+ .*?\| loss: ({_DECIMAL}|nan|inf) ")
_OF_A_STEP: Mapping[str, re.Pattern[str]] = {
    "tokens_per_second": re.compile(rf"\| tok/sec: {_COUNT}"),
    "epochs": re.compile(r"\| epoch: (\d{1,9})"),
}
_STEP_MS = re.compile(rf"\| dt: ({_DECIMAL})ms")
_ATTENTION = re.compile(r".*Using Flash Attention 3|.*Flash Attention 3 (?:not available|only)")
_DTYPE = re.compile(r"COMPUTE_DTYPE: torch\.[a-z]*(\d\d)\b")
_OTHER_DATA = "DATASET UPGRADE REQUIRED"


@dataclass
class Heard:
    """All that its lines have told so far."""

    facts: dict[str, float] = field(default_factory=dict)  # by the names above
    scores: list[tuple[int, float]] = field(default_factory=list)  # step, bits per byte
    same: dict[str, float] = field(default_factory=dict)  # what all evaluations must share
    train_seconds: float = 0.0  # of the steps
    _nans: int = 0

    def line(self, text: str) -> Mapping[str, float] | None:
        """Hear one line; answers with step and loss where it tells of them.

        Raises DivergedError on the third loss in a row that is no number, and SetupError as soon
        as nothing can come of it.
        """
        if text.startswith("step "):
            return self._progress(text)
        self._fact(text)
        if found := _SCORE.fullmatch(text):
            self._score(int(_number(found[1])), _number(found[2]))
        elif _OTHER_DATA in text:
            raise SetupError(
                "nanochat does not find the data and falls back to another data set "
                f"({text.strip()}): see the setting data"
            )
        return None

    def _progress(self, text: str) -> Mapping[str, float] | None:
        found = _PROGRESS.match(text)
        if found is None:
            return None
        for name, pattern in _OF_A_STEP.items():
            if value := pattern.search(text):
                self.facts[name] = _number(value[1])
        if took := _STEP_MS.search(text):
            self.train_seconds += _number(took[1]) / 1000
        step, loss = int(found[1]), _number(found[2])
        self._nans = self._nans + 1 if math.isnan(loss) else 0
        if self._nans >= NAN_LOSSES:
            raise DivergedError(f"the loss is nan at step {step}, {NAN_LOSSES} times in a row")
        return {"step": step, "loss": loss} if math.isfinite(loss) else {"step": step}

    def _fact(self, text: str) -> None:
        for name, pattern in _FACTS.items():
            if (found := pattern.match(text)) and math.isfinite(value := _number(found[1])):
                self.facts[name] = value
        if self.facts.get("steps") == 0:
            raise SetupError(f"target_flops pays for no step{self._step_flops()}: raise it")
        if _ATTENTION.match(text):
            self.same["same.flash_attention_3"] = float("Using Flash Attention 3" in text)
        elif found := _DTYPE.match(text):
            self.same["same.compute_dtype_bits"] = float(found[1])

    def _step_flops(self) -> str:
        tokens, each = self.facts.get("batch_tokens"), self.facts.get("flops_per_token")
        if tokens is None or each is None:
            return ""
        return f" (one, of {tokens:,.0f} tokens, takes {tokens * each:.3g} FLOPs)"

    def _score(self, step: int, bpb: float) -> None:
        self.scores.append((step, bpb))
        if step == 0 and math.isinf(bpb):
            raise SetupError(
                "the untrained model scores inf: nothing was scored, because eval-tokens is less "
                "than device-batch-size x max-seq-len"
            )


def _number(text: str) -> float:
    return float(text.replace(",", ""))
