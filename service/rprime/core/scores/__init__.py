"""The scores of a classifier for every class: their indices and curves."""
