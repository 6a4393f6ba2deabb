"""Scores: the indices of what a classifier says of every class, and what they draw."""
