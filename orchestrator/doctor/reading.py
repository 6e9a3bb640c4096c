"""Reads the data of objectives and says what is there: a process of its own for `doctor`."""

import json
import sys
from typing import Any

from objectives import registry
from objectives.api import ObjectiveSpec, SetupError
from objectives.keeping import keeping


def main() -> None:
    """One JSON object: an answer for each of the specifications by name on stdin."""
    asked = json.load(sys.stdin)
    with keeping(allowed=False):
        answers = {name: answer(ObjectiveSpec(**spec)) for name, spec in asked.items()}
    sys.stdout.write(f"{json.dumps(answers)}\n")


def answer(spec: ObjectiveSpec) -> dict[str, Any]:
    """What the objective's evaluations rest on, or why there can be none."""
    objective = registry.load(spec)
    try:
        return {
            "warnings": list(objective.preflight()),
            "provenance": dict(objective.provenance),
            "fingerprint": objective.fingerprint,
            "knobs": len(objective.space.knobs),
        }
    except SetupError as error:
        return {"failed": str(error)}


if __name__ == "__main__":
    main()
