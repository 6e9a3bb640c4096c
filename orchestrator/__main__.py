"""`python -m orchestrator`."""

import sys

if __name__ == "__main__":
    try:
        from orchestrator.cli.entry import main
    except KeyboardInterrupt:  # before anything was begun
        sys.exit(130)
    main()
