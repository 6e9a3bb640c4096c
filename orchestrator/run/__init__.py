"""A run carried out: its session, its loop, and how each attempt is settled."""
