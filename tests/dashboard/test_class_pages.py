"""A class of a model over its versions: which lost most for sure, since when, and into what."""

import re
from pathlib import Path

import httpx
import numpy as np

from rprime.core.catalog import CLASS_INDICES
from rprime.history.class_changes import ClassChanges
from tests.history_service import Json, ServeApp, keep, keeping

RECALL = CLASS_INDICES["recall"]


def changes(values: list[list[float]], half: list[float], reference: int = 0) -> ClassChanges:
    """Return versions of classes whose intervals are so wide at each side."""
    table, widths = np.array(values), np.array(half)
    labels = tuple(f"c{i}" for i in range(len(half)))
    return ClassChanges(RECALL, labels, table, table - widths, table + widths, reference)


def test_a_class_of_few_items_that_fell_far_does_not_lead() -> None:
    # The first fell by a half with an interval of a half, the second by a tenth for sure.
    of_both = changes([[0.9, 0.9, 0.9], [0.4, 0.8, 0.9]], [0.5, 0.01, 0.01])
    assert of_both.order == [1, 2, 0]
    assert of_both.lost[1].tolist() == [False, True, False]


def test_a_class_is_worse_since_the_first_version_of_the_last_run() -> None:
    values = [[0.9], [0.5], [0.9], [0.5], [0.4]]
    assert changes(values, [0.02]).since(0) == 3
    assert changes(values[:3], [0.02]).since(0) is None
    # Against the newest all others changed, and it did not.
    assert changes(values, [0.02], reference=4).lost[-1].tolist() == [False]


def test_small_values_of_an_error_are_good() -> None:
    error = CLASS_INDICES["false_negative_rate"]
    table = np.array([[0.1, 0.1], [0.5, 0.05]])
    of_both = ClassChanges(error, ("a", "b"), table, table - 0.01, table + 0.01, 0)
    assert of_both.order == [0, 1]
    assert of_both.lost[1].tolist() == [True, False]


def test_the_page_of_a_class_says_since_when_and_into_what(
    serve_app: ServeApp, tmp_path: Path
) -> None:
    with keeping(serve_app, tmp_path) as client:
        for version, lost in enumerate((0, 0, 30, 40), 1):
            table = [[90 - lost, 5, 5 + lost], [5, 90, 5], [5, 5, 90]]
            body: Json = {"labels": ["cat", "dog", "eel"], "confusion_matrix": table}
            keep(client, body | {"project": "p", "model": "m", "version": f"v{version}"})
        first = client.get("/v1/projects/p/evaluations").json()["items"][-1]["id"]
        champion = "/v1/projects/p/aliases/champion"
        client.put(champion, json={"evaluation": first}, headers={"If-None-Match": "*"})
        page = told(client, "cat")
        assert "Worse since v3: Recall 0.9000 in v1, champion, 0.5000 in v4." in page
        into = re.search(r"Predicted as</th>.*?<tbody>(.*?)</tbody>", page, re.DOTALL)
        assert into is not None
        rows = re.findall(r"<bdi>(\w+)</bdi></th><td class=\"n\">(\d+)</td>.*?>(\d+)<", into[1])
        assert rows == [("eel", "5", "45"), ("dog", "5", "5")]
        trend = client.get(
            "/v1/projects/p/trend", params={"model": "m", "index": "recall", "class": "cat"}
        ).json()["items"]
        assert [f"{item['value']:.4f}" for item in reversed(trend)] == re.findall(
            r'data-label="Recall"><span>([\d.]+)</span>', page
        )
        assert "Not shown to be worse in v4 than in v1, champion" in told(client, "dog")
        ways = {"class": "cow", "model": "m"}
        assert client.get("/ui/projects/p/classes", params=ways).status_code == 404
        assert client.get("/ui/projects/p/classes", params={"model": "m"}).status_code == 422


def changed_items(page: str) -> list[tuple[str, ...]]:
    """Return what items were, what they are, how many, and their places."""
    table = re.search(r"Which items changed.*?<tbody>(.*?)</tbody>", page, re.DOTALL)
    assert table is not None, page
    row = r"<tr><td><bdi>(\w+)</bdi></td><td><bdi>(\w+)</bdi></td>.*?>(\d+)<.*?>([\d, ]+)<"
    return re.findall(row, table[1])


def test_the_page_of_a_class_names_the_items_that_changed(
    serve_app: ServeApp, tmp_path: Path
) -> None:
    true = ["cat", "dog", "cat", "eel", "cat", "cat"]
    before = ["cat", "dog", "cat", "eel", "dog", "eel"]
    after = ["eel", "eel", "eel", "eel", "cat", "dog"]
    ids = ["f", "e", "d", "c", "b", "a"]
    changed = [("cat", "eel", "2", "1, 3"), ("eel", "dog", "1", "6"), ("dog", "cat", "1", "5")]
    with keeping(serve_app, tmp_path) as client:
        for model, named in (("m", {}), ("n", {"item_id": ids})):
            for version, predicted in (("v1", before), ("v2", after)):
                body: Json = {"y_true": true, "y_pred": predicted, **named}
                keep(client, body | {"project": "p", "model": model, "version": version})
        assert changed_items(told(client, "cat")) == changed
        page = told(client, "cat", "n")
        assert "sorted by <code>item_id</code>" in page
        # The last item of six is the first of those that are sorted.
        assert {row[3] for row in changed_items(page)} == {"4, 6", "1", "2"}
        only_counts = {"labels": ["cat", "dog"], "confusion_matrix": [[3, 1], [1, 3]]}
        keep(client, only_counts | {"project": "p", "model": "m", "version": "v3"})
        assert "the items of both were not stored, or differ" in told(client, "cat")


def told(client: httpx.Client, label: str, model: str = "m") -> str:
    answer = client.get("/ui/projects/p/classes", params={"model": model, "class": label})
    assert answer.status_code == 200, answer.text
    return answer.text
