"""Identifiers of evaluations: text that sorts by creation time."""

import re
import secrets
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from threading import Lock

import numpy as np

_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
_VALUES = {digit: value for value, digit in enumerate(_DIGITS)}
_LENGTH = 26
_TIME_DIGITS = 10
_RANDOM_BITS = 80
_STEP_BITS = 32
_VALUE_OF_LETTER = np.zeros(256, np.int64)
_VALUE_OF_LETTER[list(_DIGITS.encode())] = np.arange(len(_DIGITS))
_SHAPE = re.compile(rf"[0-7][{_DIGITS}]{{{_LENGTH - 1}}}")


class _Sequence:
    """Makes identifiers that grow even within a millisecond and when the clock is set back."""

    def __init__(self) -> None:
        self._last = 0
        self._lock = Lock()

    def following(self, milliseconds: int) -> int:
        fresh = milliseconds << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)
        with self._lock:
            if fresh >> _RANDOM_BITS <= self._last >> _RANDOM_BITS:
                fresh = self._last + 1 + secrets.randbits(_STEP_BITS)
            self._last = fresh
        return fresh


_SEQUENCE = _Sequence()


def new_id() -> str:
    """Make an identifier: 48 bits of milliseconds and 80 random ones, as 26 digits.

    As in UUID version 7 the time comes first; the digits are Crockford's, in lower case.
    Identifiers of one process sort in the order in which they were made.
    """
    return _text(_SEQUENCE.following(time.time_ns() // 1_000_000))


def is_id(text: str) -> bool:
    """Whether a text has the shape of an identifier, with a time that a calendar has."""
    return _SHAPE.fullmatch(text) is not None and text < _BEYOND


def created_at(identifier: str) -> datetime:
    """Return the creation time of an identifier, in UTC, to the millisecond."""
    value = 0
    for digit in identifier[:_TIME_DIGITS]:
        value = value << 5 | _VALUES[digit]
    return datetime.fromtimestamp(value / 1000, UTC)


def creation_times(identifiers: Sequence[str]) -> list[datetime]:
    """Return the creation times of many identifiers, as naive datetimes in UTC."""
    letters = np.frombuffer("".join(identifiers).encode(), np.uint8).reshape(-1, _LENGTH)
    digits = _VALUE_OF_LETTER[letters[:, :_TIME_DIGITS]]
    milliseconds = digits @ (32 ** np.arange(_TIME_DIGITS - 1, -1, -1))
    moments: list[datetime] = milliseconds.astype("datetime64[ms]").tolist()
    return moments


def first_id(moment: datetime) -> str:
    """Return the smallest identifier of a time; a naive time is UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return _text(max(0, int(aware.timestamp() * 1000)) << _RANDOM_BITS)


def _text(value: int) -> str:
    digits = [_DIGITS[value >> shift & 31] for shift in range(5 * _LENGTH - 5, -5, -5)]
    return "".join(digits)


_BEYOND = first_id(datetime.max.replace(microsecond=0, tzinfo=UTC))
"""The first identifier after the last second of the year 9999."""
