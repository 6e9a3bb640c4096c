"""How good the search is: races of ours and of its peers for equal budgets, with known optima."""
