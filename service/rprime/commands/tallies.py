"""Evidence from an engine: the tables of predictions that are counted where they lie."""

from collections.abc import Iterator, Sequence
from typing import Any

import orjson
from typer import Exit

from rprime.commands.exit_status import Status, refuse, say, working
from rprime.core.catalog import SCORE_KEYS
from rprime.core.index_names import canonical
from rprime.core.published import Json
from rprime.evidence.reader import OF_LABELS, doubts
from rprime.tally.counting import LABELS, Tallies, tally
from rprime.tally.engines import Engine, Files, UnreachableEngineError, open_frame, orders
from rprime.tally.table import TallyError

_OF_SCORES = ("curves", "reject", "thresholds", "top_k", "calibration")
"""Options that read the scores of every item."""


COUNTED_BY = ("labels", "reject_below", "columns", "slice_cuts", "slice_crossings")
"""Members of a request that are spent once the items are counted."""


def read_tables(files: Sequence[str], engine: str, members: Json) -> list[bytes]:
    """Count the items of files, as the members of a request say.

    Returns
    -------
    The table as members of a request, JSON, and that of the column `y_pred_baseline`, if there
    is one.
    """
    for member in _of_scores(members):
        refuse(
            f"{member} reads the scores of every item, and an engine gives only a table: "
            "leave it out, or evaluate without --engine"
        )
    for name in OF_LABELS:
        if members.get(name) not in (None, {}, "refuse"):
            refuse(
                f"{name} is for items that are read here, and an engine counts labels as they "
                "stand: map them in the files, or evaluate without --engine"
            )
    tallies = _tallies(files, engine, members)
    if tallies.without_order:
        for doubt in doubts(tallies.candidate.labels, members, members):
            say(doubt.detail)
    tables = [tallies.candidate.evidence()]
    if tallies.baseline is not None:
        say("an engine gives tables, not items: the comparison with y_pred_baseline is unpaired")
        # Of the same items, so of the same test set where one is declared.
        shared = {"test_set": members["test_set"]} if "test_set" in members else {}
        tables.append(tallies.baseline.evidence() | shared)
    return [orjson.dumps(table, option=orjson.OPT_SERIALIZE_NUMPY) for table in tables]


def _of_scores(members: Json) -> Iterator[str]:
    """Name what is asked for and needs scores; what is malformed is refused by its reader."""
    yield from (name for name in _OF_SCORES if members.get(name))
    gates = members.get("gates")
    rules = gates.get("rules") if isinstance(gates, dict) else None
    keys = [rule.get("index") for rule in rules or () if isinstance(rule, dict)]
    indices = members.get("indices")
    keys += indices if isinstance(indices, list) else []
    yield from (key for key in keys if isinstance(key, str) and canonical(key) in SCORE_KEYS)


def _tallies(files: Sequence[str], engine: str, members: Json) -> Tallies:
    labels, least, *slicing = (members.get(name) for name in COUNTED_BY)
    columns, cuts, crossings = (member or {} for member in slicing)
    slices = {
        n.removeprefix("slice:"): column for n, column in columns.items() if n.startswith("slice:")
    }
    if not columns.keys() <= {"count"} | {f"slice:{name}" for name in slices}:
        refuse("--columns is for files that are read here, without --engine")
    for name, cut in cuts.items():
        if not isinstance(cut, list):
            refuse(f"{name}: an engine cuts a column at given numbers, as cut(age, 18, 30, 50)")
    if labels is not None:
        labels = list(map(str, labels)) if isinstance(labels, list) else refuse("labels: no list")
    if least is not None and type(least) not in {int, float}:
        refuse("reject_below: no number")
    try:
        source = Files.of(files)
        backend = Engine.of(engine)
        with working(f"Counting by {backend.name} ..."), open_frame(backend, source) as frame:
            asked_slices: Any = {"slices": slices, "cuts": cuts, "crossings": list(crossings)}
            untyped = source.format == "csv"
            return tally(
                frame,
                labels=labels,
                reject_below=least,
                count=columns.get("count"),
                untyped=untyped,
                orders=orders(source, LABELS),
                **asked_slices,
            )
    except UnreachableEngineError as error:
        say(f"NO VERDICT, the engine gave no answer. {error}")
        raise Exit(Status.UNREACHABLE) from None
    except TallyError as error:
        refuse(str(error))
