"""A campaign or a search as SLURM jobs: one directory per run, submitted by one script."""
