import base64
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from rprime.core.items import table_of
from rprime.core.table import ConfusionTable
from rprime.schemas.history import ImportReport
from rprime.store import (
    Expected,
    Filters,
    InvalidExportError,
    ProjectMissingError,
    Store,
    open_store,
    packing,
)
from rprime.store.records import StoredEvaluation
from tests.history_service import ServeApp, keeping, matrix
from tests.store import samples
from tests.store.conftest import on_sqlite


def import_of(**counts: int) -> ImportReport:
    return ImportReport(**dict.fromkeys(ImportReport.model_fields, 0) | counts)


def fill(store: Store) -> list[str]:
    evaluations = [
        samples.evaluation(
            0, items=samples.kept_items(), slices=samples.slices(), fingerprint=samples.FINGERPRINT
        ),
        samples.evaluation(
            1,
            table=ConfusionTable.dense(np.eye(3) / 7, np.ones(3), weighted=True),
            gate=b'{"verdict":"pass","p":1e-300,"n":[1.0,2,null,"\xc3\xbc"]}',
            comparison=b"{}",
            source=b'"https://ci.example"',
            extras=b"[]",
            options=b'{"options":{"beta":0.1}}',
            tags=("a", "b c"),
            verdict="pass",
            waived=True,
            model="m",
            branch="b",
            commit="c",
            test_set="t",
            scores=samples.score_summary(),
            submission=b"same",
        ),
        samples.evaluation(2, table=samples.sparse_table(), project="plants"),
    ]
    for new in evaluations:
        samples.put(store, new).result()
    for name, target in (("main", 0), ("main", 1), ("old", 0)):
        store.put_alias(
            "animals", name, evaluation=evaluations[target].id, expected=Expected(), by="ci"
        )
    store.delete_alias("animals", "old", expected=Expected())
    store.put_settings("plants", badge_public=True, keeps_slices=False)
    return [new.id for new in evaluations]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, ...]:
    """Return the lines of an export of one evaluation."""
    store = open_store(f"sqlite:///{tmp_path_factory.mktemp('exported')}/rprime.db")
    fill(store)
    lines = tuple(store.export("plants"))
    store.close()
    return lines


def without(store: Store, left_out: Callable[[bytes], bool]) -> list[bytes]:
    """Export without some lines."""
    lines = [line for line in store.export() if not left_out(line)][:-1]
    return [*lines, orjson.dumps({"end": {"lines": len(lines)}})]


def comparable(evaluation: StoredEvaluation) -> dict[str, Any]:
    return {**vars(evaluation), "table": None}


def test_an_export_is_imported_as_it_was(store: Store, other_store: Store) -> None:
    ids = fill(store)
    lines = list(store.export())
    assert other_store.import_lines(lines) == import_of(evaluations=3, aliases=1)
    for identifier in ids:
        first, two = store.get(identifier), other_store.get(identifier)
        assert comparable(first) == comparable(two)
        assert samples.same_table(first.table, two.table)
    kept, imported = store.items(ids[0]), other_store.items(ids[0])
    assert kept is not None
    assert imported is not None
    assert kept.ids is not None
    assert imported.ids is not None
    assert np.array_equal(imported.ids, kept.ids)
    assert np.array_equal(imported.predicted, kept.predicted)
    assert samples.same_scores(samples.score_summary(), other_store.scores(ids[1]))
    assert other_store.scores(ids[0]) is None
    assert samples.same_slices(samples.slices(), other_store.slices(other_store.get(ids[0])))
    assert [p.bytes for p in other_store.projects()] == [p.bytes for p in store.projects()]
    assert other_store.alias("animals", "main").evaluation == ids[1]
    for name, targets in (("main", [ids[1], ids[0]]), ("old", [None, ids[0]])):
        changes = other_store.alias_changes("animals", name)
        assert [change.evaluation for change in changes] == targets
        assert changes == store.alias_changes("animals", name)
    assert other_store.setting("plants", "badge_public")
    assert not other_store.setting("plants", "keeps_slices")
    assert other_store.looks("animals", samples.FINGERPRINT) == 1
    assert list(other_store.export())[1:] == lines[1:]


def test_columns_of_slices_are_imported(store: Store, other_store: Store) -> None:
    evaluation = samples.evaluation(**samples.sliced())
    samples.put(store, evaluation).result()
    other_store.import_lines(store.export())
    imported = other_store.sliced_items(evaluation.id)
    assert imported is not None
    assert evaluation.slices is not None
    assert samples.same_columns(evaluation.slices.columns, imported[1])
    assert [p.bytes for p in other_store.projects()] == [p.bytes for p in store.projects()]


