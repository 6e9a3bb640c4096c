"""The plan, the ledger, the accounts and the verdict of a run: arithmetic on recorded events."""
