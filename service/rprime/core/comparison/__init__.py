"""Comparison: a candidate against a baseline, and where the difference comes from."""
