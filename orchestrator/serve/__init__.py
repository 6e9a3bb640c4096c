"""A read-only page on loopback: the runs of a directory, and one as it goes on."""
