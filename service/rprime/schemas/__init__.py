"""Pydantic models of the API; texts and ranges of indices come from the catalog."""