def test_other_slices_than_those_of_the_items_are_not_imported(
    store: Store, other_store: Store
) -> None:
    members = samples.sliced()
    columns = members["slices"].columns
    samples.put(store, samples.evaluation(**members)).result()
    header, line, _ = store.export()
    short = {name: replace(column, codes=column.codes[:-1]) for name, column in columns.items()}
    spoiled: list[dict[str, Any]] = [
        {"items": packing.pack_items(members["items"], short)},
        {"items": packing.pack_items(members["items"], {"region": columns["region"]})},
    ]
    listed = orjson.loads(line)["evaluation"]["slices"]
    spoiled += [{"slices": listed[:-1]}, {"slices": [*listed[1:], listed[0]]}]
    spoiled.append({"slices": [{**listed[0], "counts": listed[1]["counts"]}, *listed[1:]]})
    for changes in spoiled:
        document = orjson.loads(line)
        for name, value in changes.items():
            packed = isinstance(value, bytes)
            document["evaluation"][name] = base64.b64encode(value).decode() if packed else value
        with pytest.raises(InvalidExportError):
            other_store.import_lines([header, orjson.dumps(document)])
    assert other_store.projects() == ()


def test_an_import_repeated_changes_nothing(store: Store) -> None:
    fill(store)
    lines = list(store.export())
    assert store.import_lines(lines) == import_of(evaluations_present=3, aliases_present=1)
    assert list(store.export())[1:] == lines[1:]


def test_what_was_imported_is_known_as_submitted(store: Store, other_store: Store) -> None:
    ids = fill(store)
    other_store.import_lines(store.export())
    again = samples.put(other_store, samples.evaluation(submission=b"same")).result()
    assert (again.id, again.created) == (ids[1], False)


def test_one_project_is_exported_alone(store: Store, other_store: Store) -> None:
    fill(store)
    assert other_store.import_lines(store.export("plants")) == import_of(evaluations=1)
    assert [project.name for project in other_store.projects()] == ["plants"]


def test_an_export_of_many_goes_page_by_page(store: Store, other_store: Store) -> None:
    futures = [samples.put(store, samples.evaluation(i)) for i in range(450)]
    for future in futures:
        future.result()
    lines = store.export()
    first = next(lines)
    # What comes meanwhile is not part of it, and nothing is held up.
    samples.put(store, samples.evaluation(451)).result()
    assert other_store.import_lines([first, *lines]).evaluations == 450


def test_the_larger_look_count_stays(store: Store, other_store: Store) -> None:
    for i in range(3):
        samples.put(store, samples.evaluation(i, fingerprint="f")).result()
    samples.put(other_store, samples.evaluation(9, fingerprint="f")).result()
    other_store.import_lines(store.export())
    assert other_store.looks("animals", "f") == 3
    store.import_lines(other_store.export())
    assert store.looks("animals", "f") == 3


def test_an_alias_without_its_evaluation_is_left_out(store: Store, other_store: Store) -> None:
    fill(store)
    lines = without(store, lambda line: line.startswith(b'{"evaluation"'))
    assert other_store.import_lines(lines) == import_of(aliases_dangling=1)


def test_changes_of_an_alias_are_kept_where_it_is_known(store: Store, other_store: Store) -> None:
    ids = fill(store)
    other_store.import_lines(without(store, lambda line: b'{"alias"' in line))
    for name in ("main", "old"):
        other_store.put_alias("animals", name, evaluation=ids[0], expected=Expected())
    before = list(other_store.export())[1:]
    assert other_store.import_lines(store.export()).aliases_present == 1
    assert list(other_store.export())[1:] == before


def test_an_alias_of_an_export_without_changes_begins_now(store: Store, other_store: Store) -> None:
    ids = fill(store)
    lines = without(store, lambda line: b'{"alias"' in line)[:-1]
    alias = {"project": "animals", "name": "main", "evaluation": ids[1]}
    end = {"end": {"lines": len(lines) + 1}}
    other_store.import_lines([*lines, orjson.dumps({"alias": alias}), orjson.dumps(end)])
    [change] = other_store.alias_changes("animals", "main")
    assert (change.evaluation, change.by) == (ids[1], None)


def test_a_change_to_an_evaluation_that_is_missing_is_left_out(
    store: Store, other_store: Store
) -> None:
    ids = fill(store)
    lines = without(store, lambda line: ids[0].encode() in line[:60])
    other_store.import_lines(lines)
    changes = other_store.alias_changes("animals", "main")
    assert [change.evaluation for change in changes] == [ids[1]]


