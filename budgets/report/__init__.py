"""A run's state as the budget report, and that as text."""
