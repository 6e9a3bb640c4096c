"""The training core as a program: a run with checkpoints, on its own, outside any search.

Nothing here decides a score; `objectives.nanochat.config` does.
"""
