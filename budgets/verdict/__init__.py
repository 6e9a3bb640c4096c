"""What a search found, and what that amounts to."""
