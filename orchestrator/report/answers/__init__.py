"""What a person asks first of a run: each kind of run, each way to stand."""
