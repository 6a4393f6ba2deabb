"""Indices of one's own: expressions over indices, counts and cells, read but never executed."""

import ast
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from rprime.core.arrays import Array
from rprime.core.catalog import CUSTOM, find
from rprime.core.counts import CountRow
from rprime.core.index import Index
from rprime.core.index_names import canonical, nearest_classes, nearest_name, unknown_index
from rprime.core.table import ConfusionTable

MOST_CUSTOM = 20
"""Most indices of one's own in a request."""
LONGEST_EXPRESSION = 1000
"""Characters of an expression."""
MOST_NODES = 200
"""Numbers, names and operations of an expression, and so its depth."""
NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
"""What the name of an index of one's own may be."""
ITEMS, CELLS = "items", "cells"
COUNTS = {
    "support": CountRow.support,
    "predicted": CountRow.predicted,
    "true_positives": CountRow.tp,
    "false_positives": CountRow.fp,
    "false_negatives": CountRow.fn,
    "true_negatives": CountRow.tn,
}
"""Names of counts of a class."""
_NAMES = (ITEMS, CELLS, *COUNTS)
_MOST_CLASSES = {ITEMS: 0, CELLS: 2}
_ESCAPED = re.compile(r"(?:[^\\]|\\[\\'\"])*")
_LINE_BREAK = re.compile(r"[\n\r\f]")
_HOW = "numbers, names, + - * / and parentheses"


class ExpressionError(ValueError):
    """A mistake in an expression: what and, counted from 1, in which column."""

    def __init__(self, code: str, message: str, column: int) -> None:
        super().__init__(f"Column {column}: {message}")
        self.code = code
        self.column = column


class Term(NamedTuple):
    """A name in an expression: `items`, a count or an index, of the classes in its brackets.

    The second class of a cell is None for items without a prediction.
    """

    key: str
    classes: tuple[str | None, ...] = ()

    @property
    def degree(self) -> int | None:
        """By which power of a factor of all counts it grows; None if by none."""
        if self.key in _NAMES:
            return 1
        entry = find("class" if self.classes else "overall", self.key)
        smooth = entry is not None and (entry.scale_invariant or entry.interval is not None)
        return 0 if smooth else None


@dataclass(frozen=True)
class Degree:
    """By which power of a factor of all counts a part of an expression grows; None if by none."""

    power: int | None

    def __add__(self, other: "Degree") -> "Degree":
        return self if self == other else Degree(None)

    def __sub__(self, other: "Degree") -> "Degree":
        return self + other

    def __neg__(self) -> "Degree":
        return self

    def __mul__(self, other: "Degree") -> "Degree":
        if self.power is None or other.power is None:
            return Degree(None)
        return Degree(self.power + other.power)

    def __truediv__(self, other: "Degree") -> "Degree":
        return self * Degree(None if other.power is None else -other.power)


@dataclass(frozen=True, eq=False)
class Extent:
    """Where the values of a part of an expression lie: interval arithmetic.

    A sum of counts has a coefficient for each cell instead, shape (k, k) or (k, k + 1), so that a
    quotient of two such sums has its true range.
    """

    low: float = -np.inf
    high: float = np.inf
    cells: Array | None = None

    @classmethod
    def between(cls, *ends: float) -> "Extent":
        """Return the range of some values; one without bounds if a value is none."""
        return cls() if np.isnan(ends).any() else cls(min(ends), max(ends))

    @property
    def constant(self) -> bool:
        """Whether it is a number."""
        return self.cells is None and self.low == self.high

    def __add__(self, other: "Extent") -> "Extent":
        if self.cells is not None and other.cells is not None:
            return Extent(cells=self.cells + other.cells)
        if self.cells is not None or other.cells is not None:
            return Extent()
        return Extent.between(self.low + other.low, self.high + other.high)

    def __neg__(self) -> "Extent":
        return Extent(-self.high, -self.low, None if self.cells is None else -self.cells)

    def __sub__(self, other: "Extent") -> "Extent":
        return self + -other

    def __mul__(self, other: "Extent") -> "Extent":
        for sums, number in ((self, other), (other, self)):
            if sums.cells is not None:
                return Extent(cells=sums.cells * number.low) if number.constant else Extent()
        pairs = product((self.low, self.high), (other.low, other.high))
        return Extent.between(*(left * right for left, right in pairs))

    def __truediv__(self, other: "Extent") -> "Extent":
        if other.cells is None:
            around_zero = other.low <= 0 <= other.high
            return Extent() if around_zero else self * Extent(1 / other.high, 1 / other.low)
        there = other.cells > 0
        if self.cells is None or (other.cells < 0).any() or self.cells[~there].any():
            return Extent()
        ratios = self.cells[there] / other.cells[there]
        return Extent(float(ratios.min()), float(ratios.max())) if ratios.size else Extent()


