"""Convert label arrays to arrays of codes without a Python object for each item."""

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from types import NoneType
from typing import Any, Self

import numpy as np
import orjson

from rprime.core.arrays import Array
from rprime.core.items import PIECE
from rprime.core.labels import integer_text
from rprime.core.quantities import plural
from rprime.core.warnings import Warning  # noqa: A004 (its name)
from rprime.evidence import names
from rprime.evidence.names import is_name, normalised_text
from rprime.evidence.numbers import MOST, raise_places
from rprime.problems.problem import invalid, refuse
from rprime.schemas.document import Document, kind_of

_MOST_SHOWN = 5
"""Most texts that a warning names."""
_LONGEST_SHOWN = 40
_SOURCE = "docs/cli.md#labels"
_DETAILS = {
    "aliased_labels": "{} labels were read by `aliases`: ",
    "unknown_labels": "{} predictions are no class of `labels` and count as unclassified: ",
    "ignored_items": "{} items are left out, because `ignore_true` names their true label: ",
}

Texts = Sequence[str | None]


@dataclass(frozen=True)
class Spellings:
    """What a request says about labels that are not classes."""

    aliases: Mapping[str, str] = field(default_factory=dict)
    """The class that each other text means; texts in NFC and without surrounding white space."""
    unclassified: bool = False
    """Whether predictions of no declared class count as missing."""

    spurious: bool = False
    """Whether items may have no true label, because their predictions are spurious."""
    ignored: frozenset[str] = frozenset()
    """The true labels whose items are left out; classes, not their aliases."""

    @classmethod
    def of(cls, members: Mapping[str, Any]) -> Self:
        """Read the members of a request; what is malformed is refused with the other members."""
        member = members.get("aliases")
        aliases = member if isinstance(member, dict) else {}
        spellings = {
            normalised_text(a): normalised_text(b) for a, b in aliases.items() if isinstance(b, str)
        }
        unclassified = members.get("unknown_labels") == "unclassified"
        spurious = members.get("missing_true") == "spurious"
        named = members.get("ignore_true")
        ignored = frozenset(
            normalised_text(str(name)) for name in (named if isinstance(named, list) else ())
        )
        return cls(spellings, unclassified, spurious, ignored)

    def renamed(self, texts: Texts) -> list[str | None]:
        """Put classes in the place of their aliases."""
        return [
            None if text is None else self.aliases.get(normalised_text(text), text)
            for text in texts
        ]

    def warnings(
        self, sent: Texts, meant: Texts, without: Array, counts: Array
    ) -> tuple[Warning, ...]:
        """Say what was mapped to what, and how often.

        Given are the texts by code, as they came and as they are read; which codes are no class,
        and how many labels have each code, shape (codes,).
        """
        warnings = []
        renamed = np.array([a != b for a, b in zip(sent, meant, strict=True)])
        unknown = without & np.array([text is not None for text in sent])
        for code, which in (("aliased_labels", renamed & ~unknown), ("unknown_labels", unknown)):
            number = int(counts[which].sum())
            if number:
                detail = _DETAILS[code].format(number) + _shown(sent, meant, which, counts)
                warnings.append(Warning(code, "/labels", detail, _SOURCE))
        return tuple(warnings)


def _shown(sent: Texts, meant: Texts, which: Array, counts: Array) -> str:
    """List the most frequent texts that can be shown, and count the others."""
    order = sorted(np.flatnonzero(which).tolist(), key=lambda code: -counts[code])
    parts: list[str] = []
    rest = 0
    for code in order:
        text, other = sent[code] or "", meant[code]
        if len(parts) == _MOST_SHOWN or len(text) > _LONGEST_SHOWN or not is_name(text):
            rest += int(counts[code])
        else:
            to = f" as `{other}`" if other != text else ""
            parts.append(f"`{text}`{to} {counts[code]}")
    return ", ".join([*parts, *([f"others {rest}"] if rest else [])]) + "."


