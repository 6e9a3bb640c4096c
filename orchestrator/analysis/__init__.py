"""Which knobs matter around a recommendation."""
