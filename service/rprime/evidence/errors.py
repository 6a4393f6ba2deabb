"""The errors of evidence, with their places."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

MOST_FAULTS = 20
"""Most places that an answer names."""


@dataclass(frozen=True, slots=True)
class EvidenceFault:
    """One place of the evidence that breaks a rule; ``detail`` never repeats the input.

    Parameters
    ----------
    pointer
        JSON pointer (RFC 6901) into the document.
    code
        The rule, for programs.
    detail
        The rule and how to fix it, for people.
    name
        The name that is not known, where one is; only those who hold the file may see it.
    """

    pointer: str
    code: str
    detail: str
    name: str | None = None


class UnreadableBodyError(ValueError):
    """The bytes do not match their content type."""


class TooLargeError(ValueError):
    """The decompressed columns exceed the limit."""

    def __init__(self, most: int) -> None:
        super().__init__(
            f"The columns of the body have more than {most} bytes after decompression."
        )


class InvalidEvidenceError(ValueError):
    """The body can be read, but not evaluated.

    Parameters
    ----------
    faults
        At least one; only the first 20 are stored.
    """

    def __init__(self, faults: Iterable[EvidenceFault]) -> None:
        self.faults = tuple(islice(faults, MOST_FAULTS))
        super().__init__("; ".join(f"{f.pointer or '/'}: {f.detail}" for f in self.faults))


def refuse(pointer: str, code: str, detail: str) -> InvalidEvidenceError:
    """Return the error for a single fault."""
    return InvalidEvidenceError([EvidenceFault(pointer, code, detail)])


def kind_of(value: object) -> str:
    """Return the name of a value's JSON type, for messages that must not repeat the value."""
    return _KINDS.get(type(value), "a number")


_KINDS = {
    bool: "a boolean",
    dict: "an object",
    list: "an array",
    str: "a string",
    type(None): "null",
}