@dataclass(frozen=True, eq=False)
class Expression:
    """An expression as operations on a stack of values.

    Parameters
    ----------
    terms
        The names in it, each once, with the column where each first stands.
    operations
        In reverse Polish notation: the position of a term, a number, or a function of the one or
        two values before it.
    """

    terms: tuple[Term, ...]
    columns: tuple[int, ...]
    operations: tuple["Operation", ...]

    def of(self, values: Sequence[Any], number: Callable[[float], Any] = float) -> Any:  # noqa: ANN401 (numbers, arrays or degrees)
        """Compute it from a value for each term; `number` turns its numbers into such values."""
        stack: list[Any] = []
        for kind, content in self.operations:
            if kind == "term":
                stack.append(values[content])
            elif kind == "number":
                stack.append(number(content))
            else:
                arguments = stack[-_ARGUMENTS[kind] :]
                del stack[-_ARGUMENTS[kind] :]
                stack.append(_FUNCTIONS[kind](*arguments))
        return stack[0]

    @property
    def scale_invariant(self) -> bool:
        """Whether equally larger counts leave it as it is, so that it can have an interval."""
        degrees = [Degree(term.degree) for term in self.terms]
        return bool(self.of(degrees, lambda _: Degree(0)).power == 0)

    @property
    def averages(self) -> tuple[str, ...]:
        """The averages over classes that it reads."""
        entries = ((term.key, find("overall", term.key)) for term in self.terms if not term.classes)
        kinds = {"macro", "weighted", "means"}
        return tuple(key for key, entry in entries if entry is not None and entry.reads in kinds)

    @property
    def keys(self) -> tuple[str, ...]:
        """The indices that it reads."""
        return tuple(dict.fromkeys(term.key for term in self.terms if term.key not in _NAMES))


Operation = tuple[str, Any]
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Add": lambda left, right: left + right,
    "Sub": lambda left, right: left - right,
    "Mult": lambda left, right: left * right,
    "Div": lambda left, right: left / right,
    "USub": lambda value: -value,
}
_ARGUMENTS = {"Add": 2, "Sub": 2, "Mult": 2, "Div": 2, "USub": 1}


@lru_cache(maxsize=256)
def expression_of(text: str) -> Expression:
    """Read an expression.

    Raises
    ------
    ExpressionError
        If it is too long, is none, or has other names and operations than an expression has.
    """
    reader = _Reader(text)
    operations = tuple(reader.operations(reader.tree()))
    if not reader.terms:
        message = "An expression names an index, a count or a cell."
        raise ExpressionError("not_an_expression", message, 1)
    return Expression(tuple(reader.terms), tuple(reader.terms.values()), operations)


