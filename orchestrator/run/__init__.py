"""A run carried out: its session, its walk, and how each attempt is settled."""
