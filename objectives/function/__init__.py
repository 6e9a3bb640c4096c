"""Any Python function as an objective."""
