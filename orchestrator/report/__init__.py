"""A run's report: everything a person may want to see of it, on a page, as Markdown, as JSON."""
