"""The ids of items as bytes and as numbers."""

import numpy as np

from rprime.core.arrays import Array
from rprime.evidence.columns import Identities

_BYTES_A_LENGTH = 4


def packed(lengths: Array, letters: Array) -> bytes:
    """Return ids, each after its length in four little-endian bytes.

    Parameters
    ----------
    lengths
        Shape (n,): bytes of each id.
    letters
        The UTF-8 bytes of all ids, one after another.
    """
    starts = np.cumsum(lengths) - lengths
    places = starts + _BYTES_A_LENGTH * np.arange(len(lengths))
    places = (places[:, None] + np.arange(_BYTES_A_LENGTH)).ravel()
    result = np.empty(letters.size + places.size, np.uint8)
    is_letter = np.ones(result.size, bool)
    is_letter[places] = False
    result[places] = lengths.astype("<u4").view(np.uint8)
    result[is_letter] = letters
    return result.tobytes()


def numbers_of(identities: Identities | None) -> Array | None:
    """Return a number of 64 bits for each id, the same for the same id in every request.

    Two of a million ids share a number with a probability of 3e-8.
    """
    if identities is None:
        return None
    return np.concatenate([_numbers(*piece) for piece in identities.pieces()])


def _numbers(lengths: Array, letters: Array) -> Array:
    """Sum the bytes of each id, each times a pseudorandom number of its position."""
    starts = np.cumsum(lengths) - lengths
    position = np.arange(letters.size) - np.repeat(starts, lengths)
    longest = int(lengths.max(initial=0))
    factors = _mixed(np.arange(longest + 1, dtype=np.uint64))
    products = np.append(letters.astype(np.uint64) * factors[position], np.uint64(0))
    sums = np.add.reduceat(products, starts) if len(starts) else np.zeros(0, np.uint64)
    return np.where(lengths > 0, sums, np.uint64(0)) + _mixed(lengths.astype(np.uint64))


def _mixed(numbers: Array) -> Array:
    """Scatter numbers over 64 bits (splitmix64, Steele, Lea, Flood 2014)."""
    z = (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))
