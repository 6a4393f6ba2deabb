"""Compare a candidate with a baseline, and attribute the difference to cells."""
