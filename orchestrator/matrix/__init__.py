"""What a session carries out: points on seeds in one ledger, or a search that proposes its own."""
