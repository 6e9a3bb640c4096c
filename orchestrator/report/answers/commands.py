"""Commands to go on with, as a shell reads them."""

import re
from collections.abc import Iterator
from typing import Any

from budgets.plain import shell_word
from budgets.rules.triggers import Trigger
from budgets.terms import Plan
from objectives import registry
from objectives.api import ObjectiveSpec, SetupError
from objectives.secrets import redacted
from orchestrator.config.document import as_assigned

PROGRAM = "python -m orchestrator"

MOST_OPTIONS = 240
"""Characters: what takes more options than that came from a file, and is named by it."""

_FLAG = re.compile(r"\((--(?:max-[a-z-]+|window))\)")


def command(*words: str) -> str:
    """One line to copy. Words are quoted where a shell wants it."""
    return " ".join([PROGRAM, *map(shell_word, words)])


def for_objective(plan: Plan, *words: str) -> tuple[str, str]:
    """A command about what the run tunes, and what is to be added to it in words.

    The latter where its settings are too many, or of a kind that only a file holds.
    """
    options = options_of(plan)
    if options is None:
        return command(*words), "with the run's own --config"
    return command(*words, *options), ""


def options_of(plan: Plan) -> tuple[str, ...] | None:
    """--objective and --set as they were given; None where they are too many to repeat."""
    spec = ObjectiveSpec.model_validate(plan.objective)
    own = dict(_unusual(spec))
    if any(isinstance(value, dict | list) for value in own.values()):
        return None
    words = ["--objective", spec.name]
    for name, value in own.items():
        words += ["--set", redacted(f"{name}={as_assigned(value)}", {})]
    return tuple(words) if sum(map(len, words)) <= MOST_OPTIONS else None


def _unusual(spec: ObjectiveSpec) -> Iterator[tuple[str, Any]]:
    """Settings that are not what they would be anyway."""
    try:
        usual = registry.usual(spec)
    except (ValueError, KeyError, SetupError):  # of a kind that is not here: all of them
        usual = {}
    for name, value in spec.settings.items():
        if name != registry.CODE and (name not in usual or usual[name] != value):
            yield name, value


def amending(run_id: str, trigger: Trigger) -> str:
    """The command that allows more, with the cap that was in the way."""
    found = _FLAG.search(trigger.evidence)
    flag = "--max-evals" if found is None else found[1]
    return f'{command("amend", run_id)} {flag} MORE --reason "WHY"'
