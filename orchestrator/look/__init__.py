"""What people look at: one view of a run, shown as text, page, terminal, plots and JSON."""
