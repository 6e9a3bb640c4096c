"""From a configuration to the frozen plan of a run, and the forecast of a plan."""