def _note_on_ignored(detail: str) -> Warning:
    return Warning("ignored_items", "/ignore_true", detail, _SOURCE)


AS_SENT = Spellings()
"""No text has another meaning."""


_ABSENT = np.uint32(2**32 - 1)
_BYTE_VALUES = 256
DENSE_RANGE = 1 << 20
"""Largest range of integers that are looked up in a table; others are searched."""


@dataclass(frozen=True, eq=False)
class Coded:
    """The labels of n items as codes of k classes, the smallest unsigned integers that hold k.

    k is "unclassified".
    """

    labels: tuple[str, ...]
    true: Array
    predicted: Array
    warnings: tuple[Warning, ...] = ()
    kept: Array | None = None
    """Positions of these items among those of the request; None where none is left out."""

    def of_kept(self, part: Array | None) -> Any:  # noqa: ANN401 (an array if one is given)
        """Return what belongs to the items, given what belongs to those of the request."""
        return part if part is None or self.kept is None else part[self.kept]


def code_labels(document: Document) -> "Raw":
    """Code the label arrays of a request: all strings, all integers or all booleans.

    Null in `y_pred` is unclassified; with scores, `y_pred` may be missing. Null in `y_true` is
    spurious if the request says so.
    """
    arrays, pointer = document.arrays, document.pointer
    spurious = document.rest.get("missing_true") == "spurious"
    true = _items(arrays["y_true"], f"{pointer}/y_true")
    predicted = _items(arrays.get("y_pred", true), f"{pointer}/y_pred")
    if len(true) != len(predicted):
        size = plural(len(true), "item")
        detail = f"`y_true` has {size} and `y_pred` {len(predicted):,}; each needs both."
        raise refuse(f"{pointer}/y_pred", "wrong_length", detail)
    some = chain(true, predicted) if spurious else true
    kind = type(next((label for label in some if label is not None), None))
    if spurious and kind is NoneType:
        raise refuse(f"{pointer}/y_pred/0", "no_label", names.NEITHER)
    nulls = {NoneType} if spurious else set()
    if kind is bool:
        # The types of all items are checked, because a dictionary takes 1 for true.
        if not set(map(type, true)) - nulls <= {bool}:
            raise invalid(names.mixed(true, f"{pointer}/y_true", null=spurious, like=True))
        if not set(map(type, predicted)) <= {bool, type(None)}:
            raise invalid(names.mixed(predicted, f"{pointer}/y_pred", null=True, like=True))
        texts = {True: "True", False: "False", None: None}
        true, predicted = ([texts[item] for item in items] for items in (true, predicted))
    if kind in (str, bool):
        return _code_strings(true, predicted, pointer, null=spurious)
    proven = document.without_booleans
    integers = (
        integers_of(true, f"{pointer}/y_true", null=spurious, without_booleans=proven),
        integers_of(predicted, f"{pointer}/y_pred", null=True, without_booleans=proven),
    )
    distinct, (true_codes, codes) = renumbered(*integers)
    labels: list[str | None] = [str(value) for value in distinct.tolist()]
    if any(part.dtype == np.float64 and np.isnan(part).any() for part in integers):
        labels.append(None)
    return Raw(labels, true_codes, codes, pointer, rank=None)


def recoded(values: Array, codes: Array, *, reuse: bool = False) -> Array:
    """Return ``codes[values]``; with `reuse`, overwrite the values if the types allow it."""
    if reuse and values.dtype == codes.dtype:
        for start in range(0, values.size, PIECE):
            part = values[start : start + PIECE]
            part[:] = recoded(part, codes)
        return values
    # Bytes are translated without an index for each of them.
    if codes.dtype != np.uint8 or codes.size > _BYTE_VALUES:
        return np.take(codes, values)
    shifted = _shifted(values, codes)
    if shifted is not None:
        return shifted
    if values.dtype != np.uint8:
        return np.take(codes, values)
    # Five times faster than numpy.
    table = bytes(codes) + bytes(_BYTE_VALUES - codes.size)
    return np.frombuffer(values.tobytes().translate(table), dtype=np.uint8)