class _Reader:
    """Reads one expression, and collects its terms with their columns."""

    def __init__(self, text: str) -> None:
        self.text = _LINE_BREAK.sub(" ", text.strip())  # of the same length
        self.start = len(text) - len(text.lstrip())
        self.terms: dict[Term, int] = {}
        if len(text) > LONGEST_EXPRESSION:
            message = f"An expression has at most {LONGEST_EXPRESSION} characters."
            raise ExpressionError("too_long", message, LONGEST_EXPRESSION + 1)

    def tree(self) -> ast.expr:
        """Parse the text, without executing any of it."""
        escaped = _ESCAPED.match(self.text)
        if escaped is not None and escaped.end() < len(self.text):
            message = "A backslash stands only before a quote or another backslash."
            raise ExpressionError("not_an_expression", message, self._column(escaped.end()))
        try:
            tree = ast.parse(self.text, mode="eval").body
        except SyntaxError as error:
            # At its end, the place that Python names is that of a further line.
            place = error.offset - 1 if error.offset else len(self.text)
            raise self._unreadable(min(place, len(self.text))) from None
        except (ValueError, RecursionError, MemoryError):
            raise self._unreadable(0) from None
        nodes = sum(isinstance(node, ast.expr) for node in ast.walk(tree))
        if nodes > MOST_NODES:
            message = f"An expression has at most {MOST_NODES} numbers, names and operations."
            raise ExpressionError("too_long", message, 1)
        return tree

    def operations(self, node: ast.expr) -> Iterator[Operation]:
        """Yield the operations of a part of the expression."""
        match node:
            case ast.BinOp(
                left=left, right=right, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div()
            ):
                yield from self.operations(left)
                yield from self.operations(right)
                yield type(node.op).__name__, None
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                yield from self.operations(operand)
                yield "USub", None
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                yield from self.operations(operand)
            case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
                yield "number", self._number(node)
            case ast.Name() | ast.Subscript(value=ast.Name()):
                term = self._term(node)
                self.terms.setdefault(term, self._place(node))
                yield "term", tuple(self.terms).index(term)
            case _:
                message = f"An expression has {_HOW}, nothing else."
                raise self._refusal("not_an_expression", message, node)

    def _number(self, node: ast.Constant) -> float:
        try:
            number = float(node.value)  # type: ignore[arg-type] # an integer or a float
        except OverflowError:
            number = np.inf
        if not np.isfinite(number):
            raise self._refusal("out_of_range", "The number is too large.", node)
        return number

    def _term(self, node: ast.expr) -> Term:
        """Read a name, with the classes in brackets behind it if it has any."""
        name = node.value if isinstance(node, ast.Subscript) else node
        assert isinstance(name, ast.Name)  # noqa: S101 (the caller matched it)
        classes = self._classes(node.slice) if isinstance(node, ast.Subscript) else ()
        key = name.id if name.id in _NAMES else canonical(name.id)
        if message := _wrong_use(key, name.id, len(classes)):
            code = "unknown_index" if message == _unknown(name.id) else "invalid_index"
            raise self._refusal(code, message, node)
        if None in classes and (key != CELLS or classes[0] is None):
            message = "None stands only for the prediction of a cell: `cells['cat', None]`."
            raise self._refusal("unknown_class", message, node)
        return Term(key, classes)

    def _classes(self, node: ast.expr) -> tuple[str | None, ...]:
        """Read the classes in brackets: strings, or integers, which stand for their text."""
        parts = node.elts if isinstance(node, ast.Tuple) else [node]
        return tuple(self._class(part) for part in parts)

    def _class(self, node: ast.expr) -> str | None:
        match node:
            case ast.Constant(value=str() | None as label):
                return label
            case ast.Constant(value=int(number)) if not isinstance(number, bool):
                return str(number)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))):
                return str(-number)
        message = "A class stands in quotes, as in `recall['cat']`."
        raise self._refusal("unknown_class", message, node)

    def _unreadable(self, place: int) -> ExpressionError:
        message = f"This is no expression of {_HOW}."
        return ExpressionError("not_an_expression", message, self._column(place))

    def _refusal(self, code: str, message: str, node: ast.expr) -> ExpressionError:
        return ExpressionError(code, message, self._place(node))

    def _place(self, node: ast.expr) -> int:
        """Return the column of a part; Python counts bytes of UTF-8."""
        return self._column(len(self.text.encode()[: node.col_offset].decode()))

    def _column(self, place: int) -> int:
        return self.start + place + 1


def _wrong_use(key: str, name: str, classes: int) -> str:
    """Say what is wrong with a name that has so many classes in brackets; empty if nothing is."""
    if key in _NAMES:
        expected = _MOST_CLASSES.get(key, 1)
        example = ("`items`", f"`{key}['cat']`", f"`{key}['cat', 'dog']`")[expected]
        return "" if classes == expected else f"Write {example}."
    entry = find("class" if classes else "overall", key)
    if entry is None:
        return _wrong_scope(key) or _unknown(name)
    if classes > 1:
        return f"An index is of one class: `{key}['cat']`."
    if entry.scored:
        return f"`{key}` reads scores; an expression reads the table."
    option = f"`{key}` needs the option `{entry.needs}`: write the cells instead."
    return option if entry.needs else ""


