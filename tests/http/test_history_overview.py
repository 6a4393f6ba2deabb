"""What the pages list of a history: the values that the reports have, in the order asked for."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rprime.dashboard.listings import HEADLINES, NEWEST_FIRST, ListingRow, listing
from rprime.dashboard.overview import overview, sparkline
from rprime.history.series import Point
from rprime.report.class_selection import Order
from rprime.store import Filters, InvalidCursorError, Store, open_store
from tests.history_service import Json, ServeApp, keep, keeping, matrix

FAILING = [{"index": "accuracy", "min_value": 0.99}]
FOX: Json = {"confusion_matrix": [[80, 10], [5, 90]], "labels": ["eel", "fox"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def reports(serve_app: ServeApp, folder: Path) -> list[Json]:
    """Keep some evaluations; their reports, oldest first."""
    requests = [
        matrix(errors, model="ab"[number % 2], version=str(number), indices=None)
        for number, errors in enumerate((5, 2, 9, 4))
    ]
    requests.append(matrix(**FOX, model="a", gates={"rules": FAILING}, indices=None))
    requests.append(matrix(project="others", indices=None))
    with keeping(serve_app, folder) as client:
        return [keep(client, request) for request in requests]


@pytest.fixture(scope="module")
def store(reports: list[Json], folder: Path) -> Iterator[Store]:
    assert reports
    store = open_store(f"sqlite:///{folder}/rprime.db", read_only=True)
    yield store
    store.close()


def value_of(report: Json, key: str) -> Any:
    return report["overall"][key]["value"]


# Lists


Part = tuple[list[ListingRow], str | None]


def listed(store: Store, order: Order, limit: int = 10, cursor: str | None = None) -> Part:
    return listing(store, "pets", Filters(), order, limit=limit, cursor=cursor)


def versions(part: Part) -> list[str | None]:
    return [summary.version for summary, _ in part[0]]


def test_a_row_has_the_headlines_of_the_report(store: Store, reports: list[Json]) -> None:
    rows, _ = listed(store, NEWEST_FIRST)
    assert [summary.id for summary, _ in rows] == [r["id"] for r in reversed(reports[:5])]
    for (_, points), report in zip(rows, reversed(reports[:5]), strict=True):
        for key, point in zip(HEADLINES, points, strict=True):
            assert point.value == pytest.approx(value_of(report, key), abs=1e-12)
            assert point.interval == pytest.approx(report["overall"][key]["interval"], abs=1e-12)


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("date", ["0", "1", "2", "3", None]),
        ("-version", ["3", "2", "1", "0", None]),
        ("model", [None, "2", "0", "3", "1"]),
        ("-r_prime", ["1", "3", None, "0", "2"]),
        ("kappa", ["2", None, "0", "3", "1"]),
        ("verdict", [None, "3", "2", "1", "0"]),
    ],
)
def test_a_list_is_ordered(store: Store, order: str, expected: list[Any]) -> None:
    assert versions(listed(store, Order(order))) == expected


@pytest.mark.parametrize("order", [NEWEST_FIRST, Order("-r_prime"), Order("date")])
def test_parts_of_a_list_make_the_whole(store: Store, order: Order) -> None:
    names: list[str | None] = []
    cursor = None
    while True:
        part = listed(store, order, limit=2, cursor=cursor)
        names += versions(part)
        cursor = part[1]
        if cursor is None:
            break
    assert names == versions(listed(store, order))
    with pytest.raises(InvalidCursorError):
        listed(store, order, cursor="elsewhere")


def test_models_come_with_their_newest_evaluation(store: Store, reports: list[Json]) -> None:
    page = overview(store, store.projects())
    newest = [(line["project"], line["model"], line["entry"]["id"]) for line in page["lines"]]
    assert newest == [
        ("pets", "a", reports[4]["id"]),
        ("others", None, reports[5]["id"]),
        ("pets", "b", reports[3]["id"]),
    ]
    assert page["lines"][0]["entry"]["verdict"].word == "failed"
    for line, report in zip(page["lines"], (reports[4], reports[5], reports[3]), strict=True):
        assert line["cell"]["value"] == f"{value_of(report, 'r_prime'):.4f}"
    drawn = [line["sparkline"] and len(line["sparkline"]["places"]) for line in page["lines"]]
    assert drawn == [3, None, 2]


def test_a_line_is_as_high_as_its_values_are_apart() -> None:
    def places(values: list[float]) -> list[float]:
        like = Point("i", None, None, None, None, None, None, None, "", classified_only=False)
        points = [like._replace(value=value) for value in values]
        line = sparkline(points)
        assert line is not None
        return [y for _, y, _ in line["places"]]

    assert places([0.2, 0.9]) == [100, 0]
    # Close values stay close: the line is at least 0.05 high.
    assert places([0.5, 0.51]) == [60, 40]
    assert places([0.5, 0.5]) == [50, 50]
    assert sparkline([]) is None


def test_values_on_the_classified_items_alone_are_marked(
    serve_app: ServeApp, tmp_path: Path
) -> None:
    with keeping(serve_app, tmp_path) as client:
        keep(client, matrix(1, project="whole", model="a"))
        for path in ("projects/whole", "projects/whole/models/a?overall=kappa"):
            assert "†" not in client.get(f"/ui/{path}").text
        report = keep(client, matrix(1, model="a", indices=None, unclassified=[30, 0, 0]))
        kappa = f"{report['overall']['kappa']['value']:.4f}"
        page = client.get("/ui/projects/pets").text
        assert f"{kappa}†" in page
        assert f"{report['overall']['r_prime']['value']:.4f}†" not in page
        assert "† only on the classified items" in page
        page = client.get("/ui/projects/pets/models/a?overall=kappa").text
        assert f"{kappa}†" in page
        assert "† only on the classified items" in page