def _shifted(values: Array, codes: Array) -> Array | None:
    """Return ``codes[values]`` if the codes after the first ascend by one; else None.

    Consecutive integers from 0 or 1, the most common labels, have such codes.
    """
    if codes.size <= 1 or (np.diff(codes[1:]) != 1).any():
        return None
    step = (int(codes[1]) - 1) % _BYTE_VALUES
    shifted = values.astype(np.uint8)
    shifted += np.uint8(step)
    if codes[0] != step and not values.all():
        shifted[values == 0] = codes[0]
    return shifted


def count_codes(codes: Array, size: int) -> Array:
    """Count each of `size` codes, in pieces because counting widens them."""
    counts = np.zeros(size, np.int64)
    for start in range(0, codes.size, PIECE):
        counts += np.bincount(codes[start : start + PIECE], minlength=size)
    return counts


def in_order_of_appearance(codes: Array) -> Array:
    """Renumber codes in the order in which they appear."""
    _, first, positions = np.unique(codes, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first)).astype(np.uint32)[positions]


def group_codes(groups: object, size: int, pointer: str, what: str = "groups") -> Array:
    """Code the group of each item, strings or integers, in the order of appearance."""
    items = _items(groups, pointer)
    if len(items) != size:
        detail = f"There are {len(items)} {what} for {plural(size, 'item')}; each item needs one."
        raise refuse(pointer, "wrong_length", detail)
    distinct = items.texts if isinstance(items, CodedTexts) else items
    if set(map(type, distinct)) != {str} and not all(map(names.is_integer, distinct)):
        like = "" if type(items[0]) is str else 0
        raise invalid(names.mixed(items, pointer, null=False, like=like))
    codes = Codes()
    coded = np.asarray(looked_up(items, codes), dtype=np.uint32)
    if type(items[0]) is not str and max(map(abs, codes)) > MOST:
        bad = np.argwhere([abs(group) > MOST for group in items])
        raise_places(bad, pointer, "out_of_range", names.INTEGER_RULE)
    if "" in codes:
        bad = np.argwhere([not group for group in items])
        raise_places(bad, pointer, "no_group", "Each item needs a group; this name is empty.")
    return coded


