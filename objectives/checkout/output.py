"""What nanochat prints, read as a measurement."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from objectives.api import DivergedError, Measurement, ProgramFailedError, SetupError

NAN_LOSSES = 3
"""In a row that end an evaluation: nanochat itself would train on to the last step."""

METRICS = ("flops_per_token", "parameters", "peak_mib")

_COUNT = r"(\d[\d,]{0,24})(?![\d,])"
_DECIMAL = r"\d{1,20}(?:\.\d{1,20})?"
_AMOUNT = rf"({_DECIMAL}(?:e[+-]?\d{{1,3}})?)(?!\S)"

_FACTS: Mapping[str, re.Pattern[str]] = {
    "steps": re.compile(rf"Calculated number of iterations from target FLOPs: {_COUNT}"),
    "tokens": re.compile(rf"Total number of training tokens: {_COUNT}"),
    "train_flops": re.compile(rf"Total training FLOPs estimate: {_AMOUNT}"),
    "flops_per_token": re.compile(rf"Estimated FLOPs per token: {_AMOUNT}"),
    "micro_batch_tokens": re.compile(rf"Tokens / micro-batch: {_COUNT}"),
    "parameters": re.compile(rf"total\s*: {_COUNT}"),
    "peak_mib": re.compile(rf"Peak memory usage: ({_DECIMAL})MiB"),
}
_SCORE = re.compile(rf"Step {_COUNT} \| Validation bpb: ({_DECIMAL}|nan|inf)\s*")
_PROGRESS = re.compile(rf"step (\d{{1,18}})/\d+ .*?\| loss: ({_DECIMAL}|nan|inf) ")
_STEP_MS = re.compile(rf"\| dt: ({_DECIMAL})ms")


@dataclass
class Output:
    """What its lines have said so far."""

    facts: dict[str, float] = field(default_factory=dict)  # by the names above
    scores: list[tuple[int, float]] = field(default_factory=list)  # step, bits per byte
    train_seconds: float = 0.0  # of the steps
    _nans: int = 0

    def line(self, text: str) -> Mapping[str, float] | None:
        """Read one line. Returns step and loss if it has them, for a heartbeat.

        Raises DivergedError on the third NaN loss in a row, and SetupError where it is clear that
        no score can come.
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
            raise SetupError("target_flops pays for no step: raise it")
        if found := _SCORE.fullmatch(text):
            self.scores.append((int(_number(found[1])), _number(found[2])))
        return None

    def _progress(self, text: str) -> Mapping[str, float] | None:
        found = _PROGRESS.match(text)
        if found is None:
            return None
        if took := _STEP_MS.search(text):
            self.train_seconds += _number(took[1]) / 1000
        step, loss = int(found[1]), _number(found[2])
        self._nans = self._nans + 1 if math.isnan(loss) else 0
        if self._nans >= NAN_LOSSES:
            raise DivergedError(f"the loss is nan at step {step}, {NAN_LOSSES} times in a row")
        return {"step": step, "loss": loss} if math.isfinite(loss) else {"step": step}

    def measurement(self, last_line: str, eval_tokens: float) -> Measurement:
        """Return what a program that exited with 0 measured, scoring `eval_tokens` each time.

        The score is that of the last step, if that is the step that was planned: what nanochat
        calls its minimum may be the untrained model's. Raises ProgramFailedError without one,
        SetupError where nothing was scored, DivergedError on a score that is not finite.
        """
        facts = self.facts
        if not self.scores or self.scores[-1][0] != facts.get("steps"):
            raise ProgramFailedError(
                "exited with status 0 without a line 'Step N | Validation bpb' of the last step "
                f"that it calculated from target FLOPs. Its last line: {last_line}"
            )
        (_, initial), (steps, score) = self.scores[0], self.scores[-1]
        if math.isinf(initial):
            raise SetupError(
                "nothing was scored: eval-tokens is less than device-batch-size x max-seq-len"
            )
        if not math.isfinite(score):
            raise DivergedError(f"the score after {steps} steps is {score}")
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
            metrics=metrics | {"initial_bpb": initial},
        )


def _number(text: str) -> float:
    return float(text.replace(",", ""))
