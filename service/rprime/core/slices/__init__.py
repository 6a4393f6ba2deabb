"""Slices of a test set: where a model fails."""
