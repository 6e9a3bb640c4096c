"""What the scripts that measure have in common, and races of the search and of its peers."""
