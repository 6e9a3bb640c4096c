"""What a session carries out: given points on seeds in one ledger, or a search."""
