"""`python -m objectives.nanochat`."""

import sys

if __name__ == "__main__":
    try:
        from objectives.nanochat.program.cli import main
    except KeyboardInterrupt:  # before anything was begun
        sys.exit(130)
    main()
