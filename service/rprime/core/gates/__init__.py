"""Gate rules, their verdicts, and the lint that simulates them."""