@on_sqlite
@pytest.mark.parametrize(
    "change",
    [
        {"evaluation": "x", "changed": 1, "by": None},
        {"evaluation": None, "changed": 10**18, "by": None},
        {"evaluation": None, "changed": "soon", "by": None},
        {"evaluation": None, "changed": 1, "by": "a\nb"},
        {"evaluation": None, "changed": 1, "by": 7},
        {"evaluation": None, "changed": 1},
    ],
)
def test_a_spoiled_change_of_an_alias_is_named(store: Store, change: dict[str, Any]) -> None:
    alias = {"project": "p", "name": "n", "evaluation": None, "changes": [change]}
    with pytest.raises(InvalidExportError, match="line 2"):
        store.import_lines([b'{"rprime_export":1}', orjson.dumps({"alias": alias})])
    assert store.alias_changes("p", "n") == ()


SLICE = {"weighted": False, "counts": [[1, 0, 0], [0, 1, 0], [0, 0, 1]]}


def changed(**fields: Any) -> Callable[[dict[str, Any]], None]:
    return lambda evaluation: evaluation.update(fields)


@on_sqlite
@pytest.mark.parametrize(
    "spoil",
    [
        changed(id="nonsense"),
        changed(project=""),
        changed(labels=["a", "a", "b"]),
        changed(labels=[]),
        changed(labels="abc"),
        changed(options={}),
        changed(options=[]),
        changed(options={"options": None}),
        changed(table={"weighted": False, "counts": [[1]]}),
        changed(table={"weighted": False, "counts": [[-1, 0, 0], [0, 0, 0], [0, 0, 0]]}),
        changed(table={"weighted": False, "cells": [[0, 3, 1]]}),
        changed(table={"weighted": False, "cells": [[0, -1, 1]]}),
        changed(items="!"),
        changed(items="bm90IHpzdGQ="),
        changed(scores="!"),
        changed(scores=base64.b64encode(packing.pack_scores(samples.score_summary(k=5))).decode()),
        changed(scores=base64.b64encode(packing.pack_items(samples.kept_items())).decode()),
        changed(slices=[{"slice": {}, **SLICE}]),
        changed(slices=[{"slice": {"r": "x\n"}, **SLICE}]),
        changed(slices=[{"slice": {"r": 1}, **SLICE}]),
        changed(slices=[{"slice": {"r": "x"}, **SLICE}] * 2),
        changed(slices=[{"slice": {"r": "x"}, "weighted": False, "counts": [[1]]}]),
        changed(slices=[{"slice": {"r": "x"}, "weighted": False, "cells": [[0, 0, 1]]}]),
        changed(slices={"r": 1}),
        changed(tags="x\ny"),
        changed(submission="xyz"),
        changed(input_digest=7),
        changed(model=7),
        changed(verdict="bogus"),
        changed(verdict="pass"),
        changed(gate={"verdict": "fail"}),
        lambda evaluation: evaluation.pop("tags"),
        *(changed(id=far) for far in ("7zzzzzzzzzzzzzzzzzzzzzzzzz", "01zzzzzzzzzzzzzzzzzzzzzzzz")),
        *(changed(project=odd) for odd in ("../x", "<script>", "a/b", None, 7)),
        *(changed(model=odd) for odd in ("a\nb", "", "x" * 200, "a model", ["m"])),
        *(changed(branch=odd) for odd in ("a\nb", "", "x" * 300)),
        *(changed(tags=odd) for odd in ([""], ["x" * 65], [7], ["t"] * 65, None)),
        *(changed(test_set=odd) for odd in ("", "x" * 200, {"id": "t"})),
        *(changed(labels=[odd, "b", "c"]) for odd in ("x" * 200, "a\u202eb", "\u200d", "", 7)),
        changed(documents=99),
        changed(documents=0),
        changed(gate=[]),
    ],
)
def test_a_spoiled_line_is_named_and_not_stored(
    store: Store, exported: tuple[bytes, ...], spoil: Callable[[dict[str, Any]], None]
) -> None:
    lines = list(exported)
    document = orjson.loads(lines[1])
    spoil(document["evaluation"])
    lines[1] = orjson.dumps(document)
    with pytest.raises(InvalidExportError, match=r"(`/evaluation|version 99)") as caught:
        store.import_lines(lines)
    assert caught.value.line == 2
    assert store.projects() == ()


