"""What a run tunes, as the options of a command that tunes the same."""

from collections.abc import Iterator

from budgets.terms import Plan
from objectives import registry
from objectives.secrets import redacted
from orchestrator.config.document import as_assigned
from orchestrator.config.sections import Top
from orchestrator.records.planned import spec_of


class UntoldError(ValueError):
    """Something that the run was begun with is not in its ledger."""


def objective_words(plan: Plan) -> Iterator[str]:
    """Which one, with the settings that it would not have anyway. Raises UntoldError."""
    spec = spec_of(plan)
    registry.named(spec.name)  # raises ValueError on one that there is no more
    if spec.name != Top().objective:
        yield from ("--objective", spec.name)
    for name, value in registry.unusual(spec).items():
        key = f"training.{name}" if name in Top.model_fields or "." in name else name
        word = f"{key}={as_assigned(value)}"
        if redacted(word, {}) != word:
            raise UntoldError(f"the setting {name} holds what may be a secret")
        yield from ("--set", word)
