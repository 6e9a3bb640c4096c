"""Conditions compared on the same seeds, on the engine and the ledger of a search."""
