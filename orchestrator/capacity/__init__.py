"""How many evaluations at once: measured, limited, shared with others on the host."""
