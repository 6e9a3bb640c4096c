"""Any program as an objective: an argv template in, a number out."""
