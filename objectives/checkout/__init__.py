"""The user's own checkout of karpathy/nanochat as an objective."""
