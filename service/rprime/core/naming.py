"""The characters that class names may not contain."""

LONGEST_NAME = 128
"""Characters."""

HIDDEN = (
    r"\u0000-\u001f\u007f-\u009f"  # control characters
    r"\u00ad\u061c\u180e\u200b\u200e\u200f\u2060-\u2064\ufeff"  # zero-width, marks of direction
    r"\u2028-\u202e\u2066-\u206f"  # line separators, bidirectional overrides and isolates
)
"""Characters that make two names look alike or reverse the text of a page, as the inside of a
regular expression's character class. Surrogates are missing: UTF-8 cannot encode them. So are the
zero-width joiner and non-joiner: Persian and Indic spellings and emoji need them."""

JOINERS = r"\u200c\u200d"
"""The zero-width non-joiner and joiner; a name has other characters besides."""