@dataclass(frozen=True, eq=False)
class Raw:
    """Codes of the distinct labels as sent, before these are checked as names."""

    texts: list[str | None]
    """The labels by code; None for the code of unclassified items."""
    true: Array
    predicted: Array
    pointer: str
    """JSON pointer to the request, which has both as `y_true` and `y_pred`."""
    rank: Callable[[str], Any] | None = str
    """Sort key of the classes; None: the codes ascend already."""
    reuse: bool = False
    """Whether both arrays may be overwritten."""
    spellings: Spellings = AS_SENT
    """Which other texts are meant as classes, and what unknown ones are."""

    def coded(self, declared: tuple[str, ...] | None, most: int, spellings: Spellings) -> Coded:
        """Return the codes of the classes: at most as many as allowed.

        They are declared, or those that occur, strings sorted by code point and integers by value.
        """
        if spellings.ignored:
            return self._without_ignored(declared, most, spellings)
        raw = self
        if spellings.spurious and not any(text is not None for text in self.texts):
            raise refuse(f"{self.pointer}/y_pred/0", "no_label", names.NEITHER)
        if spellings is not AS_SENT:  # put classes in the place of their aliases
            texts = spellings.renamed(self.texts)
            integers = all(text is None or integer_text(text) == text for text in texts)
            rank = int if integers and self.rank is not str else str
            raw = replace(self, texts=texts, rank=rank, spellings=spellings)
        if declared is not None:
            labels, codes = declared, raw.declared(declared)
        else:
            labels, codes = raw.sorted(most)
        if spellings.unclassified or self.texts.count(None) > 1:
            self._refuse_unlabelled(codes, len(labels), spurious=spellings.spurious)
        if spellings is AS_SENT:
            return raw.recoded(labels, codes)
        # Counted first, because the arrays may be overwritten.
        counts = count_codes(self.true, codes.size) + count_codes(self.predicted, codes.size)
        warnings = spellings.warnings(self.texts, raw.texts, codes == len(labels), counts)
        return replace(raw.recoded(labels, codes), warnings=warnings)

    def _without_ignored(
        self, declared: tuple[str, ...] | None, most: int, spellings: Spellings
    ) -> Coded:
        """Return the codes of the items whose true label is not ignored."""
        meant = spellings.renamed(self.texts)
        named = np.array([t is not None and normalised_text(t) in spellings.ignored for t in meant])
        counts = count_codes(self.true, named.size)
        left_out = named & (counts > 0)
        rest = replace(spellings, ignored=frozenset())
        rest = AS_SENT if rest == AS_SENT else rest
        if not left_out.any():
            coded = self.coded(declared, most, rest)
            note = _note_on_ignored("None of the true labels is one of `ignore_true`.")
            return replace(coded, warnings=(note, *coded.warnings))
        kept = np.flatnonzero(~left_out[self.true])
        if not kept.size:
            detail = "`ignore_true` names the true label of every item: none is left."
            raise refuse(f"{self.pointer}/ignore_true", "empty", detail)
        true, predicted = self.true[kept], self.predicted[kept]
        occurring = count_codes(true, named.size) + count_codes(predicted, named.size)
        texts = [text if n else None for text, n in zip(self.texts, occurring, strict=True)]
        coded = replace(self, texts=texts, true=true, predicted=predicted).coded(
            declared, most, rest
        )
        detail = _DETAILS["ignored_items"].format(int(counts[left_out].sum()))
        detail += _shown(self.texts, meant, left_out, counts)
        return replace(coded, kept=kept, warnings=(_note_on_ignored(detail), *coded.warnings))

    def declared(self, labels: tuple[str, ...]) -> Array:
        """Return the declared class of each code."""
        first = self._first()
        positions = {name: code for code, name in enumerate(labels)}
        if self.spellings.unclassified:
            sent, absent = list(map(names.normalised_text, first)), len(labels)
        else:
            sent, absent = names.normalised(list(first), self._place(first)), int(_ABSENT)
        codes = {text: positions.get(name, absent) for text, name in zip(first, sent, strict=True)}
        coded = self._of_texts(codes, len(labels))
        self._refuse_absent(coded)
        return coded

    def sorted(self, most: int) -> tuple[tuple[str, ...], Array]:
        """Return the classes that occur, and that of each code."""
        first = self._first()
        if len(first) > most:
            raise names.too_many_classes(len(first), f"{self.pointer}/y_true", most)
        labels = dict(zip(names.distinct(list(first), self._place(first)), first, strict=True))
        order = tuple(labels) if self.rank is None else tuple(sorted(labels, key=self.rank))
        codes = {labels[name]: code for code, name in enumerate(order)}
        return order, self._of_texts(codes, len(order))

    def _first(self) -> dict[str, int]:
        """Return the distinct texts and their first codes: several spellings may be one class."""
        first: dict[str, int] = {}
        for code, text in enumerate(self.texts):
            if text is not None:
                first.setdefault(text, code)
        return first

    def _of_texts(self, codes: Mapping[str, int], k: int) -> Array:
        coded = [k if text is None else codes[text] for text in self.texts]
        return np.array(coded, dtype=np.uint32)

    def recoded(self, labels: tuple[str, ...], codes: Array) -> Coded:
        """Replace the codes of the texts by those of the classes."""
        kind = np.min_scalar_type(len(labels))
        same = (codes == np.arange(len(codes))).all()
        codes = codes.astype(kind)
        true, predicted = (
            raw.astype(kind, copy=False) if same else recoded(raw, codes, reuse=self.reuse)
            for raw in (self.true, self.predicted)
        )
        return Coded(labels, true, predicted)

    def _refuse_absent(self, codes: Array) -> None:
        absent = codes == _ABSENT
        if not absent.any():
            return
        for name, raw in (("y_true", self.true), ("y_pred", self.predicted)):
            items = np.flatnonzero(absent[raw])
            detail = (
                "The label is not in `labels`, or has no column of scores; this is the first of "
                f"{items.size} such items."
            )
            if name == "y_pred":
                detail += ' `"unknown_labels": "unclassified"` counts such predictions as missing.'
            raise_places(items[:1, None], f"{self.pointer}/{name}", "undeclared_label", detail)

    def _refuse_unlabelled(self, codes: Array, k: int, *, spurious: bool) -> None:
        """Refuse items whose true label is a missing value in disguise, or no declared class."""
        without = (codes == k) & (count_codes(self.true, codes.size) > 0)
        if spurious:
            without &= np.array([text is not None for text in self.texts])
        for code in np.flatnonzero(without)[:1]:
            items = np.flatnonzero(self.true == code)
            kind, detail = "no_label", names.NO_LABEL
            if self.texts[code] is not None:
                kind = "undeclared_label"
                detail = "The label is not in `labels`; `unknown_labels` is only about predictions."
            raise_places(items[:1, None], f"{self.pointer}/y_true", kind, detail)

    def _place(self, first: Mapping[str, int]) -> names.Place:
        """Return the function that finds the first place of a label."""
        codes = list(first.values())

        def place(i: int) -> str:
            for name, raw in (("y_true", self.true), ("y_pred", self.predicted)):
                items = np.flatnonzero(raw == codes[i])
                if items.size:
                    return f"{self.pointer}/{name}/{items[0]}"
            return f"{self.pointer}/y_true"

        return place


