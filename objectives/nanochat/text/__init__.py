"""Text to train on and to be scored on: where it comes from, how it is split and tokenized."""
