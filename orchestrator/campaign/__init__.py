"""Conditions compared with each other on the same seeds, on the engine and the ledger of a search."""
