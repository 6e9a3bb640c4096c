"""A CMA-ES search that spends a budget: plan, run, resume, verify."""
