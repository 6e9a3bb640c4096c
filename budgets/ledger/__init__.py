"""A run's ledger on disk: its bytes, its single writer, its lock, its head."""
