"""Every setting with its origin, and what the run amounts to, as text and as JSON."""

from collections.abc import Iterator
from typing import Any

from rich.filesize import decimal

from objectives.api import SetupError
from objectives.nanochat.config import NanochatConfig
from objectives.nanochat.program.forecast import forecast, warnings
from objectives.nanochat.program.options import Resolved
from objectives.nanochat.text import data


def explained(resolved: Resolved) -> dict[str, Any]:
    """A JSON document. Raises ValueError when how long to train cannot be said."""
    tokens, fault = _train_tokens(resolved.training)
    expected = forecast(resolved, tokens)
    plan = expected.plan
    return {
        "preset": resolved.preset,
        "profile": resolved.profile,
        "settings": {
            name: {"value": value, "source": resolved.sources[name]}
            for name, value in resolved.values().items()
        },
        "run": {
            "paid_by": plan.paid_by,
            "steps": plan.steps,
            "effective_batch": expected.effective_batch,
            "tokens_per_step": resolved.training.tokens_per_step,
            "tokens": expected.tokens,
            "epochs": expected.epochs,
            "planned_flops": resolved.training.target_flops or plan.train_flops,
            "train_flops": plan.train_flops,
            "evaluations": expected.evaluations,
            "eval_flops": expected.eval_flops,
            "parameters": expected.parameters,
            "checkpoint_bytes": expected.checkpoint_bytes,
            "disk_bytes": expected.disk_bytes,
        },
        "warnings": [*warnings(resolved, expected), *([fault] if fault else [])],
    }


def as_text(resolved: Resolved) -> Iterator[str]:
    """The same for a person, line by line."""
    document = explained(resolved)
    width = max(map(len, document["settings"]))
    for name, setting in document["settings"].items():
        value = "-" if setting["value"] in (None, "") else setting["value"]
        yield f"{name:{width}}  {value!s:24}  {setting['source']}"
    yield ""
    yield from forecast_lines(resolved, document["run"])
    for warning in document["warnings"]:
        yield f"Warning: {warning}."


def forecast_lines(resolved: Resolved, run: dict[str, Any]) -> Iterator[str]:
    """What the run amounts to, from the part "run" of `explained`."""
    program = resolved.program
    origin = resolved.sources[run["paid_by"]]
    epochs = "" if run["epochs"] is None else f", {run['epochs']:.2f} times the training text"
    yield f"steps            {run['steps']:,}: {run['paid_by']} decides ({origin})"
    yield (
        f"effective batch  {run['effective_batch']} sequences, {run['tokens_per_step']:,} tokens "
        f"per step; {run['tokens']:,} in all{epochs}"
    )
    yield (
        f"FLOPs            {run['planned_flops']:.4g} planned, {run['train_flops']:.4g} by whole "
        f"steps; {run['eval_flops']:.4g} for {run['evaluations']} evaluations besides"
    )
    yield f"parameters       {run['parameters']:,}"
    yield (
        f"checkpoint       {decimal(run['checkpoint_bytes'])}; {decimal(run['disk_bytes'])} of "
        f"disk for {program.most_kept} kept and one being written"
    )


def _train_tokens(config: NanochatConfig) -> tuple[int | None, str]:
    """How long the training text is, or why that is not known."""
    try:
        return len(data.load(config.data, config.tokenizer).train), ""
    except SetupError as error:
        return None, f"no epochs without the text: {error}"
