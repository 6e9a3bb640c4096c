"""The command line, the only layer that prints: a command a module, its options, how each ends."""