@on_sqlite
@pytest.mark.parametrize(
    ("line", "place"),
    [
        ({"alias": {"project": "p", "name": "a/b", "evaluation": None}}, "/alias/name"),
        ({"alias": {"project": "..", "name": "a", "evaluation": None}}, "/alias/project"),
        ({"looks": {"project": "p q", "fingerprint": "f", "looks": 1}}, "/looks/project"),
        ({"looks": {"project": "p", "fingerprint": "f", "looks": -1}}, "/looks/looks"),
        ({"settings": {"project": "<b>", "badge_public": True}}, "/settings/project"),
        ({"settings": []}, "/settings"),
        ({"end": {}}, "/end"),
    ],
)
def test_the_place_in_a_spoiled_line_is_named(
    store: Store, line: dict[str, Any], place: str
) -> None:
    with pytest.raises(InvalidExportError, match=f"^line 2: `{place}`"):
        store.import_lines([b'{"rprime_export":3}', orjson.dumps(line)])
    assert store.projects() == ()


def test_an_import_of_the_far_future_breaks_no_page(serve_app: ServeApp, tmp_path: Path) -> None:
    with keeping(serve_app, tmp_path) as client:
        assert client.post("/v1/evaluate", json=matrix()).status_code == 201
        header, line, _ = client.get("/v1/export").content.splitlines()
        document = orjson.loads(line)
        document["evaluation"] |= {"id": "7zzzzzzzzzzzzzzzzzzzzzzzzz", "project": "others"}
        body = b"\n".join([header, orjson.dumps(document), b'{"end":{"lines":2}}'])
        answer = client.post(
            "/v1/import", content=body, headers={"Content-Type": "application/x-ndjson"}
        )
        assert answer.status_code == 422, answer.text
        [error] = answer.json()["errors"]
        assert error["code"] == "invalid_export"
        assert "Line 2: `/evaluation/id`: " in error["detail"]
        assert "export it again" in error["detail"]
        assert client.get("/ui/projects").status_code == 200
        assert client.get("/v1/evaluations/7zzzzzzzzzzzzzzzzzzzzzzzzz").status_code == 404


@on_sqlite
@pytest.mark.parametrize(
    "lines",
    [
        [],
        [b"not json"],
        [b"[]"],
        [b"{}"],
        [b'{"rprime_export":99}'],
        [b'{"rprime_export":"1"}'],
        [b'{"rprime_export":1}', b'{"unknown":{}}'],
        [b'{"rprime_export":1}', b"{}"],
        [b'{"rprime_export":1}', b'{"alias":{"project":"p","name":"n","evaluation":"x"}}'],
        [b'{"rprime_export":1}', b'{"looks":{"project":"p","fingerprint":"f","looks":"x"}}'],
    ],
)
def test_what_is_no_export_is_refused(store: Store, lines: list[bytes]) -> None:
    with pytest.raises(InvalidExportError):
        store.import_lines(lines)


def test_empty_lines_do_not_matter(store: Store) -> None:
    assert store.import_lines([b'{"rprime_export":1}\n', b"\n", b""]) == import_of()


def test_filters_find_what_was_imported(store: Store, other_store: Store) -> None:
    ids = fill(store)
    other_store.import_lines(store.export())
    filters = Filters(model="m", branch="b", test_set="t", verdict="pass", tag="b c")
    assert [item.id for item in other_store.page("animals", filters).items] == [ids[1]]
    assert other_store.page("animals", replace(filters, tag="b")).items == ()


def test_a_table_that_is_not_that_of_the_items_is_refused(store: Store, other_store: Store) -> None:
    items = samples.kept_items()
    samples.put(store, samples.evaluation(items=items)).result()
    header, line, end = store.export()
    document = orjson.loads(line)
    document["evaluation"]["table"]["counts"][0][0] += 1000
    with pytest.raises(InvalidExportError, match="The table is not that of the items"):
        other_store.import_lines([header, orjson.dumps(document), end])
    assert other_store.projects() == ()
    spurious = replace(table_of(items, 3), spurious=np.array([1.0, 0, 2]))
    samples.put(store, samples.evaluation(1, items=items, table=spurious)).result()
    assert other_store.import_lines(store.export()) == import_of(evaluations=2)


def test_an_export_that_was_cut_is_refused_at_its_end(store: Store, other_store: Store) -> None:
    fill(store)
    lines = list(store.export())
    for cut, why in (
        (lines[:-1], "it was cut"),
        (lines[:2] + lines[3:], "lines should come before it"),
        ([*lines, lines[1]], "after the end"),
    ):
        with pytest.raises(InvalidExportError, match=why):
            other_store.import_lines(cut)
    # What was read is there, and the whole export adds the rest.
    assert other_store.import_lines(lines).evaluations_present == 3


def test_a_project_that_does_not_exist_is_not_exported(store: Store) -> None:
    fill(store)
    with pytest.raises(ProjectMissingError):
        store.export("nope")
