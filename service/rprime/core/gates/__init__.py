"""Gates: rules held against evidence, and the lint that rehearses them."""
