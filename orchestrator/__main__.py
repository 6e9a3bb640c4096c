"""`python -m orchestrator`."""

import sys
from pathlib import Path

if __name__ == "__main__":
    if not sys.flags.safe_path:  # an `objectives.py` in a user's folder is not ours
        sys.path[0] = str(Path(__file__).resolve().parents[1])
    try:
        from orchestrator.cli.app import main
    except ModuleNotFoundError as error:
        sys.stderr.write(
            f"error: {sys.executable} has no module {error.name!r}: the orchestrator is not "
            "installed there. Start it with scripts/run of its checkout, or with the Python that "
            "it was installed into\n"
        )
        sys.exit(2)
    main()
