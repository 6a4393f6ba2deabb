"""Layout: what every JSON report on one selection of indices has in common, prepared once."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import orjson

from rprime.core.arrays import Array
from rprime.core.index import Index
from rprime.core.selection import Selection


@dataclass(frozen=True, eq=False)
class Formats:
    """A format for each Value: the brace that ends the one before, its key, and its numbers.

    Parameters
    ----------
    plain
        For the value alone.
    bounded
        For the value and its limits.
    unbounded
        For the same numbers where there is no interval.
    """

    plain: list[bytes]
    bounded: list[bytes]
    unbounded: list[bytes]

    @classmethod
    def of(cls, entries: tuple[Index, ...], methods: tuple[str, ...]) -> "Formats":
        """Prepare them for the Values of indices, with the methods of their intervals, if any."""
        openings = [b'},"%b":{"value":%%b,"interval":' % entry.key.encode() for entry in entries]
        bounded = [b'[%%b,%%b],"method":"%b"' % name.encode() for name in methods]
        return cls(
            plain=[opening + b"null" for opening in openings],
            bounded=list(map(bytes.__add__, openings, bounded)),
            unbounded=[opening + b"null%.0b%.0b" for opening in openings],
        )

    def values(self, low: Array | None = None, *, times: int = 1) -> list[bytes]:
        """Return the formats of as many rounds of Values, to add more to them.

        Parameters
        ----------
        low
            Lower limits, NaN where there is no interval; None where no interval was asked for.
        """
        if low is None:
            return self.plain * times
        formats = self.bounded * times
        for place in np.flatnonzero(np.isnan(low)).tolist():
            formats[place] = self.unbounded[place % len(self.unbounded)]
        return formats


@dataclass(frozen=True, eq=False)
class Layout:
    """The prepared pieces of a report.

    Parameters
    ----------
    overall, per_class
        Of their Values, in the order of the selection.
    bands, p_values, averages, equal_averages
        Positions of the overall indices that have a band, a p-value, or average the classes; of
        the averages in which every class counts the same.
    notes
        JSON, where all items are classified and where some are not.
    """

    overall: Formats
    per_class: Formats
    bands: tuple[int, ...]
    p_values: tuple[int, ...]
    averages: tuple[int, ...]
    equal_averages: tuple[int, ...]
    notes: tuple[bytes, bytes]


@lru_cache(maxsize=256)
def layout_of(
    selection: Selection, class_methods: tuple[str, ...] = (), methods: tuple[str, ...] = ()
) -> Layout:
    """Prepare the pieces; selections are few, one for each set of keys that is asked for.

    Parameters
    ----------
    class_methods, methods
        Of the intervals per class and overall, if there are intervals.
    """
    entries = selection.overall
    numbered = tuple(enumerate(entries))
    return Layout(
        overall=Formats.of(entries, methods),
        per_class=Formats.of(selection.per_class, class_methods),
        bands=tuple(i for i, entry in numbered if entry.band),
        p_values=tuple(i for i, entry in numbered if entry.p_value),
        averages=tuple(i for i, e in numbered if e.reads in ("macro", "weighted", "means")),
        equal_averages=tuple(i for i, entry in numbered if entry.reads in ("macro", "means")),
        notes=(notes(selection, omissions=False), notes(selection, omissions=True)),
    )


def notes(selection: Selection, *, omissions: bool) -> bytes:
    """Render what must be known to read the values: association, universe, bands."""
    entries = selection.overall
    everything = (*selection.per_class, *entries)
    classified = [e.key for e in everything if e.universe == "classified"]
    remarks = {
        "association": (
            [e.key for e in entries if e.association],
            "These measure association: they do not care which label is which.",
        ),
        "classified_only": (
            classified if omissions else [],
            "These are computed on the classified items alone; the others on all items.",
        ),
        "conventional_bands": (
            [e.key for e in entries if e.band],
            "The bands of Landis and Koch (1977) are conventions, not tests.",
        ),
    }
    return orjson.dumps(
        [
            {"code": code, "indices": keys, "detail": detail}
            for code, (keys, detail) in remarks.items()
            if keys
        ]
    )
