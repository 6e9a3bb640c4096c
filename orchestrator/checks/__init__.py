"""Runs before a search: whether each knob moves the score, whether a proxy ranks alike."""
