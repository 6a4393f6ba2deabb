"""What this code cannot read although its checksum is right: a defect, neither damage nor a 422."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from sqlalchemy import text

from rprime.store import open_store
from rprime.store.compression import content_key, squeeze
from rprime.store.documents import enveloped
from rprime.store.errors import StoreNewerError
from tests.history_service import ServeApp, keeping
from tests.store import samples


@pytest.mark.parametrize(
    ("member", "content"),
    [
        ("gate", b'{"verdict":"pass"}'),
        ("comparison", b'{"overall":{}}'),
        ("extras", b'{"warnings":[{"unknown":1}]}'),
        ("options", b'{"options":{"unknown":1}}'),
    ],
)
def test_a_stored_document_that_does_not_fit_is_a_defect(
    serve_app: ServeApp, tmp_path: Path, member: str, content: bytes
) -> None:
    path = f"sqlite:///{tmp_path}/rprime.db"
    store = open_store(path)
    documents: dict[str, Any] = {member: content}
    evaluation = samples.evaluation(**documents)
    samples.put(store, evaluation).result()
    store.close()
    with keeping(serve_app, tmp_path, store=path) as client:
        for answer in (
            client.get(f"/v1/evaluations/{evaluation.id}/report.md"),
            client.get(f"/ui/evaluations/{evaluation.id}"),
        ):
            assert answer.status_code == 500, answer.text
        check_defect(client.get(f"/v1/evaluations/{evaluation.id}/report.md"))
        assert client.get("/readyz").json()["store"] == "ok"


def check_defect(answer: httpx.Response) -> None:
    assert (answer.status_code, answer.json()["code"]) == (500, "internal_error")


def test_content_of_another_type_under_a_right_checksum_is_a_defect(
    serve_app: ServeApp, tmp_path: Path
) -> None:
    path = tmp_path / "rprime.db"
    store = open_store(f"sqlite:///{path}")
    evaluation = samples.evaluation()
    samples.put(store, evaluation).result()
    store.close()
    key = content_key(orjson.dumps(samples.LABELS))
    with closing(sqlite3.connect(path)) as connection, connection:
        statement = "UPDATE shared SET content = ? WHERE key = ?"
        assert connection.execute(statement, (squeeze(b"5"), key)).rowcount == 1
    with keeping(serve_app, tmp_path) as client:
        check_defect(client.get(f"/v1/evaluations/{evaluation.id}"))
        assert client.get("/readyz").json()["store"] == "ok"


def test_what_a_query_says_wrongly_stays_a_problem_of_the_request(
    serve_app: ServeApp, tmp_path: Path
) -> None:
    with keeping(serve_app, tmp_path) as client:
        for path in (
            "/v1/projects/pets/evaluations?limit=0",
            "/ui/projects/pets?order=sideways",
            "/ui/projects/pets/models/m?index=nonsense",
        ):
            assert client.get(path).status_code == 422, path
        wrong = client.put("/v1/projects/pets", json={"badge_public": "yes"})
        assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (422, "/badge_public")


def test_a_document_of_a_newer_rprime_is_refused_by_name(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/rprime.db")
    evaluation = samples.evaluation(gate=b"{}")
    samples.put(store, evaluation).result()
    newer = squeeze(enveloped("gate", b"{}", version=99))
    statement = text("UPDATE evaluations SET gate = :gate")
    store.write(lambda connection: connection.execute(statement, {"gate": newer}))
    with pytest.raises(StoreNewerError, match=r"version 99, this rprime knows 3"):
        store.get(evaluation.id)
    store.close()
