"""What nanochat prints, read as a measurement or as the reason for none."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from objectives.api import DivergedError, Measurement, ProgramFailedError, SetupError
from objectives.process import Exit

NAN_LOSSES = 3
"""In a row: nanochat itself would go on to its end."""

METRICS = ("flops_per_token", "parameters", "tokens_per_second", "peak_mib", "epochs")

_SETUP = re.compile(
    r"^\S+: error: (?:unrecognized arguments|argument )"
    r"|^AssertionError: total_batch_size .* must be a multiple"
    r"|^FileNotFoundError|No dataset parquet files found|Token bytes not found"
    r"|^(?:ModuleNotFoundError|ImportError)|: No module named "
    r"|installation is not configured for (?:CUDA|MPS)"
)
"""What a program that failed says of a reason that is every candidate's."""

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


@dataclass
class Output:
    """What its lines have said so far."""

    facts: dict[str, float] = field(default_factory=dict)  # by the names above
    scores: list[tuple[int, float]] = field(default_factory=list)  # step, bits per byte
    train_seconds: float = 0.0  # of the steps
    _nans: int = 0

    def line(self, text: str) -> Mapping[str, float] | None:
        """Take one line; answers with step and loss where it tells of them.

        Raises DivergedError on the third loss in a row that is no number, and SetupError as soon
        as nothing can come of it.
        """
        if text.startswith("step "):
            return self._progress(text)
        if "DATASET UPGRADE REQUIRED" in text:
            raise SetupError(
                "nanochat does not find the data and falls back to another data set "
                f"({text.strip()}): see the setting data"
            )
        for name, pattern in _FACTS.items():
            if (found := pattern.match(text)) and math.isfinite(value := _number(found[1])):
                self.facts[name] = value
        if self.facts.get("steps") == 0:
            tokens, each = self.facts.get("batch_tokens"), self.facts.get("flops_per_token")
            one = f" (one takes {tokens * each:.3g})" if tokens and each else ""
            raise SetupError(f"target_flops pays for no step{one}: raise it")
        if found := _SCORE.fullmatch(text):
            step, bpb = int(_number(found[1])), _number(found[2])
            self.scores.append((step, bpb))
            if step == 0 and math.isinf(bpb):
                raise SetupError(
                    "the untrained model scores inf: nothing was scored, because eval-tokens is "
                    "less than device-batch-size x max-seq-len"
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

    def measurement(self, exit_: Exit, eval_tokens: float) -> Measurement:
        """What the evaluation measured, every scoring being of `eval_tokens` (0: not known).

        The score is that of the last step, if that is the step that was planned: what nanochat
        calls its minimum may be the untrained model's. Raises the reason where there is none.
        """
        said = next((line for line in reversed(exit_.tail) if _SETUP.search(line)), None)
        if exit_.code != 0 and said is not None and not exit_.out_of_memory:
            raise SetupError(said.strip())
        exit_.require_success()
        steps, score = self._final(f". Its last line: {exit_.last_line}")
        facts = self.facts
        micro_batch = facts.get("micro_batch_tokens", 0.0)
        scored = eval_tokens // micro_batch * micro_batch if micro_batch else 0.0
        metrics = {name: facts[name] for name in METRICS if name in facts}
        return Measurement(
            score=score,
            train_seconds=self.train_seconds,
            steps=steps,
            tokens=int(facts.get("tokens", 0)),
            train_flops=facts.get("train_flops", 0.0),
            eval_flops=scored * len(self.scores) * facts.get("flops_per_token", 0.0) / 3,
            metrics=metrics | {"initial_bpb": self.scores[0][1]},
        )

    def _final(self, last: str) -> tuple[int, float]:
        """The planned steps and the score after them."""
        planned = self.facts.get("steps")
        if planned is None:
            raise SetupError(
                "it did not say how many iterations it calculates from the target FLOPs: expected "
                f"a nanochat whose scripts.base_train takes --target-flops{last}"
            )
        if not self.scores:
            raise SetupError(f"it printed no line 'Step N | Validation bpb': see eval-every{last}")
        step, score = self.scores[-1]
        if step != planned:
            raise ProgramFailedError(
                f"exited with status 0 without a score at its last step {planned:.0f}: the last "
                f"is of step {step}{last}"
            )
        if not math.isfinite(score):
            raise DivergedError(f"the score after {step} steps is {score}")
        return step, score


def _number(text: str) -> float:
    return float(text.replace(",", ""))
