"""Whether a ledger still tells what happened: everything in it made again and compared."""
