"""Populations: what is true of the population that strata of items stand for."""
