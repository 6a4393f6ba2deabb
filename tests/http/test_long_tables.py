"""Counts of pairs in long form are never read as single items."""

import httpx
import pandas as pd
import pytest

import rprime
from tests.http.column_bodies import WRITERS, Columns, Json, send

TABLE = {"Prediction": ["a", "b", "a", "b"], "Truth": ["a", "a", "b", "b"]}
COUNTS = [50, 1, 3, 46]
CHOICE = {"columns": {"y_true": "Truth", "y_pred": "Prediction"}}


def posted(
    client: httpx.Client, kind: str, columns: Columns, request: Json | None = None
) -> httpx.Response:
    return send(client, kind, WRITERS[kind](columns), request)


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("name", ["Freq", "n", "count", "Count", "COUNT(*)"])
def test_a_column_of_counts_beside_labels_is_asked_about(
    client: httpx.Client, kind: str, name: str
) -> None:
    answer = posted(client, kind, {**TABLE, name: COUNTS}, CHOICE)
    (fault,) = answer.json()["errors"]
    assert (answer.status_code, fault["code"]) == (422, "long_table")
    assert f'frame.pivot_table("{name}", "Truth", "Prediction", "sum", 0)' in fault["detail"]


def test_names_of_the_service_need_no_choice(client: httpx.Client) -> None:
    columns = {"y_true": TABLE["Truth"], "y_pred": TABLE["Prediction"], "n": COUNTS}
    assert posted(client, "csv", columns).json()["errors"][0]["code"] == "long_table"


def test_what_the_message_advises_gives_the_right_value() -> None:
    frame = pd.DataFrame({**TABLE, "Freq": COUNTS})
    table = frame.pivot_table("Freq", "Truth", "Prediction", "sum", 0)
    report = rprime.evaluate(confusion_matrix=table)
    assert report.overall["accuracy"].value == pytest.approx(0.96)
    assert report.per_class["a"]["recall"].value == pytest.approx(50 / 51)


@pytest.mark.parametrize("more", [{"Freq": COUNTS, "id": COUNTS}, {"score": COUNTS}, {}])
def test_other_columns_are_not_taken_for_counts(
    client: httpx.Client, more: dict[str, list[int]]
) -> None:
    assert posted(client, "csv", {**TABLE, **more}, CHOICE).status_code == 200
