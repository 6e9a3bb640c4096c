"""What is searched: named knobs in, one score out."""
