"""Everything a run is, from one TOML file, `--set` and flags, with the origin of every value."""
