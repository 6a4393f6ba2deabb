"""The history over HTTP: lists, reports, renderings, aliases, retention, moving house."""

import json
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from rprime.auth import keys
from tests.history_service import Json, ServeApp, keep, keeping, labels, matrix

RULES = [{"index": "accuracy", "min_value": 0.5}]
FAILING = [{"index": "accuracy", "min_value": 0.99}]


@pytest.fixture
def client(serve_app: ServeApp, tmp_path: Path) -> Iterator[httpx.Client]:
    with keeping(serve_app, tmp_path) as client:
        yield client


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def listed(client: httpx.Client, **query: object) -> list[str]:
    params = {name: str(value) for name, value in query.items()}
    page = client.get("/v1/projects/pets/evaluations", params=params)
    assert page.status_code == 200, page.text
    return [item["version"] for item in page.json()["items"]]


# Lists


def test_a_list_is_newest_first_and_filtered(client: httpx.Client) -> None:
    keep(client, matrix(1, version="1", model="a", branch="main", tags=["x", "y"]))
    keep(client, matrix(2, version="2", model="b", test_set={"id": "t"}))
    keep(client, matrix(3, version="3", model="a", gates={"rules": FAILING}))
    assert listed(client) == ["3", "2", "1"]
    assert listed(client, model="a") == ["3", "1"]
    assert listed(client, version="2") == listed(client, test_set="t") == ["2"]
    assert listed(client, verdict="fail") == ["3"]
    assert listed(client, branch="main") == listed(client, tag="y") == ["1"]
    assert listed(client, since="2999-01-01T00:00:00Z") == []
    assert listed(client, since="2000-01-01") == ["3", "2", "1"]


def test_pages_follow_one_another(client: httpx.Client) -> None:
    for number in range(5):
        keep(client, matrix(number, version=str(number)))
    versions: list[str] = []
    cursor: str | None = None
    while True:
        params = {"limit": "2", **({"cursor": cursor} if cursor else {})}
        page = client.get("/v1/projects/pets/evaluations", params=params).json()
        versions += [item["version"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert versions == ["4", "3", "2", "1", "0"]


def test_a_cursor_is_a_moment_for_any_filter_and_project(client: httpx.Client) -> None:
    for number, branch in enumerate(("main", "side", "main", "side")):
        for project in ("pets", "birds"):
            keep(client, matrix(1, project, version=str(number), branch=branch))
    path = "/v1/projects/{}/evaluations"
    cursor = client.get(path.format("birds"), params={"limit": 2}).json()["next_cursor"]
    assert listed(client, cursor=cursor) == ["2", "1", "0"]
    assert listed(client, cursor=cursor, branch="main") == ["2", "0"]


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ("limit=201", "/query/limit"),
        ("limit=0", "/query/limit"),
        ("cursor=x", "/query/cursor"),
        ("verdict=failed", "/query/verdict"),
        ("since=yesterday", "/query/since"),
        ("since=0.5", "/query/since"),
        ("modle=a", "/query/modle"),
    ],
)
def test_a_list_refuses_what_it_does_not_know(
    client: httpx.Client, query: str, pointer: str
) -> None:
    keep(client, matrix())
    response = client.get(f"/v1/projects/pets/evaluations?{query}")
    assert response.status_code == 422
    assert [error["pointer"] for error in response.json()["errors"]] == [pointer]


@pytest.mark.parametrize(
    "path",
    ["/v1/projects/pets/evaluations?limit=1&limit=2", "/v1/evaluations/0?include=table&include=",
     "/v1/projects/pets/trend?index=kappa&index=mcc", "/v1/export?project=a&project=b",
     "/v1/projects/pets/figures/trend.svg?index=mcc&class=cat&index=kappa&class=dog",
     "/ui/projects/pets?model=a&model=b"],
)  # fmt: skip
def test_a_repeated_parameter_is_refused(client: httpx.Client, path: str) -> None:
    answer = client.get(path, headers={"Accept": "application/json"})
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert (error["pointer"], error["code"]) == ("/query", "repeated_parameter")
    assert f"Parameter {path.count('&') + 1} " in error["detail"]


