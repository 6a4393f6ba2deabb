"""Why there is no tally."""


class TallyError(ValueError):
    """The predictions cannot be read or counted; the message says why, for people."""


class UnreachableEngineError(TallyError):
    """There is no cluster at the address."""
