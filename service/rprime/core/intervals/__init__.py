"""Confidence intervals of the indices."""
