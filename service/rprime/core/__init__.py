"""Indices, intervals, comparisons and gates as pure functions of stacks of confusion tables."""
