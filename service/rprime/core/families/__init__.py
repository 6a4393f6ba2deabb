"""Families: the indices of a confusion table, one family a file, and their averages."""
