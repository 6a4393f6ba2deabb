"""The JSON report, joined from prepared pieces and numbers dumped as whole arrays."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from math import isnan, prod
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from rprime.core.arrays import Array
from rprime.core.evaluate import Evaluation
from rprime.core.index import CODE, REASONS, Index
from rprime.core.options import ClassPage, OptionsUsed
from rprime.core.published import Json
from rprime.core.selection import Selection
from rprime.core.warnings import Warning  # noqa: A004 (its name)
from rprime.report import scores
from rprime.report.subject import population_member

if TYPE_CHECKING:
    from rprime.core.slices.evaluation import SliceEvaluation


_NO_LIMITS = b"%.0b%.0b"


@dataclass(frozen=True, eq=False)
class Formats:
    """A format for each Value: the brace that ends the one before, its key, and its numbers."""

    plain: list[bytes]
    """For the value alone."""
    bounded: list[bytes]
    """For the value and its limits, where the index has an interval at all."""
    unbounded: list[bytes]
    """For the same numbers where there is no interval."""
    has_interval: Array
    """Whether the index has one at all."""

    @classmethod
    def of(cls, entries: tuple[Index, ...], methods: Sequence[str]) -> "Formats":
        """Prepare them for the Values of indices, with the methods of their intervals, if any."""
        plain = [b'},"%b":{"value":%%b' % entry.key.encode() for entry in entries]
        pairs = list(zip(plain, methods, strict=False))
        return cls(
            plain=plain,
            bounded=[
                opening + b',"interval":[%%b,%%b],"method":"%b"' % method.encode()
                if method
                else opening + _NO_LIMITS
                for opening, method in pairs
            ],
            unbounded=[
                opening + (b',"interval":null' if method else b"") + _NO_LIMITS
                for opening, method in pairs
            ],
            has_interval=np.array([bool(method) for method in methods]),
        )

    @classmethod
    def of_differences(cls, entries: tuple[Index, ...]) -> "Formats":
        """Prepare them for differences, whose interval may be null."""
        openings = [b'},"%b":{"value":%%b,"interval":' % entry.key.encode() for entry in entries]
        tests = b',"p_adjusted":%b,"detectable":%b'
        return cls(
            plain=[],
            bounded=[opening + b"[%b,%b]" + tests for opening in openings],
            unbounded=[opening + b"null%.0b%.0b" + tests for opening in openings],
            has_interval=np.ones(len(entries), dtype=bool),
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
    return Layout(
        overall=Formats.of(entries, methods),
        per_class=Formats.of(selection.per_class, class_methods),
        differences=Formats.of_differences(entries),
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
    "classified_only": "These are computed only on the classified items; the others on all items.",
    "conventional_bands": "The bands of Landis and Koch (1977) are conventions, not tests.",
}


REPORT_VERSION = b"1"
"""Of the form of the answer: another one would break readers of this one."""
WARNINGS: dict[str, Any] = {
    "default": attrgetter("document"),
    "option": orjson.OPT_PASSTHROUGH_DATACLASS,
}
"""How warnings become the objects of the contract."""
NOTHING = b"null"
MOST_COMPARED_VALUES = 6_000
"""Most per-class values of a comparison without a requested page: at most a megabyte."""
NUMPY = orjson.OPT_SERIALIZE_NUMPY
LARGEST_SLICE_VALUES = 20_000
"""Values of classes in all slices together; with more the slices have only overall values."""


def render(
    evaluation: Evaluation,
    *,
    engine_version: str,
    input_digest: str,
    members: Mapping[str, bytes] | None = None,
    comparison: Json | None = None,
    warnings: tuple[Warning, ...] = (),
    include: Collection[str] = (),
    every_result: bool = False,
) -> bytes:
    """Render an evaluation of one table as the JSON document of the contract, in UTF-8.

    Numbers have full round-trip precision; what is undefined is null. Further `members` are
    already JSON, further `warnings` stand after those of the evaluation. A gate with `every_result`
    keeps all of them. `include` adds `table`.
    """
    if comparison is not None:
        evaluation = replace(evaluation, most_values=MOST_COMPARED_VALUES)
    labels = [orjson.dumps(label) for label in evaluation.labels]
    intervals = evaluation.intervals
    methods = () if intervals is None else (intervals.per_class_methods, intervals.overall_methods)
    layout = layout_of(evaluation.selection, *methods)
    population = evaluation.options.population
    parts = {
        "report_version": REPORT_VERSION,
        "gate": b"",
        "counts": counts(evaluation),
        "overall": render_overall(evaluation, labels, layout)[0],
        "per_class": render_per_class(evaluation, labels, layout)[0],
        "top_confusions": top_confusions(evaluation, labels),
        "comparison": b"",
        "warnings": orjson.dumps(evaluation.warnings + warnings, **WARNINGS),
        "notes": layout.notes[evaluation.values.table.has_omissions],
        "labels": b"[" + b",".join(labels) + b"]",
        **({} if evaluation.page is None else {"classes": page(evaluation.page)}),
        **({} if population is None else population_member(population, evaluation)),
        **(
            {}
            if evaluation.slices is None
            else render_slices(evaluation, evaluation.slices, labels)
        ),
        "options": options_used(evaluation),
        "engine_version": orjson.dumps(engine_version),
        "input_digest": orjson.dumps(input_digest),
        **(members or {}),
    }
    if comparison is not None:
        parts["comparison"] = _shown_comparison(comparison, evaluation)
    if parts["gate"] and not every_result:
        from rprime.report.comparison import gate_excerpt  # noqa: PLC0415 (few have a gate)

        parts["gate"] = gate_excerpt(parts["gate"])
    if "table" in include:
        parts["table"] = table(evaluation)
    if evaluation.values.scores is not None:
        parts |= scores.members(evaluation)
    return b"{" + b",".join(b'"%b":%b' % (k.encode(), v) for k, v in parts.items() if v) + b"}"


def _shown_comparison(comparison: Json, evaluation: Evaluation) -> bytes:
    page, labels = evaluation.page, evaluation.labels
    from rprime.report.comparison import comparison_beside_report  # noqa: PLC0415 (few are compared)

    shown = labels if page is None else [labels[place] for place in page.positions]
    return orjson.dumps(comparison_beside_report(comparison, shown, evaluation.selection))


def numbers(values: Array, *, counts: bool = False) -> list[bytes]:
    """Dump every number of an array in flat order; counts without a fraction if all are whole."""
    flat = values.ravel()
    if counts:
        integers = flat.astype(np.int64)
        flat = integers if (integers == flat).all() else flat
    return orjson.dumps(flat, option=NUMPY)[1:-1].split(b",") if flat.size else []


def counts(evaluation: Evaluation) -> bytes:
    """Render how many items there are of which kind."""
    table = evaluation.table
    kinds = [
        np.add.reduce(table.answered),
        0.0 if table.unclassified is None else np.add.reduce(table.unclassified),
        0.0 if table.spurious is None else np.add.reduce(table.spurious),
    ]
    kish = None if evaluation.intervals is None else evaluation.intervals.kish
    return (_WEIGHTS if table.weighted else _COUNTS) % (
        numbers(table.number, counts=True)[0] if table.is_numbered else b"null",
        *(numbers(table.total) if table.weighted else ()),
        *numbers(np.array(kinds), counts=True),
        b"" if kish is None else b',"effective_items":%b' % orjson.dumps(kish),
    )


_COUNTS = b'{"items":%b,"classified":%b,"unclassified":%b,"spurious":%b%b}'
_WEIGHTS = (
    b'{"items":%b,"weight":%b,"classified_weight":%b,"unclassified_weight":%b,'
    b'"spurious_weight":%b%b}'
)


def options_used(evaluation: Evaluation) -> bytes:
    """Render the options that shaped the numbers, matrices only as given or not."""
    options = evaluation.options
    used = dict(zip(_OPTIONS, _values_of(options), strict=True))
    used["intervals"] = "all" if options.intervals == "all" else evaluation.intervals is not None
    scored = evaluation.values.scores or evaluation.values.kept_scores
    for name in ("top_k", "calibration"):
        if used[name] is None or scored is None:
            del used[name]
    if options.average_over is None:
        del used["average_over"]
    else:
        used["average_over"] = [evaluation.labels[i] for i in options.average_over]
    if options.custom:
        used["custom"] = options.expressions
    else:
        del used["custom"]
    return orjson.dumps(used)


_OPTIONS = tuple(field.name for field in fields(OptionsUsed))
_values_of = attrgetter(*_OPTIONS)


def render_overall(evaluation: Evaluation, labels: list[bytes], layout: Layout) -> list[bytes]:
    """Render the overall values of each table by key."""
    intervals, rows = evaluation.intervals, evaluation.rows
    values = [rows(evaluation.values.overall)]
    tables = prod(values[0].shape[:-1])
    if not evaluation.selection.overall:
        return [b"{}"] * tables
    codes = evaluation.values.overall_reasons
    coded = [(None if codes is None else rows(codes), REASON_MEMBERS)]
    if intervals:
        values += [rows(intervals.overall_low), rows(intervals.overall_high)]
        coded.append(
            (rows(intervals.overall_reasons) * layout.overall.has_interval, REASON_MEMBERS)
        )
        coded.append((rows(intervals.overall_low_reliability), LOW_RELIABILITY))
    formats = layout.overall.values(values[1:2], coded, times=tables)
    if intervals and intervals.overall_items is not None:
        add_numbers(formats, "effective_items", rows(intervals.overall_items))
    if intervals and intervals.overall_errors is not None:
        add_numbers(formats, "standard_error", rows(intervals.overall_errors))
    annotate(formats, evaluation, labels, layout)
    return [b"{" + part[2:] + b"}}" for part in _filled(formats, values, tables)]


def _filled(
    formats: list[bytes], arrays: list[Array], tables: int, counts: list[bytes] | None = None
) -> Iterator[bytes]:
    """Yield the Values of each table: its part of the formats, filled with its numbers.

    Each array of `arrays` has one number for each format. `counts` are the three that each class
    begins with, if any.
    """
    flat = numbers(np.array(arrays).reshape(len(arrays), -1).T)
    if counts:
        heads, width = 3, 3 * len(flat) // len(counts)
        values, flat = flat, [b""] * (len(flat) + len(counts))
        for i in range(heads):
            flat[i :: heads + width] = counts[i::heads]
        for i in range(width):
            flat[heads + i :: heads + width] = values[i::width]
    width, size = len(formats) // tables, len(flat) // tables
    for i in range(tables):
        piece = formats[i * width : (i + 1) * width]
        yield b"".join(piece) % tuple(flat[i * size : (i + 1) * size])


def render_slices(
    evaluation: Evaluation, sliced: "SliceEvaluation", labels: list[bytes]
) -> dict[str, bytes]:
    """Render the slices as small reports, their differences from the rest, and the weakest."""
    intervals, selection, names = sliced.intervals, sliced.values.selection, sliced.slices.names
    methods = () if intervals is None else (intervals.per_class_methods, intervals.overall_methods)
    layout = layout_of(selection, *methods)
    with_classes = sliced.values.per_class[: selection.reported].size <= LARGEST_SLICE_VALUES
    if not with_classes:
        layout = replace(layout, averages=(), equal_averages=())
    # A page has other classes in each slice.
    together = _TOGETHER if evaluation.page is None else 1
    parts = []
    for start in range(0, len(names), together):
        window = slice(start, start + together)
        position = window if evaluation.page is None else start
        some = replace(evaluation, values=sliced.values, intervals=intervals, position=(position,))
        members = (
            [orjson.dumps(dict(name)) for name in names[window]],
            numbers(sliced.slices.tables.total[window], counts=True),
            render_overall(some, labels, layout),
            render_per_class(some, labels, layout)
            if with_classes
            else [b"null"] * len(names[window]),
            _differences(sliced, window, layout),
            numbers(sliced.shrunken[window]),
        )
        parts += [_SLICE % values for values in zip(*members, strict=True)]
    weakest_by = None if sliced.index is None else sliced.index.key
    return {
        "slices": b"[" + b",".join(parts) + b"]",
        "weakest": orjson.dumps(sliced.weakest.tolist()),
        "weakest_by": orjson.dumps(weakest_by),
    }


_TOGETHER = 128
"""Slices that are rendered together: the texts of all their numbers are in memory at once."""
_SLICE = (
    b'{"slice":%b,"items":%b,"overall":%b,"per_class":%b,"difference_to_rest":%b,"shrunken":%b}'
)


def _differences(sliced: "SliceEvaluation", window: slice, layout: Layout) -> list[bytes]:
    """Render the differences of some slices from their rest, by the keys of the indices."""
    parts = (sliced.difference, sliced.lower, sliced.upper, sliced.p_adjusted, sliced.detectable)
    rows = [part[:, window].T for part in parts]
    tables, entries = rows[0].shape
    if not entries:
        return [b"{}"] * tables
    formats = layout.differences.values(rows[1:2], times=tables)
    return [b"{" + part[2:] + b"}}" for part in _filled(formats, rows, tables)]


def page(class_page: ClassPage) -> bytes:
    """Render which classes are shown, where these are not simply all of them."""
    return orjson.dumps(
        {"total": class_page.total, "left_out": class_page.left_out, **asdict(class_page.paging)}
    )


_HEAD = b'%b:{"support":%%b,"predicted":%%b,"correct":%%b,"indices":{'


def render_per_class(evaluation: Evaluation, labels: list[bytes], layout: Layout) -> list[bytes]:
    """Render the classes of each table that are shown, in the order of the labels or the page."""
    rows, intervals, shown = evaluation.class_rows, evaluation.intervals, evaluation.page
    # Margins of the whole stack: it computes them once for all of its tables.
    table = evaluation.values.sampled
    margins = evaluation.rows(np.array((table.support, table.predicted, table.correct)))
    if shown is not None:
        margins, labels = margins[shown.positions], [labels[i] for i in shown.positions]
    counts = numbers(margins, counts=True)
    heads = [_HEAD % label.replace(b"%", b"%%") for label in labels]
    values = [rows(evaluation.values.shown)]
    *stack, classes, width = values[0].shape
    tables = prod(stack)
    if not values[0].size:
        opened, size = b",".join(head + b"}}" for head in heads), 3 * classes
        rounds = (tuple(counts[i * size :][:size]) for i in range(tables))
        return [b"{" + opened % part + b"}" for part in rounds]
    codes = evaluation.values.class_reasons
    coded = [(None if codes is None else rows(codes), REASON_MEMBERS)]
    if intervals:
        values += [rows(intervals.per_class_low), rows(intervals.per_class_high)]
        reasons = rows(intervals.per_class_reasons) * layout.per_class.has_interval[:width]
        coded.append((reasons, REASON_MEMBERS))
        coded.append((rows(intervals.per_class_low_reliability), LOW_RELIABILITY))
    formats = layout.per_class.values(values[1:2], coded, times=tables * classes)
    population = evaluation.options.population
    place = evaluation.selection.place.get("prevalence")
    if place is not None and population is not None and population.strata != "true":
        # Where strata of the sample have shares, prevalences are estimated.
        for i in range(place, len(formats), width):
            formats[i] = formats[i].replace(b'"prevalence"', b'"estimated_prevalence"')
    formats[::width] = [
        b"}}}," + head + opening[2:]
        for head, opening in zip(heads * tables, formats[::width], strict=True)
    ]
    if intervals and intervals.per_class_items is not None:
        add_numbers(formats, "effective_items", rows(intervals.per_class_items))
    if intervals and intervals.per_class_errors is not None:
        add_numbers(formats, "standard_error", rows(intervals.per_class_errors))
    return [b"{" + part[4:] + b"}}}}" for part in _filled(formats, values, tables, counts)]


REASON_MEMBERS = [b',"reason":"%b"' % reason.encode() for reason in REASONS]
LOW_RELIABILITY = [b"", b',"reliability":"low"']


def add_numbers(formats: list[bytes], name: str, values: Array) -> None:
    """Add a number to the Values that have one, such as the effective number of items."""
    opening, flat = b',"%b":' % name.encode(), values.ravel()
    for place in np.flatnonzero(np.isfinite(flat)).tolist():
        formats[place] += opening + orjson.dumps(float(flat[place]))


def annotate(
    formats: list[bytes], evaluation: Evaluation, labels: list[bytes], layout: Layout
) -> None:
    """Add what only some overall Values have: bands, p-values, names of classes."""
    entries, estimates = evaluation.selection.overall, evaluation.values
    width = len(entries)
    for place, band in layout.bands:
        values = np.atleast_1d(evaluation.overall[place])
        for i in np.flatnonzero(np.isfinite(values)).tolist():
            formats[i * width + place] += b',"band":%b' % orjson.dumps(band(values[i]))
    for place in layout.p_values:
        p_values = np.atleast_1d(estimates.p_values[entries[place].key][evaluation.position])
        for i, p in enumerate(p_values.tolist()):
            if estimates.grouped or not isnan(p):
                formats[i * width + place] += b',"p_value":%b' % orjson.dumps(p)
    if estimates.scores is not None:
        for place, member in scores.annotations(estimates.scores, evaluation, labels):
            formats[place] += member.replace(b"%", b"%%")
    if estimates.counted_as_zero is not None or not estimates.complete:
        for i, single in enumerate(evaluation.singles):
            window = slice(i * width, (i + 1) * width)
            formats[window] = name_classes(formats[window], single, labels, layout)


def name_classes(
    formats: list[bytes], evaluation: Evaluation, labels: list[bytes], layout: Layout
) -> list[bytes]:
    """Return averages with the classes whose precision counts as 0, and those left out."""
    entries = evaluation.selection.overall
    zero = counted_as_zero(evaluation, labels) if layout.averages else {}
    for place in layout.averages if zero else ():
        counted = next((zero[key] for key in entries[place].of if key in zero), b"")
        if counted:
            formats[place] += b',"counted_as_zero":[%b]' % counted.replace(b"%", b"%%")
    left_out = excluded(evaluation, labels) if layout.equal_averages else {}
    for place in layout.equal_averages if left_out else ():
        # A function of two averages leaves the same classes out of both.
        named = dict.fromkeys(left_out[key] for key in entries[place].of if key in left_out)
        if named:
            classes = b",".join(classes for classes, _ in named if classes)
            elsewhere = sum(others for _, others in named)
            formats[place] += b',"excluded":[%b]' % classes.replace(b"%", b"%%")
            if elsewhere:
                formats[place] += b',"excluded_elsewhere":%d' % elsewhere
    return formats


def excluded(evaluation: Evaluation, labels: list[bytes]) -> dict[str, tuple[bytes, int]]:
    """Render, by per-class key, the shown classes that its averages leave out, and count others."""
    values, class_page = evaluation.values, evaluation.page
    if values.complete:
        return {}
    left_out = evaluation.at(values.undefined_in_averages)
    codes = np.full(left_out.shape, CODE["no_true_samples"])
    if values.class_reasons is not None:
        reasons = evaluation.at(values.class_reasons)
        codes = np.where((evaluation.table.support > 0) & (reasons > 0), reasons, codes)
    named = {}
    for row in np.nonzero(left_out.any(-1))[0].tolist():
        classes = np.nonzero(left_out[row])[0].tolist()
        shown = classes if class_page is None else [i for i in classes if i in class_page.shown]
        named[values.selection.computed[row].key] = (
            b",".join(
                b'{"class":%b%b}' % (labels[i], REASON_MEMBERS[codes[row, i]]) for i in shown
            ),
            len(classes) - len(shown),
        )
    return named


def counted_as_zero(evaluation: Evaluation, labels: list[bytes]) -> dict[str, bytes]:
    """Render, for each per-class key, the shown classes whose precision its averages count as 0."""
    counted, class_page = evaluation.values.counted_as_zero, evaluation.page
    if counted is None:
        return {}
    rows, classes = np.nonzero(evaluation.at(counted))
    named: dict[str, list[bytes]] = {}
    for row, i in zip(rows.tolist(), classes.tolist(), strict=True):
        if class_page is None or i in class_page.shown:
            named.setdefault(evaluation.selection.computed[row].key, []).append(labels[i])
    return {key: b",".join(classes) for key, classes in named.items()}


def top_confusions(evaluation: Evaluation, labels: list[bytes]) -> bytes:
    """Render the largest off-diagonal cells."""
    table, name = evaluation.table, b"weight" if evaluation.table.weighted else b"items"
    true, predicted, counts = table.cells.largest_errors(evaluation.options.top_confusions)
    shares = numbers(counts / table.support[true])
    rows = zip(true.tolist(), predicted.tolist(), numbers(counts, counts=True), shares, strict=True)
    entries = (
        b'{"true":%b,"predicted":%b,"%b":%b,"share_of_true":%b}'
        % (labels[i], labels[j], name, n, s)
        for i, j, n, s in rows
    )
    return b"[" + b",".join(entries) + b"]"


def table(evaluation: Evaluation) -> bytes:
    """Render the table as coordinates of its non-empty cells."""
    rows, columns, items = evaluation.table.cells.coordinates()
    triples = zip(rows.tolist(), columns.tolist(), numbers(items, counts=True), strict=True)
    cells = b",".join(b"[%d,%d,%b]" % triple for triple in triples)
    vectors = {"unclassified": evaluation.table.unclassified, "spurious": evaluation.table.spurious}
    tail = b"".join(
        b',"%b":[%b]' % (name.encode(), b",".join(numbers(v, counts=True)))
        for name, v in vectors.items()
        if v is not None
    )
    return b'{"cells":[' + cells + b"]" + tail + b"}"
