"""A search in a world that goes wrong on purpose: one seed, one story, replayed exactly."""
