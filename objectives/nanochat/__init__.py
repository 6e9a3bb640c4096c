"""A small GPT, trained for a fixed number of FLOPs, scored on held-out text."""
