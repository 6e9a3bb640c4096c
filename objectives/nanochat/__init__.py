"""A small GPT over bytes, trained for a fixed number of FLOPs, scored on held-out text."""
