"""What one evaluation would start, found out without starting it."""
