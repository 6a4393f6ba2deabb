"""Which items changed against a baseline, by their ids."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import rprime
from rprime.client.clients import Client
from tests.command import Run
from tests.history_service import TRUE, Json, ServeApp, keep, keeping, predicted
from tests.http.column_bodies import as_csv, send

IDS = [f"i{place:03}" for place in range(len(TRUE))]
OLD, NEW = predicted(1, 0.2), predicted(2, 0.2)
REGION = ["EU" if place % 3 else "US" for place in range(len(TRUE))]
CANDIDATE: Json = {"item_id": IDS, "y_true": TRUE, "y_pred": NEW}
BASELINE: Json = {"item_id": IDS[::-1], "y_true": TRUE[::-1], "y_pred": OLD[::-1]}
KINDS = ("right_to_wrong", "wrong_to_right", "wrong_to_wrong")


def expected(places: Iterable[int]) -> list[Json]:
    """Find the changes item by item."""
    items = []
    for place in places:
        true, was, now = TRUE[place], OLD[place], NEW[place]
        kind = KINDS[0] if was == true else KINDS[1] if now == true else KINDS[2]
        if was != now:
            items.append({"id": IDS[place], "true": true, "was": was, "is": now, "change": kind})
    return sorted(items, key=lambda item: (KINDS.index(item["change"]), item["id"]))


ITEMS = expected(range(len(TRUE)))


@pytest.fixture
def store(serve_app: ServeApp, tmp_path: Path) -> Iterator[httpx.Client]:
    with keeping(serve_app, tmp_path) as client:
        yield client


def changed(client: httpx.Client, path: str, body: Json) -> Json:
    response = client.post(path, json=body)
    assert response.is_success, response.text
    items: Json = response.json()["changed_items"]
    return items


def test_every_changed_item_is_named_the_worse_ones_first(client: httpx.Client) -> None:
    answer = changed(
        client, "/v1/evaluate", CANDIDATE | {"baseline": BASELINE, "changed_items": True}
    )
    assert answer.pop("items") == ITEMS
    counts = {kind: sum(item["change"] == kind for item in ITEMS) for kind in KINDS}
    assert all(counts.values())
    page = {"limit": 1000, "offset": 0, "left_out": 0, "total": len(ITEMS)}
    assert answer == page | counts


def test_without_the_option_no_item_is_named(client: httpx.Client) -> None:
    for more in ({}, {"changed_items": False}):
        answer = client.post("/v1/evaluate", json=CANDIDATE | {"baseline": BASELINE} | more)
        assert "changed_items" not in answer.json()


def test_pages_join_to_the_whole_list(client: httpx.Client) -> None:
    body, items = CANDIDATE | {"baseline": BASELINE}, []
    for offset in range(0, len(ITEMS) + 30, 30):
        page = changed(
            client, "/v1/evaluate", body | {"changed_items": {"limit": 30, "offset": offset}}
        )
        assert page["left_out"] == page["total"] - len(page["items"])
        items += page["items"]
    assert items == ITEMS


def test_no_answer_names_more_than_a_thousand(client: httpx.Client) -> None:
    size = 1_500
    side = {"item_id": list(range(size)), "y_true": ["a", "b"] * (size // 2)}
    body = side | {
        "y_pred": side["y_true"],
        "baseline": side | {"y_pred": ["b", "a"] * (size // 2)},
        "changed_items": True,
    }
    answer = changed(client, "/v1/evaluate", body)
    assert (len(answer["items"]), answer["left_out"]) == (1_000, 500)
    refused = client.post("/v1/evaluate", json=body | {"changed_items": {"limit": 1_001}})
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/changed_items/limit"]


def test_compare_and_columns_and_batches_name_the_same_items(client: httpx.Client) -> None:
    option: Json = {"changed_items": True}
    sides = {"candidate": CANDIDATE, "baseline": BASELINE}
    assert changed(client, "/v1/compare", sides | option)["items"] == ITEMS
    batch = {"requests": [CANDIDATE | {"baseline": BASELINE} | option]}
    (result,) = client.post("/v1/evaluate/batch", json=batch).json()["results"]
    assert result["report"]["changed_items"]["items"] == ITEMS
    columns = CANDIDATE | {"y_pred_baseline": OLD}
    assert send(client, "csv", as_csv(columns), option).json()["changed_items"]["items"] == ITEMS
    others = CANDIDATE | {"baseline": {"y_pred": OLD}}
    assert changed(client, "/v1/evaluate", others | option)["items"] == ITEMS


def test_only_items_of_both_sides_with_one_true_class_change(client: httpx.Client) -> None:
    removed, relabelled = 5, 7
    candidate = {name: values[removed:] for name, values in CANDIDATE.items()}
    true = list(candidate["y_true"])
    true[:relabelled] = ["dog" if label == "cat" else "cat" for label in true[:relabelled]]
    body = {"candidate": candidate | {"y_true": true}, "baseline": BASELINE, "changed_items": True}
    kept = list(range(removed + relabelled, len(TRUE)))
    assert changed(client, "/v1/compare", body)["items"] == expected(kept)


def test_a_slice_has_its_own_changed_items(client: httpx.Client) -> None:
    sides = {
        "candidate": CANDIDATE | {"slices": {"region": REGION}},
        "baseline": BASELINE | {"slices": {"region": REGION[::-1]}},
    }
    body = sides | {"slice": {"region": "US"}, "changed_items": True}
    places = [place for place, region in enumerate(REGION) if region == "US"]
    assert changed(client, "/v1/compare", body)["items"] == expected(places)


def test_a_stored_side_is_matched_by_the_ids_of_the_request(store: httpx.Client) -> None:
    origin = {"project": "pets", "model": "m"}
    keep(store, BASELINE | origin | {"version": "1"})
    stored = {"version": "1", "model": "m", "project": "pets"}
    body = CANDIDATE | origin | {"version": "2", "baseline": {"version": "1"}}
    first = keep(store, body | {"changed_items": True})
    again = keep(store, body | {"changed_items": True}, status=200)
    assert first["changed_items"]["items"] == again["changed_items"]["items"] == ITEMS
    # Texts of ids are not stored.
    assert "changed_items" not in store.get(first["links"]["self"]).json()
    comparison = {"candidate": CANDIDATE, "baseline": stored, "changed_items": True}
    assert changed(store, "/v1/compare", comparison)["items"] == ITEMS
    turned = {"candidate": stored | {"version": "2"}, "baseline": BASELINE, "changed_items": True}
    assert changed(store, "/v1/compare", turned)["items"] == ITEMS


def test_what_cannot_be_matched_is_null_with_a_warning(store: httpx.Client) -> None:
    origin = {"project": "pets", "model": "m"}
    keep(store, BASELINE | origin | {"version": "1", "keep_items": False})
    body = CANDIDATE | origin | {"baseline": {"version": "1"}, "changed_items": True}
    answers = [keep(store, body | {"version": "2"})]
    few = {"item_id": IDS[:40], "y_true": TRUE[:40], "y_pred": NEW[:40]}
    sides = {"candidate": few, "baseline": BASELINE, "changed_items": True}
    answers.append(store.post("/v1/compare", json=sides).json())
    for answer in answers:
        assert answer["changed_items"] is None
        assert "changed_items_unknown" in [warning["code"] for warning in answer["warnings"]]


BARE = {"y_true": TRUE, "y_pred": NEW}


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("/v1/evaluate", CANDIDATE, "needs_baseline"),
        ("/v1/evaluate", BARE | {"baseline": {"y_pred": OLD}}, "no_item_ids"),
        ("/v1/evaluate", CANDIDATE | {"baseline": BARE}, "no_item_ids"),
        ("/v1/compare", {"candidate": BARE, "baseline": BASELINE}, "no_item_ids"),
        (
            "/v1/compare",
            {"candidate": CANDIDATE, "baseline": {"confusion_matrix": [[1, 0], [0, 1]]}},
            "no_item_ids",
        ),
    ],
)
def test_a_request_without_what_it_takes_is_told(
    client: httpx.Client, path: str, body: Json, code: str
) -> None:
    response = client.post(path, json=body | {"changed_items": True})
    assert response.status_code == 422
    (error,) = response.json()["errors"]
    assert (error["pointer"], error["code"]) == ("/changed_items", code)


def test_two_stored_sides_have_no_texts_of_ids(store: httpx.Client) -> None:
    for version, side in (("1", BASELINE), ("2", CANDIDATE)):
        keep(store, side | {"project": "pets", "version": version})
    sides: dict[str, Any] = {
        name: {"version": version, "project": "pets"}
        for name, version in (("candidate", "2"), ("baseline", "1"))
    }
    response = store.post("/v1/compare", json=sides | {"changed_items": True})
    assert response.status_code == 422
    (error,) = response.json()["errors"]
    assert "send one side as items with `item_id`" in error["detail"]


def test_python_names_the_same_items(server: str) -> None:
    baseline: Any = BASELINE
    here = rprime.evaluate(TRUE, NEW, item_id=IDS, baseline=baseline, changed_items=True)
    with Client(server) as client:
        there = client.compare(
            {"item_id": IDS, "y_true": TRUE, "y_pred": NEW}, baseline, changed_items=True
        )
    assert here.changed_items is not None
    assert here.changed_items == there.changed_items
    first = here.changed_items.items[0]
    assert first.model_dump(by_alias=True) == ITEMS[0]


@pytest.mark.parametrize("command", ["evaluate", "compare"])
@pytest.mark.parametrize("asks", [False, True])
def test_the_command_writes_the_items_to_a_file(
    rprime: Run, server: str, tmp_path: Path, command: str, *, asks: bool
) -> None:
    files = [tmp_path / f"{name}.csv" for name in ("new", "old", "changed")]
    for file, side in zip(files, (CANDIDATE, BASELINE), strict=False):
        file.write_bytes(as_csv(side))
    new, old, output = map(str, files)
    sides = [new, old] if command == "compare" else [new, "--baseline", old]
    done = rprime(command, *sides, "--changed", output, *(("--server", server) if asks else ()))
    assert done.returncode == 0, done.stderr
    lines = [",".join(item.values()) for item in ITEMS]
    assert files[2].read_text().splitlines() == ["item_id,y_true,was,is,change", *lines]
