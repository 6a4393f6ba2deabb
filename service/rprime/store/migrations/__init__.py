"""The steps by which the tables of a store came to be, in the order of their numbers."""