class Codes(dict[Any, int]):
    """Codes in the order in which keys are first looked up."""

    def __missing__(self, key: Any) -> int:  # noqa: ANN401 (a label)
        code = self[key] = len(self)
        return code


@dataclass(frozen=True, eq=False)
class CodedTexts(Sequence[str]):
    """An array of strings as its distinct strings and the code of each item."""

    texts: list[str]
    codes: Array

    def __len__(self) -> int:
        return self.codes.size

    def __getitem__(self, i: Any) -> Any:  # noqa: ANN401 (of an integer, the string there)
        return self.texts[self.codes[i]]

    def __iter__(self) -> Iterator[str]:
        return map(self.texts.__getitem__, self.codes)


@dataclass(frozen=True, eq=False)
class Integers(Sequence[int]):
    """An array of integers, none of them negative, without a Python object for each."""

    values: Array

    def __len__(self) -> int:
        return self.values.size

    def __getitem__(self, i: Any) -> Any:  # noqa: ANN401 (of an integer, the one there)
        return self.values[i].item()

    def __iter__(self) -> Iterator[int]:
        return iter(self.values.data)


def _items(values: object, pointer: str) -> Sequence[Any]:
    if not isinstance(values, list | CodedTexts | Integers):
        detail = f"An array of labels is needed, not {kind_of(values)}."
        raise refuse(pointer, "not_an_array", detail)
    if not values:
        raise refuse(pointer, "empty", "The array is empty; there is nothing to evaluate.")
    return values


def _code_strings(y_true: Sequence[Any], y_pred: Sequence[Any], pointer: str, *, null: bool) -> Raw:
    """Code strings; `null` says whether `y_true` may have null."""
    codes = Codes()
    true = looked_up(y_true, codes)
    if true is None or not set(map(type, codes)) <= {str, *({NoneType} if null else ())}:
        raise invalid(names.mixed(y_true, f"{pointer}/y_true", null=null, like=""))
    predicted = looked_up(y_pred, codes)
    if predicted is None or not set(map(type, codes)) <= {str, type(None)}:
        raise invalid(names.mixed(y_pred, f"{pointer}/y_pred", null=True, like=""))
    return Raw(list(codes), true, predicted, pointer)


