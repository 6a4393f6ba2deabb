"""What a class may be called."""

LONGEST_NAME = 128
"""Characters."""

HIDDEN = (
    r"\u0000-\u001f\u007f-\u009f"  # control characters
    r"\u00ad\u061c\u180e\u200b-\u200f\u2060-\u2064\ufeff"  # of no width
    r"\u2028-\u202e\u2066-\u206f"  # line separators, bidirectional overrides and isolates
)
"""Characters that make two names look alike or turn a page around, as regular expressions write
the inside of a character class. Surrogates are as bad, but no UTF-8 can hold them."""
