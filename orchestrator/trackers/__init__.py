"""Experiment trackers told what a ledger says. They only ever read it."""
