"""Statistics of few samples: exact, small, without a numeric library."""
