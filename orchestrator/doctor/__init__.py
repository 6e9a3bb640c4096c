"""What a run needs, looked at before it: `orchestrator doctor`. Changes nothing."""
