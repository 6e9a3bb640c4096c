"""What a campaign has evaluated, and which of its factors move the score."""
