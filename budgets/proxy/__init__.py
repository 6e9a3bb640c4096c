"""A shorter evaluation in the place of the full one: while they are shown to agree."""
