"""What a search knows before it begins: where another one stood, settings known to be good."""
