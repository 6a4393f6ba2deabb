"""Intervals: how far every value can be believed."""
