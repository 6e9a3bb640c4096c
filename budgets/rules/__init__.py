"""What holds a run up, what ends it, and the table of all of it."""
