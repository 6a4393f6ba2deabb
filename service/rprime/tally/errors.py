"""Errors of reading and counting predictions."""


class TallyError(ValueError):
    """The predictions cannot be read or counted; the message says why, for people."""


class UnreachableEngineError(TallyError):
    """No cluster answers at the address."""
