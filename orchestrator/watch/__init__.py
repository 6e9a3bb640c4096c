"""A run as a person watches it: its ledger, drawn on a terminal."""
