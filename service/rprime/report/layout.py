"""Layout: what every JSON report on one selection of indices has in common, prepared once."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import orjson

from rprime.core.arrays import Array
from rprime.core.index import Index
from rprime.core.selection import Selection


@dataclass(frozen=True, eq=False)
class Formats:
    """A format for each Value: the brace that ends the one before, its key, and its numbers."""

    plain: list[bytes]
    """For the value alone."""
    bounded: list[bytes]
    """For the value and its limits."""
    unbounded: list[bytes]
    """For the same numbers where there is no interval."""

    @classmethod
    def of(
        cls, entries: tuple[Index, ...], methods: Sequence[bytes], always: bytes = b""
    ) -> "Formats":
        """Prepare them for the Values of indices.

        After its interval each has its method, if intervals are asked for, then what is `always`.
        """
        openings = [b'},"%b":{"value":%%b,"interval":' % entry.key.encode() for entry in entries]
        pairs = zip(openings, methods, strict=False)
        return cls(
            plain=[opening + b"null" + always for opening in openings],
            bounded=[opening + b"[%b,%b]" + method + always for opening, method in pairs],
            unbounded=[opening + b"null%.0b%.0b" + always for opening in openings],
        )

    def values(
        self,
        low: Sequence[Array] = (),
        coded: Iterable[tuple[Array | None, Sequence[bytes]]] = (),
        *,
        times: int,
    ) -> list[bytes]:
        """Return the formats of as many rounds of Values, to add more to them.

        Parameters
        ----------
        low
            The lower limits, NaN where there is no interval; none if no interval was asked for.
        coded
            Codes of all Values, None for all 0, with the further member of each code but 0.
        """
        formats = (self.bounded if low else self.plain) * times
        for limits in low:
            for place in np.flatnonzero(np.isnan(limits)).tolist():
                formats[place] = self.unbounded[place % len(self.unbounded)]
        for codes, members in coded:
            if codes is not None:
                flat = codes.reshape(-1)
                places = np.flatnonzero(flat)
                for place, code in zip(places.tolist(), flat[places].tolist(), strict=True):
                    formats[place] += members[code]
        return formats


@dataclass(frozen=True, eq=False)
class Layout:
    """The prepared pieces of a report.

    Parameters
    ----------
    differences
        Of slices from their rest.
    bands
        Positions of the overall indices that have a band, with the function that names it.
    p_values, averages, equal_averages
        Positions of those that have a p-value, or average the classes; of the averages in which
        every class counts the same.
    notes
        JSON, where all items are classified and where some are not.
    """

    overall: Formats
    per_class: Formats
    differences: Formats
    bands: tuple[tuple[int, Callable[[float], str | None]], ...]
    p_values: tuple[int, ...]
    averages: tuple[int, ...]
    equal_averages: tuple[int, ...]
    notes: tuple[bytes, bytes]


@lru_cache(maxsize=256)
def layout_of(
    selection: Selection, class_methods: tuple[str, ...] = (), methods: tuple[str, ...] = ()
) -> Layout:
    """Prepare the pieces; selections are few, one for each set of keys that is asked for.

    The methods are those of the intervals, per class and overall, if there are any.
    """
    entries = selection.overall
    numbered = tuple(enumerate(entries))
    of_class, of_all = (
        [b',"method":"%b"' % name.encode() for name in names] for names in (class_methods, methods)
    )
    adjusted = b',"p_adjusted":%b,"detectable":%b'
    return Layout(
        overall=Formats.of(entries, of_all),
        per_class=Formats.of(selection.per_class, of_class),
        differences=Formats.of(entries, [b""] * len(entries), adjusted),
        bands=tuple((i, entry.band) for i, entry in numbered if entry.band),
        p_values=tuple(i for i, entry in numbered if entry.p_value),
        averages=tuple(i for i, e in numbered if e.reads in ("macro", "weighted", "means")),
        equal_averages=tuple(i for i, entry in numbered if entry.reads in ("macro", "means")),
        notes=(notes(selection, omissions=False), notes(selection, omissions=True)),
    )


def notes(selection: Selection, *, omissions: bool) -> bytes:
    """Render what must be known to read the values: association, universe, bands."""
    entries = selection.overall
    classified = [e.key for e in (*selection.per_class, *entries) if e.universe == "classified"]
    keys = {
        "association": [e.key for e in entries if e.association],
        "classified_only": classified if omissions else [],
        "conventional_bands": [e.key for e in entries if e.band],
    }
    groups = [(code, indices) for code, indices in keys.items() if indices]
    return orjson.dumps(
        [{"code": c, "indices": indices, "detail": _NOTES[c]} for c, indices in groups]
    )


_NOTES = {
    "association": "These measure association: they do not care which label is which.",
    "classified_only": "These are computed on the classified items alone; the others on all items.",
    "conventional_bands": "The bands of Landis and Koch (1977) are conventions, not tests.",
}
