"""What a run has left on disk, read without disturbing its writer."""
