"""Who races: the product's search, and its peers in the loop that their users would write."""