def looked_up(values: Sequence[Any], codes: Codes) -> Array | None:
    """Code values by a dictionary; None where one is an array or an object."""
    if isinstance(values, CodedTexts):
        table = np.array([codes[text] for text in values.texts])
        return recoded(values.codes, table.astype(np.min_scalar_type(len(codes))))
    try:
        # The fastest loop; it raises ValueError at the 257th distinct label.
        return np.frombuffer(bytes(map(codes.__getitem__, values)), dtype=np.uint8)
    except ValueError:
        return np.fromiter(map(codes.__getitem__, values), np.uint32, len(values))
    except TypeError:
        return None


def integers_of(
    values: Sequence[Any], pointer: str, *, null: bool, without_booleans: bool
) -> Array:
    """Convert a list of integers; to float64 with NaN for null if `array` refuses the list."""
    integers = plain_integers(values, without_booleans=without_booleans)
    if integers is None:
        allowed = {int, float, type(None)} if null else {int, float}
        if set(map(type, values)) <= allowed:
            integers = np.array(values, dtype=np.float64)
        if integers is None or (np.rint(integers) != integers)[~np.isnan(integers)].any():
            raise invalid(names.mixed(values, pointer, null=null, like=0))
    # Of NaN alone the extremes are NaN, and no place is bad.
    if not (np.fmin.reduce(integers) >= -MOST and np.fmax.reduce(integers) <= MOST):
        bad = np.argwhere((integers < -MOST) | (integers > MOST))
        raise_places(bad, pointer, "out_of_range", names.INTEGER_RULE)
    return integers


def plain_integers(values: Sequence[Any], *, without_booleans: bool) -> Array | None:
    """Convert an array of nothing but integers; else None."""
    if isinstance(values, Integers):
        return values.values
    try:
        integers = np.frombuffer(bytes(values), dtype=np.uint8)
    except (TypeError, ValueError):
        try:
            integers = np.array(array("q", values))
        except (TypeError, OverflowError):
            return None
    # In JSON only true and false have this letter; a look at each type takes three times as long.
    return integers if without_booleans or b"e" not in orjson.dumps(values) else None


def renumbered(*arrays: Array) -> tuple[Array, list[Array]]:
    """Return the distinct integers of arrays, ascending, and the position of each item in them.

    NaN means unclassified; its position is the number of distinct integers.
    """
    missing = [np.isnan(values) if values.dtype == np.float64 else None for values in arrays]
    whole = [
        values if gone is None else values[~gone].astype(np.int64)
        for values, gone in zip(arrays, missing, strict=True)
    ]
    low = min(int(values.min()) for values in whole if values.size)
    high = max(int(values.max()) for values in whole if values.size)
    codes: list[Array]
    if high - low >= DENSE_RANGE:
        distinct = np.unique(np.concatenate([np.unique(values) for values in whole]))
        codes = [np.searchsorted(distinct, values).astype(np.uint32) for values in whole]
    else:
        offsets = [values if low == 0 else values.astype(np.int64) - low for values in whole]
        size = high - low + 1
        counts = np.sum([count_codes(values, size) for values in offsets], axis=0)
        distinct = np.flatnonzero(counts) + low
        table = np.cumsum(counts > 0, dtype=np.uint32) - np.uint32(1)
        codes = [values if distinct.size == size else table[values] for values in offsets]
    for i, gone in enumerate(missing):
        if gone is not None:
            positions = np.full(gone.size, distinct.size, np.uint32)
            positions[~gone] = codes[i]
            codes[i] = positions
    return distinct, codes
