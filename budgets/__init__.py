"""What a search promised, what it paid and what that allows: arithmetic on recorded events."""
