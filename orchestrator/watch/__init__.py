"""A run as somebody watches it: what it does at the moment, on a terminal or a page."""
