"""The indices of a confusion table, one family in each file, and their averages."""
