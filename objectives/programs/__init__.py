"""Programs that are not ours: started without a shell, read with suspicion, left with nothing."""