def _wrong_scope(key: str) -> str:
    """Say that an index is one number, or one of each class; empty if there is no such index."""
    if find("overall", key) is not None:
        return f"`{key}` is one number: leave the brackets out."
    entry = find("class", key)
    if entry is None:
        return ""
    average = f", or an average, as `macro_{key}`" if entry.averaged else ""
    return f"`{key}` is a number of each class: name one, as `{key}['cat']`{average}."


def _unknown(name: str) -> str:
    near = nearest_name(name, _NAMES)
    return f"{unknown_index(name)}{f' {near}' if near.startswith('Did') else ''}"


def unknown_custom(key: str, names: Collection[str]) -> str:
    """Say that no expression has this key, and which may be meant."""
    near = nearest_name(key.removeprefix(CUSTOM), [*names]) if names else "Declare it there."
    return f"`custom` has no index of this name. {near}"


def _of_index(entry: Index, k: int) -> Extent:
    """Return the range of the score interval of an index."""
    low, high = entry.range if entry.score_range is None else entry.score_range(k)
    return Extent(low if np.isfinite(low) else -1.0, high)


_OF_CELLS: dict[str, Callable[[Array, Array], Array]] = {
    ITEMS: lambda row, _: np.ones_like(row),
    CELLS: lambda row, column: row & column,
    "support": lambda row, _: row,
    "predicted": lambda _, column: column,
    "true_positives": lambda row, column: row & column,
    "false_positives": lambda row, column: column & ~row,
    "false_negatives": lambda row, column: row & ~column,
    "true_negatives": lambda row, column: ~(row | column),
}
"""The cells that each count adds up, by whether they are in the row and the column of a class."""
_WITH_SPURIOUS = {"predicted", "false_positives", "true_negatives"}
"""Counts to which predictions without an item add."""


@dataclass(frozen=True)
class CustomIndex:
    """An index of one's own, bound to the classes of a table.

    Parameters
    ----------
    name, expression
        As sent.
    places
        The position of each class that the expression names.
    """

    name: str
    expression: str
    places: tuple[tuple[str, int], ...] = ()

    @property
    def key(self) -> str:
        """Its key in reports and rules."""
        return f"{CUSTOM}{self.name}"

    def among(self, labels: Sequence[str]) -> "CustomIndex | None":
        """Bind it to other classes; None if one that it names is not among them."""
        try:
            return CustomIndex.bound(self.name, self.expression, labels)
        except ExpressionError:
            return None

    @property
    def read(self) -> Expression:
        """The expression."""
        return expression_of(self.expression)

    def extent(self, table: ConfusionTable) -> Extent:
        """Return the range of its values over all tables with these classes."""
        columns = table.k if table.unclassified is None else table.k + 1
        rows, places = np.arange(table.k)[:, None], dict(self.places)

        def of_term(term: Term) -> Extent:
            if term.key not in _OF_CELLS:
                entry = find("class" if term.classes else "overall", term.key)
                return Extent() if entry is None else _of_index(entry, table.k)
            if table.spurious is not None and term.key in _WITH_SPURIOUS:
                return Extent()
            at = [table.k if label is None else places[label] for label in term.classes] or [0]
            row, column = np.broadcast_arrays(rows == at[0], np.arange(columns) == at[-1])
            return Extent(cells=_OF_CELLS[term.key](row, column).astype(np.float64))

        return self.read.of(
            [of_term(term) for term in self.read.terms], lambda number: Extent(number, number)
        )

    @classmethod
    def bound(cls, name: str, expression: str, labels: Sequence[str]) -> "CustomIndex":
        """Find the classes of an expression among labels.

        Raises
        ------
        ExpressionError
            If it is no expression, or names another class.
        """
        parsed, numbers = expression_of(expression), {label: i for i, label in enumerate(labels)}
        places = {}
        for term, column in zip(parsed.terms, parsed.columns, strict=True):
            for label in term.classes:
                if label is not None and label not in numbers:
                    message = f"There is no such class.{nearest_classes(label, labels)}"
                    raise ExpressionError("unknown_class", message, column)
                if label is not None:
                    places[label] = numbers[label]
        return cls(name, expression, tuple(places.items()))
