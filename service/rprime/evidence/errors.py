"""What is wrong with evidence, and where."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

MOST_FAULTS = 20
"""As many places as an answer names."""


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
        The rule and the mend, for people.
    """

    pointer: str
    code: str
    detail: str


class UnreadableBodyError(ValueError):
    """The bytes are not what their content type says."""


class TooLargeError(ValueError):
    """The bytes hold more than is read of a body, once they are inflated."""

    def __init__(self, most: int) -> None:
        super().__init__(f"The columns of the body have more than {most} bytes, inflated.")


class InvalidEvidenceError(ValueError):
    """The bytes were read, but what they say cannot be evaluated.

    Parameters
    ----------
    faults
        At least one; only the first 20 are kept.
    """

    def __init__(self, faults: Iterable[EvidenceFault]) -> None:
        self.faults = tuple(islice(faults, MOST_FAULTS))
        super().__init__("; ".join(f"{f.pointer or '/'}: {f.detail}" for f in self.faults))


def refuse(pointer: str, code: str, detail: str) -> InvalidEvidenceError:
    """Make the error for a single fault."""
    return InvalidEvidenceError([EvidenceFault(pointer, code, detail)])


def kind_of(value: object) -> str:
    """Name the JSON type of a value, for a message that must not repeat the value."""
    return _KINDS.get(type(value), "a number")


_KINDS = {
    bool: "a boolean",
    dict: "an object",
    list: "an array",
    str: "a string",
    type(None): "null",
}