def test_a_parameter_that_is_a_list_is_repeated(client: httpx.Client) -> None:
    keep(client, matrix())
    answer = client.get("/v1/projects/pets/figures/lines.svg?index=recall&index=roc_auc")
    # Both are read: the second one needs scores.
    assert answer.json()["errors"][0]["pointer"] == "/query/index"


def test_projects_are_listed_with_their_counts(client: httpx.Client) -> None:
    keep(client, matrix(1))
    newest = keep(client, matrix(2))["id"]
    keep(client, matrix(3, project="others"))
    project = client.get("/v1/projects").json()["items"][1]
    assert project.pop("bytes") > 0
    assert project == {
        "name": "pets",
        "evaluations": 2,
        "newest": newest,
        "badge_public": False,
        "keeps_slices": True,
    }
    assert client.delete("/v1/projects/others").status_code == 204
    assert client.delete("/v1/projects/others").status_code == 404
    assert [p["name"] for p in client.get("/v1/projects").json()["items"]] == ["pets"]


@pytest.mark.parametrize(
    "path",
    [
        "/v1/projects/pets/evaluations",
        "/v1/projects/pets/aliases",
        "/v1/projects/pets/aliases/main",
        "/v1/projects/pets/trend?index=accuracy",
        "/v1/projects/pets/leaderboard?index=accuracy",
        "/v1/projects/pets/badge.svg",
        "/v1/evaluations/01k9d3hv5gw2zj4t8x6c7m1n0p",
        "/v1/evaluations/x/verdict",
        "/v1/evaluations/x/report.md",
    ],
)
def test_what_is_not_there_is_not_found(
    client: httpx.Client, serve_app: ServeApp, tmp_path: Path, path: str
) -> None:
    assert client.get(path).json()["code"] == "not_found"
    with keeping(serve_app, tmp_path, store="none") as stateless:
        assert stateless.get(path).json()["code"] == "no_store"


# Reports


