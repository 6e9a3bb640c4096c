"""From what was asked to what is agreed, and what that is expected to take."""
