"""One module for each step, forward only."""