@pytest.mark.parametrize(
    "content",
    [
        matrix(version="1", beta=2.0, confidence=0.9, exact=True, undefined="zero"),
        matrix(gates={"rules": RULES}, baseline={"confusion_matrix": [[9, 1], [2, 8]]}),
        labels(sample_weight=[1.5] * 400),
        labels(groups=[i // 4 for i in range(400)]),
        matrix(
            indices=["weighted_kappa", "expected_cost"],
            kappa_weights="linear",
            cost=[[0, 1, 2], [1, 0, 1], [3, 1, 0]],
            cell_weights=[[1, 0.5, 1], [1, 1, 1], [1, 1, 2]],
        ),
        matrix(unclassified=[1, 2, 3], spurious=[0, 1, 0], source="https://ci/1", tags=["a"]),
        {"cells": [[0, 0, 5], [1, 2, 3]], "labels": ["a", "b", "c"], "project": "pets"},
    ],
)
def test_what_is_found_is_what_was_answered(client: httpx.Client, content: Json) -> None:
    made = client.post("/evaluate?include=table", json=content)
    assert made.status_code == 201, made.text
    answer = client.get(made.headers["location"] + "?include=table")
    assert answer.content == made.content


def test_a_comparison_is_found_as_it_was_given(client: httpx.Client) -> None:
    old = keep(client, labels(version="1"))
    rules = [{"index": "recall", "classes": "all", "max_drop": 0.02}]
    content = labels(2, 0.3, version="2", baseline={"version": "1"}, gates={"rules": rules})
    made = client.post("/evaluate", json=content)
    assert made.headers["evaluation-verdict"] == "fail"
    path = made.headers["location"]
    shown = {
        media: client.get(path, headers={"Accept": media})
        for media in ("text/markdown", "text/html", "text/csv", "application/xml")
    }
    assert client.delete(f"/v1/evaluations/{old['id']}").status_code == 204
    assert client.get(path).content == made.content
    assert client.get(path).headers["evaluation-verdict"] == "fail"
    suffixes = {"text/markdown": "md", "text/html": "html", "text/csv": "csv"}
    for media, answer in shown.items():
        assert answer.status_code == 200, answer.text
        suffix = suffixes.get(media, "junit.xml")
        kept = client.get(f"{path}/report.{suffix}")
        assert kept.headers["content-type"] == answer.headers["content-type"]
        assert kept.content == answer.content
    page = shown["text/html"]
    assert "style-src" in page.headers["content-security-policy"]


def test_a_first_rendering_is_that_of_what_was_kept(client: httpx.Client) -> None:
    """Rendered from what was computed, and again from what was stored."""
    keep(client, labels(version="1"))
    rules = [{"index": "accuracy", "max_drop": 0.02, "id": "drop"}]
    content = labels(2, 0.2, version="2", baseline={"version": "1"}, gates={"rules": rules})
    for media, suffix in (
        ("text/markdown", "md"),
        ("text/csv", "csv"),
        ("text/html", "html"),
        ("application/xml", "junit.xml"),
        ("application/openmetrics-text", "openmetrics.txt"),
    ):
        content["commit"] = suffix.replace(".", "")
        content["model"] = suffix.replace(".", "")
        content["baseline"] = {"version": "1"}
        made = client.post("/v1/evaluate", json=content, headers={"Accept": media})
        assert made.status_code == 201
        kept = client.get(f"{made.headers['location']}/report.{suffix}")
        assert kept.content == made.content, suffix


def test_a_report_is_reduced_to_what_is_asked_for(client: httpx.Client) -> None:
    path = keep(client, matrix(indices=["accuracy", "recall", "macro_recall"]))["links"]["self"]
    whole = client.get(path).json()
    assert "table" not in whole
    assert client.get(f"{path}?include=table").json().keys() == whole.keys() | {"table"}
    part = client.get(f"{path}?include=per_class,averages").json()
    assert set(part["overall"]) == {"macro_recall"}
    assert part["per_class"] == whole["per_class"]
    assert not {"warnings", "top_confusions"} & part.keys()
    assert client.get(f"{path}?include=everything").status_code == 422


def test_a_report_has_a_strong_etag(client: httpx.Client) -> None:
    path = keep(client, matrix())["links"]["self"]
    etag = client.get(path, headers={"Accept-Encoding": "identity"}).headers["etag"]
    assert not etag.startswith("W/")
    assert client.get(path).headers["etag"] == f"W/{etag}"  # compressed
    again = client.get(path, headers={"If-None-Match": f'"x", {etag}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
    assert client.get(f"{path}?include=table").headers["etag"] != etag
    assert client.get(f"{path}/report.md").headers["etag"] != etag
    as_csv = client.get(path, headers={"If-None-Match": etag, "Accept": "text/csv"})
    assert as_csv.status_code == 200


@pytest.mark.parametrize("where", ["kept", "evaluate"])
def test_the_rendering_that_is_wanted_most_is_given(client: httpx.Client, where: str) -> None:
    path = keep(client, matrix())["links"]["self"]

    def asked(accept: str) -> httpx.Response:
        headers = {"Accept": accept}
        if where == "kept":
            return client.get(path, headers=headers)
        return client.post("/evaluate", json=matrix(project=None), headers=headers)

    for accept, media in (
        ("*/*", "application/json"),
        ("application/*", "application/json"),
        ("text/csv;q=0.5, text/markdown", "text/markdown; charset=utf-8"),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html"),
        ("text/csv", "text/csv; header=present; charset=utf-8"),
    ):
        answer = asked(accept)
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith(media), accept
    for accept in ("image/png", "application/json;q=0", "nonsense"):
        assert asked(accept).json()["code"] == "not_acceptable"


def test_a_verdict_is_one_word(client: httpx.Client) -> None:
    for rules, word in ((RULES, "pass"), (FAILING, "fail"), (None, "no_gate")):
        gates: Json = {} if rules is None else {"gates": {"rules": rules}}
        content = matrix(model=word) | gates
        answer = client.get(keep(client, content)["links"]["self"] + "/verdict")
        assert answer.text == word
        assert answer.headers["content-type"].startswith("text/plain")


# Aliases


def test_an_alias_changes_only_for_who_knows_it(client: httpx.Client) -> None:
    first, two = (keep(client, matrix(errors))["id"] for errors in (1, 2))
    path = "/v1/projects/pets/aliases/champion"

    def put(evaluation: str, **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return client.put(path, json={"evaluation": evaluation}, headers=named)

    assert put(first).json()["code"] == "precondition_required"
    assert put(first, If_Match="*").status_code == 412
    made = put(first, If_None_Match="*")
    assert (made.status_code, made.headers["location"]) == (201, path)
    assert put(two, If_None_Match="*").status_code == 412
    etag = made.headers["etag"]
    assert client.get(path).headers["etag"] == etag
    assert client.get(path).json()["evaluation"] == first
    moved = put(two, If_Match=etag)
    assert moved.status_code == 200
    late = put(first, If_Match=etag)
    assert (late.status_code, late.headers["etag"]) == (412, moved.headers["etag"])
    assert put(first, If_Match=f"W/{moved.headers['etag']}").status_code == 412
    assert [a["alias"] for a in client.get("/v1/projects/pets/aliases").json()["items"]] == [
        "champion"
    ]
    held = client.delete(f"/v1/evaluations/{two}")
    assert (held.status_code, held.json()["code"]) == (409, "evaluation_aliased")
    assert client.delete(path, headers={"If-Match": etag}).status_code == 412
    assert client.delete(path).json()["code"] == "precondition_required"
    assert client.delete(path, headers={"If-Match": "*"}).status_code == 204
    assert client.delete(path, headers={"If-Match": "*"}).status_code == 412
    assert client.delete(f"/v1/evaluations/{two}").status_code == 204


def test_the_changes_of_an_alias_are_listed(client: httpx.Client) -> None:
    made = [keep(client, matrix(n, model="svc", version=f"v{n}")) for n in (1, 2)]
    path = "/v1/projects/pets/aliases/champion"
    assert client.get(f"{path}/history").status_code == 404
    answers = [
        client.put(path, json={"evaluation": report["id"]}, headers={condition: "*"})
        for report, condition in zip(made, ("If-None-Match", "If-Match"), strict=True)
    ]
    assert all(put.is_success for put in answers)
    items = client.get(f"{path}/history").json()["items"]
    assert items[0]["changed_at"] == answers[-1].json()["updated_at"]
    versions = [{"model": "svc", "version": v, "by": None} for v in ("v2", "v1")]
    expected = [
        {"evaluation": report["id"]} | v for report, v in zip(made[::-1], versions, strict=True)
    ]
    assert [{k: v for k, v in item.items() if k != "changed_at"} for item in items] == expected
    assert client.delete(path, headers={"If-Match": "*"}).status_code == 204
    assert client.get(f"{path}/history").json()["items"][0]["evaluation"] is None


def test_of_two_promotions_at_once_one_is_too_late(client: httpx.Client) -> None:
    ids = [keep(client, matrix(errors))["id"] for errors in range(8)]
    path = "/v1/projects/pets/aliases/main"

    def put(identifier: str) -> int:
        headers = {"If-None-Match": "*"}
        return client.put(path, json={"evaluation": identifier}, headers=headers).status_code

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(put, ids)) == [201, *[412] * 7]


def test_an_alias_points_at_an_evaluation_of_its_project(client: httpx.Client) -> None:
    other = keep(client, matrix(project="others"))["id"]
    headers = {"If-None-Match": "*"}
    for target, name in ((other, "main"), ("nothing", "main"), (other, "-x")):
        answer = client.put(
            f"/v1/projects/pets/aliases/{name}", json={"evaluation": target}, headers=headers
        )
        assert answer.status_code == 422, answer.text


def test_an_alias_is_a_baseline(client: httpx.Client) -> None:
    old = keep(client, matrix(1))["id"]
    headers = {"If-None-Match": "*"}
    client.put("/v1/projects/pets/aliases/champion", json={"evaluation": old}, headers=headers)
    report = keep(client, matrix(2, baseline={"alias": "champion"}))
    assert report["comparison"]["baseline"] == {
        "requested": {"alias": "champion"},
        "resolved": old,
        "why": "The alias `champion` points at it.",
    }


# Comparison of what is kept


def test_two_kept_evaluations_are_compared(client: httpx.Client) -> None:
    old = keep(client, labels(1, version="1"))["id"]
    new = keep(client, labels(2, version="2"))["id"]
    pairs: list[Json] = [
        {"candidate": {"evaluation": new}, "baseline": {"evaluation": old}},
        {"candidate": {"evaluation": new}, "baseline": {"version": "1"}},
    ]
    answers = [client.post("/v1/compare", json=pair).json() for pair in pairs]
    assert [a["comparison"]["baseline"]["resolved"] for a in answers] == [old, old]
    assert {a["comparison"]["pairing"] for a in answers} == {"paired"}
    inline = {"y_true": labels()["y_true"], "y_pred": labels(3)["y_pred"]}
    mixed = {"candidate": inline, "baseline": {"evaluation": old}}
    assert client.post("/v1/compare", json=mixed).json()["comparison"]["pairing"] == "paired"
    mixed = {"candidate": {"evaluation": old}, "baseline": inline}
    assert client.post("/v1/compare", json=mixed).json()["comparison"]["pairing"] == "paired"


def test_what_is_not_kept_cannot_be_compared(client: httpx.Client) -> None:
    old = keep(client, matrix(version="1"))["id"]
    table = {"confusion_matrix": [[5, 1], [2, 7]]}
    for wrong, pointer in (
        ({"candidate": {"evaluation": old, **table}, "baseline": table}, "/candidate"),
        ({"candidate": table, "baseline": {"version": "1"}}, "/baseline"),
        ({"candidate": {"version": "1"}, "baseline": table}, "/candidate"),
    ):
        refused = client.post("/v1/compare", json=wrong)
        assert refused.status_code == 422, refused.text
        assert refused.json()["errors"][0]["pointer"] == pointer


# Retention, and moving


def test_a_purge_keeps_what_it_is_told_to(client: httpx.Client) -> None:
    ids = [keep(client, matrix(errors))["id"] for errors in range(6)]
    headers = {"If-None-Match": "*"}
    client.put("/v1/projects/pets/aliases/old", json={"evaluation": ids[0]}, headers=headers)

    def purge(**body: object) -> Json:
        answer = client.post("/v1/projects/pets/purge", json=body)
        summary: Json = answer.json()
        return summary

    counts = {"deleted": 3, "kept": 3, "aliased": 1}
    assert purge(keep_last=2, dry_run=True) == {**counts, "dry_run": True}
    assert len(client.get("/v1/projects/pets/evaluations").json()["items"]) == 6
    assert purge(keep_last=2) == {**counts, "dry_run": False}
    left = client.get("/v1/projects/pets/evaluations").json()["items"]
    assert [item["id"] for item in left] == [ids[5], ids[4], ids[0]]
    assert purge(newer_than_days=1)["deleted"] == 0
    assert purge()["status"] == 422
    assert client.post("/v1/projects/none/purge", json={"keep_last": 1}).status_code == 404


def test_a_history_moves_house(client: httpx.Client, serve_app: ServeApp, tmp_path: Path) -> None:
    old = keep(client, labels(1, version="1"))["id"]
    report = keep(client, labels(2, version="2", baseline={"version": "1"}))
    keep(client, matrix(project="others"))
    headers = {"If-None-Match": "*"}
    client.put("/v1/projects/pets/aliases/main", json={"evaluation": old}, headers=headers)
    exported = client.get("/v1/export")
    assert exported.headers["content-type"] == "application/x-ndjson"
    lines = [json.loads(line) for line in exported.content.splitlines()]
    assert lines[0]["rprime_export"] == 3
    assert lines[-1] == {"end": {"lines": len(lines) - 1}}
    assert client.get("/v1/export?project=nope").status_code == 404
    export = client.get("/v1/export?project=others").content.splitlines()
    assert sum(b'"evaluation"' in line[:20] for line in export) == 1
    ndjson = {"Content-Type": "application/x-ndjson"}
    (tmp_path / "other").mkdir()
    with keeping(serve_app, tmp_path / "other") as other:
        for there in (0, 3):
            answer = other.post("/v1/import", content=exported.content, headers=ndjson)
            assert answer.status_code == 200, answer.text
            assert answer.json()["evaluations_present"] == there
        assert other.get(report["links"]["self"]).json() == report
        paired = keep(other, labels(3, version="3", baseline={"alias": "main"}))
        assert paired["comparison"]["pairing"] == "paired"
        broken = exported.content[: len(exported.content) // 2]
        refused = other.post("/v1/import", content=broken, headers=ndjson)
        assert refused.json()["errors"][0]["code"] == "invalid_export"
        cut = other.post("/v1/import", content=b"\n".join(export[:-1]), headers=ndjson)
        assert "ends without its last line: it was cut" in cut.json()["errors"][0]["detail"]
        for content, type_, status in (
            (b"", "application/x-ndjson", 422),
            (b"{}", "application/json", 415),
        ):
            headers = {"Content-Type": type_}
            assert other.post("/v1/import", content=content, headers=headers).status_code == status


@pytest.mark.parametrize("name", ["my%20shop", "%2e%2e", "x" * 129, "%F0%9F%90%B1"])
def test_a_new_name_in_a_path_follows_the_rule_of_names(client: httpx.Client, name: str) -> None:
    identifier = keep(client, matrix())["id"]
    for path, body in (
        (f"/v1/projects/{name}", {"badge_public": True}),
        (f"/v1/projects/pets/aliases/{name}", {"evaluation": identifier}),
    ):
        answer = client.put(path, json=body, headers={"If-None-Match": "*"})
        [error] = answer.json()["errors"]
        assert (answer.status_code, error["pointer"][:6]) == (422, "/path/")
        member = error["pointer"].rpartition("/")[2]
        assert error["detail"].startswith(f"`{member}` ")
    assert len(client.get("/v1/projects").json()["items"]) == 1


# Who may


@pytest.fixture
def keyed(serve_app: ServeApp, tmp_path: Path) -> Iterator[httpx.Client]:
    with keeping(serve_app, tmp_path, keys_file=tmp_path / "keys.json") as client:
        yield client


def test_another_project_is_as_if_it_were_not_there(keyed: httpx.Client, tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    _, admin = keys.create(path, ["admin"])
    _, mine = keys.create(path, ["evaluate", "write"], project="mine")
    keyed.headers["X-Request-Id"] = "r"
    theirs = keyed.post("/evaluate", json=matrix(project="theirs"), headers=bearer(admin)).json()
    report = keyed.post("/evaluate", json=matrix(project="mine"), headers=bearer(mine)).json()
    gone = "01k9d3hv5gw2zj4t8x6c7m1n0p"
    for method, suffix in (("GET", ""), ("DELETE", ""), ("GET", "/verdict"), ("GET", "/report.md")):
        answers = [
            keyed.request(method, f"/v1/evaluations/{name}{suffix}", headers=bearer(mine))
            for name in (theirs["id"], gone)
        ]
        assert answers[0].status_code == answers[1].status_code == 404
        assert answers[0].content == answers[1].content
        assert answers[0].headers.keys() == answers[1].headers.keys()
    refused = keyed.post("/evaluate", json=matrix(project="theirs"), headers=bearer(mine))
    assert refused.json()["code"] == "not_found"
    listed = keyed.get("/v1/projects", headers=bearer(mine)).json()["items"]
    assert [project["name"] for project in listed] == ["mine"]
    table = {"confusion_matrix": [[5, 1], [2, 7]]}
    compared = [
        keyed.post(
            "/v1/compare",
            json={"candidate": table, "baseline": {"evaluation": name}},
            headers=bearer(mine),
        ).content
        for name in (theirs["id"], gone)
    ]
    assert compared[0] == compared[1]
    assert keyed.get(report["links"]["self"], headers=bearer(mine)).status_code == 200
    assert keyed.get("/v1/export", headers=bearer(mine)).status_code == 403


def test_a_badge_is_public_where_the_project_says_so(keyed: httpx.Client, tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    _, token = keys.create(path, ["evaluate", "write"], project="pets")
    content = matrix(gates={"rules": FAILING})
    keyed.post("/evaluate", json=content, headers=bearer(token))
    badge = "/v1/projects/pets/badge"
    assert keyed.get(f"{badge}.svg").status_code == 401
    assert keyed.get("/v1/projects/none/badge.svg").status_code == 401
    private = keyed.get(f"{badge}.svg", headers=bearer(token))
    assert private.headers["cache-control"].startswith("private")
    settings = {"badge_public": True}
    assert keyed.put("/v1/projects/pets", json=settings).status_code == 401
    assert keyed.put("/v1/projects/pets", json=settings, headers=bearer(token)).status_code == 204
    public = keyed.get(f"{badge}.svg")
    assert public.status_code == 200
    assert public.headers["content-type"] == "image/svg+xml"
    assert public.headers["cache-control"] == "public, max-age=60"
    assert "fail" in public.text
    data = keyed.get(f"{badge}.json?index=accuracy").json()
    assert (data["label"], data["message"]) == ("Accuracy", "0.9000")
    assert keyed.get(f"{badge}.json?index=accuracy&class=cat").status_code == 422
    assert keyed.get(f"{badge}.json?index=recall&class=cat").json()["message"] == "0.9000"
    assert keyed.get("/v1/projects/pets/evaluations").status_code == 401


def test_keys_of_idempotency_belong_to_keys_of_access(keyed: httpx.Client, tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    for number in range(2):
        _, token = keys.create(path, ["evaluate"])
        headers = {**bearer(token), "Idempotency-Key": "k"}
        answer = keyed.post("/evaluate", json=matrix(number), headers=headers)
        assert answer.status_code == 201


# Trouble


def test_a_locked_file_is_told(serve_app: ServeApp, tmp_path: Path) -> None:
    with keeping(serve_app, tmp_path, store_lock_seconds=0.2) as client:
        path = keep(client, matrix())["links"]["self"]
        with closing(sqlite3.connect(tmp_path / "rprime.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            answer = client.post("/evaluate", json=matrix(7))
            assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable")
            assert int(answer.headers["retry-after"]) > 0
            assert client.get(path).status_code == 200
            assert client.get("/livez").status_code == 200
        keep(client, matrix(7))


def test_without_its_database_it_is_alive_but_not_ready(
    serve_app: ServeApp, tmp_path: Path
) -> None:
    # A port that nobody listens on.
    nowhere = "postgresql+psycopg://rprime@127.0.0.1:1/rprime"
    with keeping(serve_app, tmp_path, store=nowhere) as client:
        answer = client.get("/readyz")
        assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable")
        assert int(answer.headers["retry-after"]) > 0
        assert client.get("/livez").status_code == 200
        assert keep(client, matrix(), 503)["code"] == "store_unavailable"
        assert client.post("/evaluate", json=matrix(project=None)).status_code == 200


@pytest.mark.parametrize("route", ["trend?index=accuracy", "leaderboard?index=accuracy"])
def test_an_unknown_project_is_named_as_the_mistake(client: httpx.Client, route: str) -> None:
    problem = client.get(f"/v1/projects/wlak/{route}").json()
    assert problem["detail"] == "There is no such project, or you may not see it."
