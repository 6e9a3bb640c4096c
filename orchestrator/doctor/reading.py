"""Reads an objective's data and says what is there: a process of its own for `doctor`."""

import json
import sys

from objectives import registry
from objectives.api import ObjectiveSpec, SetupError


def main() -> None:
    """One JSON object about the objective of the specification in the first argument."""
    objective = registry.load(ObjectiveSpec.model_validate_json(sys.argv[1]))
    try:
        answer = {
            "warnings": list(objective.preflight()),
            "provenance": dict(objective.provenance),
            "fingerprint": objective.fingerprint,
            "knobs": len(objective.space.knobs),
        }
    except SetupError as error:
        answer = {"failed": str(error)}
    sys.stdout.write(f"{json.dumps(answer)}\n")


if __name__ == "__main__":
    main()
