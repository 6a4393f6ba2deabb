"""The analyses of the source papers, as functions of stacks of tables."""
