"""Stored baselines that cannot be another evaluation than the request means."""

import html
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.history_service import ServeApp, keep, keeping, labels, matrix

Json = dict[str, Any]
DROP = {"rules": [{"index": "accuracy", "max_drop": 0.02}]}


@pytest.fixture
def client(serve_app: ServeApp, tmp_path: Path) -> Iterator[httpx.Client]:
    with keeping(serve_app, tmp_path) as client:
        yield client


def count(client: httpx.Client, project: str = "pets") -> int:
    response = client.get(f"/v1/projects/{project}/evaluations")
    return 0 if response.status_code == 404 else len(response.json()["items"])


def promote(client: httpx.Client, evaluation: str, alias: str = "champion") -> None:
    path = f"/v1/projects/pets/aliases/{alias}"
    body = {"evaluation": evaluation}
    assert client.put(path, json=body, headers={"If-None-Match": "*"}).status_code == 201


def baseline_of(report: Json) -> Json:
    baseline: Json = report["comparison"]["baseline"]
    return baseline


class TestNamesThatDoNotExist:
    @pytest.mark.parametrize(
        ("baseline", "pointer", "text"),
        [
            (
                {"version": "V-9"},
                "/baseline/version",
                (
                    "There is no evaluation of version `V-9` of model `svc` in project `pets`. The "
                    "nearest versions: `v9`."
                ),
            ),
            (
                {"version": "latest"},
                "/baseline/version",
                (
                    "There is no evaluation of version `latest` of model `svc` in project `pets`. "
                    'The newest evaluation of any version is {"latest": true}.'
                ),
            ),
            (
                {"alias": "champoin"},
                "/baseline/alias",
                "Project `pets` has no alias `champoin`. The nearest aliases: `champion`.",
            ),
            (
                {"version": "v9", "model": "svd"},
                "/baseline/version",
                (
                    "There is no evaluation of model `svd` in project `pets` yet. The nearest "
                    "models: `svc`."
                ),
            ),
        ],
    )
    def test_they_are_refused_and_nothing_is_stored(
        self, client: httpx.Client, baseline: Json, pointer: str, text: str
    ) -> None:
        promote(client, keep(client, matrix(model="svc", version="v9"))["id"])
        worse = matrix(20, model="svc", version="v10", baseline=baseline, gates=DROP)
        problem = keep(client, worse, 404)
        assert (problem["code"], problem["detail"]) == ("baseline_not_found", text)
        assert [error["pointer"] for error in problem["errors"]] == [pointer]
        assert count(client) == 1

    def test_an_id_is_refused_in_its_project_alone(self, client: httpx.Client) -> None:
        identifier = keep(client, matrix(version="1"))["id"]
        other = matrix(2, project="others", baseline={"evaluation": identifier})
        assert keep(client, other, 404)["code"] == "baseline_not_found"
        cut = keep(client, matrix(2, baseline={"evaluation": identifier[:-2]}), 404)
        assert cut["detail"].endswith(f"The nearest ids: `{identifier}`.")
        assert (count(client), count(client, "others")) == (1, 0)

    def test_a_key_of_idempotency_may_be_used_again(self, client: httpx.Client) -> None:
        keep(client, matrix(version="spring"))
        content = matrix(2, version="3", baseline={"version": "sprin"})
        assert keep(client, content, 404, idempotency_key="k")["code"] == "baseline_not_found"
        keep(client, matrix(3, version="sprin"))
        assert keep(client, content, idempotency_key="k")["comparison"]

    def test_each_request_of_a_batch_has_its_own(self, client: httpx.Client) -> None:
        keep(client, matrix(version="main"))
        requests = [matrix(7, version="2", baseline={"version": v}) for v in ("main", "mian")]
        answer = client.post("/v1/evaluate/batch", json={"requests": requests})
        assert [result["status"] for result in answer.json()["results"]] == [201, 404]

    def test_they_are_refused_in_comparisons(self, client: httpx.Client) -> None:
        candidate = keep(client, matrix(version="1", model="svc"))["id"]
        for baseline in (
            {"version": "2"},
            {"alias": "champion"},
            {"branch": "main"},
            {"evaluation": "0" * 26},
        ):
            body = {"candidate": {"evaluation": candidate}, "baseline": baseline, "gates": DROP}
            answer = client.post("/v1/compare", json=body)
            assert answer.status_code == 404
            assert answer.json()["code"] == "baseline_not_found"

    @pytest.mark.parametrize(
        "baseline",
        [
            {"alias": "champion", "model": "svc"},
            {"evaluation": "x", "model": "svc"},
            {"model": "svc"},
            {"latest": False},
            {"latest": True, "branch": "main"},
            {"version": "1", "model": "svc", "axis": "rows_are_true"},
        ],
    )
    def test_only_what_looks_among_models_may_name_one(
        self, client: httpx.Client, baseline: Json
    ) -> None:
        problem = keep(client, matrix(baseline=baseline), 422)
        assert problem["errors"][0]["pointer"].startswith("/baseline")


class TestNotYet:
    @pytest.mark.parametrize(
        ("baseline", "sought"),
        [
            ({"alias": "champion"}, "The alias `champion` of project `pets` is not set."),
            ({"branch": "release"}, "There is no evaluation on branch `release` of model `svc`"),
            ({"version": "v10"}, "There is no evaluation of version `v10` of model `svc`"),
            ({"version": "v9", "project": "others"}, "in project `others` yet."),
            (
                {"alias": "champion", "project": "others"},
                "The alias `champion` of project `others`",
            ),
        ],
        ids=lambda value: " ".join(value) if isinstance(value, dict) else "",
    )
    def test_what_resembles_nothing_is_stored_and_told(
        self, client: httpx.Client, baseline: Json, sought: str
    ) -> None:
        keep(client, matrix(model="svc", version="v9", branch="main"))
        report = keep(client, matrix(2, model="svc", version="v11", baseline=baseline, gates=DROP))
        assert (report["comparison"], report["gate"]["verdict"]) == (None, "no_baseline")
        (warning,) = (w for w in report["warnings"] if w["code"] == "no_baseline")
        assert sought in warning["detail"]
        assert "To set one: `rprime " in warning["detail"]
        assert "first_of_model" not in {w["code"] for w in report["warnings"]}
        assert count(client) == 2

    def test_a_version_that_only_another_model_has_is_told(self, client: httpx.Client) -> None:
        keep(client, matrix(model="svc", version="v9"))
        keep(client, matrix(model="knn", version="v10"))
        content = matrix(2, model="svc", version="v11", baseline={"version": "v10"}, gates=DROP)
        assert keep(client, content, 404)["detail"] == (
            "There is no evaluation of version `v10` of model `svc` in project `pets`. "
            "Other models have it; `model` names one: `knn`."
        )

    def test_a_misspelt_project_of_a_baseline_is_no_new_one(self, client: httpx.Client) -> None:
        keep(client, matrix(model="svc", version="v9"))
        baseline = {"alias": "champion", "project": "petz"}
        problem = keep(client, matrix(2, model="svc", baseline=baseline, gates=DROP), 404)
        assert [error["pointer"] for error in problem["errors"]] == ["/baseline/project"]
        assert "The nearest: `pets`." in problem["detail"]

    def test_a_model_without_an_alias_is_told_how_to_set_one(self, client: httpx.Client) -> None:
        keep(client, matrix(1, version="1", model="knn"))
        request: Json = {"model": "svc", "baseline": {"alias": "champion"}, "gates": DROP}
        report = keep(client, matrix(2, version="1", **request))
        (warning,) = (w for w in report["warnings"] if w["code"] == "no_baseline")
        command = f"`rprime promote {report['id']} champion --project pets --if-absent`"
        assert warning["detail"] == (
            f"The alias `champion` of project `pets` is not set. To set one: {command}."
        )
        assert report["gate"]["verdict"] == "no_baseline"
        (first,) = (w["detail"] for w in report["warnings"] if w["code"] == "first_of_model")
        assert "first evaluation of model `svc` in project `pets`" in first
        assert [r["verdict"] for r in report["gate"]["results"]] == ["no_baseline"]
        assert client.get(report["links"]["self"]).json()["warnings"] == report["warnings"]
        promote(client, report["id"])
        again = keep(client, matrix(3, version="2", **request))
        assert baseline_of(again)["resolved"] == report["id"]

    def test_a_branch_names_those_that_there_are(self, client: httpx.Client) -> None:
        for branch in ("main", "dev"):
            keep(client, matrix(1, version=branch, branch=branch))
        report = keep(client, matrix(20, version="3", baseline={"branch": "release"}, gates=DROP))
        (warning,) = (w for w in report["warnings"] if w["code"] == "no_baseline")
        assert warning["detail"].startswith(
            "There is no evaluation on branch `release` without a model in project `pets` yet. "
            "Known branches: `dev`, `main`. To set one: `rprime evaluate FILE"
        )

    @pytest.mark.parametrize(
        ("baseline", "near"), [({"branch": "mian"}, "main"), ({"alias": "champoin"}, "champion")]
    )
    def test_a_misspelt_name_is_no_new_one(
        self, client: httpx.Client, baseline: Json, near: str
    ) -> None:
        promote(client, keep(client, matrix(1, version="1", branch="main"))["id"])
        problem = keep(client, matrix(2, version="2", baseline=baseline, gates=DROP), 404)
        assert problem["code"] == "baseline_not_found"
        assert f"`{near}`" in problem["detail"]


class TestModels:
    @pytest.mark.parametrize("by", ["version", "branch", "latest"])
    def test_each_is_compared_with_its_own_predecessor(self, client: httpx.Client, by: str) -> None:
        newest: dict[str | None, str] = {}
        for number in range(3):
            references = {"version": f"v{number - 1}", "branch": "main", "latest": True}
            for errors, model in ((1, "svc"), (8, "knn"), (16, None)):
                names: Json = {"version": f"v{number}", "branch": "main"}
                names |= {} if model is None else {"model": model}
                request: Json = {"baseline": {by: references[by]}} if number else {}
                report = keep(client, matrix(errors + number, **names, **request))
                if number:
                    assert baseline_of(report)["resolved"] == newest[model]
                    of = "without a model" if model is None else f"of model `{model}`"
                    assert f" {of} in project `pets`" in baseline_of(report)["why"]
                newest[model] = report["id"]

    def test_another_one_may_be_named(self, client: httpx.Client) -> None:
        names: Json = {"version": "v4", "branch": "main"}
        logreg = keep(client, matrix(1, model="logreg", **names))["id"]
        keep(client, matrix(2, model="knn", **names))
        references: list[Json] = [{"version": "v4"}, {"branch": "main"}, {"latest": True}]
        for errors, reference in enumerate(references, start=3):
            baseline = reference | {"model": "logreg"}
            content = matrix(errors, model="knn", version="v5", baseline=baseline)
            resolution = baseline_of(keep(client, content))
            assert (resolution["resolved"], resolution["requested"]) == (logreg, baseline)

    @pytest.mark.parametrize("suffix", ["md", "html", "junit.xml", "csv", "openmetrics.txt"])
    def test_a_report_names_the_newest_one(self, client: httpx.Client, suffix: str) -> None:
        keep(client, matrix(1, model="svc", version="older"))
        keep(client, matrix(2, model="svc", version="newest"))
        candidate = keep(client, matrix(3, model="svc", baseline={"latest": True}, gates=DROP))
        rendering = client.get(f"/v1/evaluations/{candidate['id']}/report.{suffix}")
        assert rendering.status_code == 200
        assert suffix not in {"md", "html"} or "svc newest" in rendering.text

    def test_a_stored_candidate_has_one_too(self, client: httpx.Client) -> None:
        ids = {
            (model, version): keep(client, matrix(errors, model=model, version=version))["id"]
            for errors, model in ((1, "svc"), (5, "knn"))
            for version in ("v1", "v2")
        }
        body = {"candidate": {"evaluation": ids["svc", "v2"]}, "baseline": {"version": "v1"}}
        answer = client.post("/v1/compare", json=body).json()
        assert baseline_of(answer)["resolved"] == ids["svc", "v1"]


class TestSkipped:
    def test_a_gate_that_could_not_compare_is_no_baseline(self, client: httpx.Client) -> None:
        warn = DROP | {"effects": {"not_comparable": "warn"}}
        sets = [{"fingerprint": digit * 64} for digit in "ab"]
        good = keep(client, matrix(1, branch="main", version="1", test_set=sets[0]))
        names: Json = {"branch": "main", "baseline": {"branch": "main"}, "gates": warn}
        apart = keep(client, matrix(2, **names, version="2", test_set=sets[1]))
        assert apart["comparison"]["comparability"] == "different"
        assert apart["gate"]["verdict"] != "fail"
        next_one = keep(client, matrix(3, **names, version="3", test_set=sets[0]))
        assert baseline_of(next_one)["resolved"] == good["id"]
        assert "`2` (its gate could not compare)" in baseline_of(next_one)["why"]

    def test_a_gate_that_failed_is_no_baseline(self, client: httpx.Client) -> None:
        good = keep(client, matrix(1, branch="main", version="1"))
        names: Json = {"branch": "main", "baseline": {"branch": "main"}, "gates": DROP}
        assert keep(client, matrix(30, **names, version="2"))["gate"]["verdict"] == "fail"
        baseline = baseline_of(keep(client, matrix(2, **names, version="3")))
        assert baseline["resolved"] == good["id"]
        assert "`2` (its gate failed)" in baseline["why"]


class TestNewProjects:
    def test_the_first_evaluation_is_announced(self, client: httpx.Client) -> None:
        first, second = (keep(client, matrix(errors)) for errors in (1, 2))
        codes = [warning["code"] for warning in first["warnings"]]
        assert codes.count("first_evaluation") == 1
        assert "first evaluation of project `pets`" in first["warnings"][-1]["detail"]
        assert "first_evaluation" not in {w["code"] for w in second["warnings"]}
        for report in (first, second):
            assert client.get(report["links"]["self"]).json()["warnings"] == report["warnings"]

    def test_a_project_that_was_deleted_begins_again(self, client: httpx.Client) -> None:
        for _ in range(2):
            report = keep(client, labels(baseline={"branch": "main"}, gates=DROP))
            codes = {warning["code"] for warning in report["warnings"]}
            assert {"first_evaluation", "no_baseline"} <= codes
            assert client.delete("/v1/projects/pets").status_code == 204


class TestAnchor:
    """Eight builds, each a little worse, are compared with a pinned evaluation as well."""

    @staticmethod
    def rot(client: httpx.Client, **anchor: Any) -> list[Json]:
        """Keep builds of one model, each 4 errors of 300 worse than the one before."""
        first = keep(client, matrix(1, version="0", branch="main"))
        promote(client, first["id"], "release")
        gates = DROP | {"anchor": anchor or {"alias": "release"}}
        names: Json = {"branch": "main", "baseline": {"branch": "main"}, "gates": gates}
        more = [keep(client, matrix(n + 1, version=str(n), **names)) for n in range(1, 9)]
        return [first, *more]

    def test_every_report_says_how_far_it_is_from_it(self, client: httpx.Client) -> None:
        first, *builds = self.rot(client)
        for number, report in enumerate(builds, start=1):
            since = report["gate"]["since_anchor"]
            assert since["baseline"] == {
                "requested": {"alias": "release"},
                "resolved": first["id"],
                "why": "The alias `release` points at it.",
            }
            assert since["comparability"] == "unknown"
            (delta,) = since["overall"].values()
            assert delta["value"] == pytest.approx(-6 * number / 300)
            assert delta["interval"][0] < delta["value"] < delta["interval"][1]
            stored = client.get(report["links"]["self"]).json()
            assert stored["gate"] == report["gate"]
        last = builds[-1]["links"]["self"]
        for suffix in ("md", "html", "junit.xml"):
            text = html.unescape(client.get(f"{last}/report.{suffix}").text)
            assert "Since the anchor: accuracy \N{MINUS SIGN}0.1600 [\N{MINUS SIGN}0." in text
        assert "since_anchor" not in (first.get("gate") or {})

    def test_small_losses_cannot_add_up(self, client: httpx.Client) -> None:
        """The first build that fails is no worse than the one before: the anchor shows the loss."""
        _, *builds = self.rot(client)
        for number, report in enumerate(builds, start=1):
            step, whole = report["gate"]["results"]
            assert (step["against"], whole["against"]) == ("baseline", "anchor")
            assert whole["delta"] == pytest.approx(-6 * number / 300)
        verdicts = [report["gate"]["verdict"] for report in builds]
        first = verdicts.index("fail")
        assert verdicts == ["inconclusive"] * first + ["fail"] * (8 - first)
        step, whole = builds[first]["gate"]["results"]
        assert step["delta"] == pytest.approx(-6 / 300)
        assert (step["verdict"], whole["verdict"]) == ("undecided", "fail")

    def test_the_trend_says_it_too(self, client: httpx.Client) -> None:
        first, *builds = self.rot(client)
        path = "/v1/projects/pets/trend?index=recall&class=cat"
        items = client.get(path).json()["items"]
        assert [item["evaluation"] for item in items] == [first["id"], *(b["id"] for b in builds)]
        assert "since_anchor" not in items[0]
        for item, report in zip(items[1:], builds, strict=True):
            recall = report["per_class"]["cat"]["indices"]["recall"]["value"]
            before = first["per_class"]["cat"]["indices"]["recall"]["value"]
            assert item["since_anchor"] == pytest.approx(recall - before)
        released = "/v1/projects/pets/aliases/release"
        client.delete(released, headers={"If-Match": "*"})
        client.delete(f"/v1/evaluations/{first['id']}")
        items = client.get(path).json()["items"]
        assert [item["since_anchor"] for item in items] == [None] * 8

    def test_it_makes_another_submission(self, client: httpx.Client) -> None:
        first, other = (keep(client, matrix(n, version=str(n)))["id"] for n in (1, 2))
        for identifier in (first, other):
            keep(client, matrix(3, gates=DROP | {"anchor": {"evaluation": identifier}}))

    @pytest.mark.parametrize(
        ("anchor", "status", "pointer"),
        [
            ({"alias": "relaese"}, 404, "/gates/anchor/alias"),
            ({"version": "latest"}, 404, "/gates/anchor/version"),
            ({}, 422, "/gates/anchor"),
            (None, 422, "/gates/anchor"),
            ({"alias": "release", "version": "9"}, 422, "/gates/anchor"),
        ],
    )
    def test_a_wrong_one_is_refused(
        self, client: httpx.Client, anchor: Json | None, status: int, pointer: str
    ) -> None:
        promote(client, keep(client, matrix(1, version="1"))["id"], "release")
        problem = keep(client, matrix(2, gates=DROP | {"anchor": anchor}), status)
        assert problem["errors"][0]["pointer"] == pointer
        assert count(client) == 1

    def test_one_needs_a_project(self, client: httpx.Client) -> None:
        gates = DROP | {"anchor": {"alias": "release"}}
        problem = keep(client, matrix(project=None, gates=gates), 422)
        assert [error["pointer"] for error in problem["errors"]] == ["/gates/anchor"]

    def test_a_missing_one_is_no_baseline_yet(self, client: httpx.Client) -> None:
        report = keep(client, matrix(gates=DROP | {"anchor": {"alias": "release"}}))
        assert report["gate"]["since_anchor"] is None
        (warning,) = (w for w in report["warnings"] if w["code"] == "no_baseline")
        assert warning["pointer"] == "/gate/since_anchor"
        assert f"rprime promote {report['id']} release" in warning["detail"]

    def test_its_warnings_name_it(self, client: httpx.Client) -> None:
        promote(client, keep(client, labels(1, version="1"))["id"], "release")
        keep(client, labels(2, version="2"))
        gates = DROP | {"anchor": {"alias": "release"}}
        request = labels(1, version="3", baseline={"version": "2"}, gates=gates)
        (warning,) = (
            w for w in keep(client, request)["warnings"] if w["code"] == "same_predictions"
        )
        assert warning["pointer"] == "/gate/since_anchor"
        assert warning["detail"].startswith("Against the anchor: No prediction differs from the")

    def test_a_stored_candidate_is_compared_with_one(self, client: httpx.Client) -> None:
        first, *_, last = self.rot(client)
        gates = DROP | {"anchor": {"alias": "release"}}
        body: Json = {"candidate": {"evaluation": last["id"]}, "baseline": {"version": "7"}}
        body["options"] = {"indices": ["accuracy"]}
        answer = client.post("/v1/compare", json=body | {"gates": gates}).json()
        assert answer["gate"]["since_anchor"] == last["gate"]["since_anchor"]
        gates = DROP | {"anchor": {"evaluation": first["id"]}}
        body = {"candidate": matrix(9, project=None), "baseline": {"evaluation": last["id"]}}
        body["candidate"].pop("indices")
        answer = client.post("/v1/compare", json=body | {"gates": gates}).json()
        assert answer["gate"]["since_anchor"]["baseline"]["resolved"] == first["id"]
        gates = DROP | {"anchor": {"alias": "release"}}
        refused = client.post("/v1/compare", json=body | {"gates": gates})
        assert refused.json()["errors"][0]["pointer"] == "/gates/anchor"


@pytest.mark.parametrize("baseline", [{"branch": "main"}, {"latest": True}])
def test_an_undecided_job_does_not_pass_when_it_is_run_again(
    client: httpx.Client, baseline: Json
) -> None:
    def run(wrong: int, commit: str, key: str) -> Json:
        content = matrix(
            confusion_matrix=[[200 - wrong, wrong], [0, 200]],
            labels=["a", "b"],
            model="m",
            branch="main",
            commit=commit,
            baseline=baseline,
            gates={"rules": [{"index": "accuracy", "max_drop": 0.03}]},
        )
        return keep(client, content, Idempotency_Key=key)

    first = run(4, "a" * 7, "one")
    # Trained again, it is nearly the same.
    runs = [run(wrong, "b" * 7, key) for wrong, key in ((20, "two"), (19, "three"))]
    assert [report["gate"]["verdict"] for report in runs] == ["inconclusive"] * 2
    assert [baseline_of(report)["resolved"] for report in runs] == [first["id"]] * 2


KINDS = ["majority", "uniform", "prior"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_constant_baseline_is_kept_with_its_report(client: httpx.Client, kind: str) -> None:
    gates = {"rules": [{"index": "accuracy", "min_gain": 0.3}]}
    report = keep(client, labels(baseline={"constant": kind}, gates=gates))
    assert baseline_of(report)["requested"] == {"constant": kind}
    assert report["gate"]["verdict"] == "pass"
    path = f"/v1/evaluations/{report['id']}"
    later = client.get(path).json()
    assert later["comparison"] == report["comparison"]
    assert later["gate"] == report["gate"]
    page = client.get(path, headers={"Accept": "text/html"}).text
    assert f"{kind} classifier" in page


def test_another_constant_baseline_is_another_evaluation(client: httpx.Client) -> None:
    sides = [None, *({"constant": kind} for kind in KINDS)]
    ids = {keep(client, labels(baseline=side))["id"] for side in sides}
    assert len(ids) == len(sides)
    repeated = keep(client, labels(baseline=sides[-1]), status=200)
    assert repeated["id"] in ids


@pytest.mark.parametrize("kind", KINDS)
def test_a_stored_candidate_is_compared_with_a_constant_classifier(
    client: httpx.Client, kind: str
) -> None:
    """Of items and of a table alike, later as when it was stored."""
    side = {"constant": kind}
    for content in (labels(baseline=side), matrix(baseline=side)):
        report = keep(client, content)
        body = {"candidate": {"evaluation": report["id"]}, "baseline": side}
        answer = client.post("/v1/compare", json=body | {"options": {"indices": ["accuracy"]}})
        change = answer.json()["comparison"]["overall"]["accuracy"]
        expected = report["comparison"]["overall"]["accuracy"]
        assert {name: change[name] for name in expected} == expected


def test_the_stored_prevalence_chooses_the_constant_class(client: httpx.Client) -> None:
    """Of a population that is mostly eel, the majority is eel, in the report and later."""
    shares = {"cat": 0.1, "dog": 0.1, "eel": 0.8}
    first = keep(client, labels(population={"prevalence": shares}))
    population = {"prevalence": {"evaluation": first["id"]}}
    side = {"constant": "majority"}
    report = keep(client, labels(seed=2, baseline=side, population=population))
    assert report["comparison"]["overall"]["accuracy"]["baseline"] == pytest.approx(0.8)
    assert "`eel`" in baseline_of(report)["why"]
    body = {"candidate": {"evaluation": report["id"]}, "baseline": side}
    answer = client.post("/v1/compare", json=body).json()
    assert answer["comparison"]["overall"]["accuracy"]["baseline"] == pytest.approx(0.8)
    assert "`eel`" in answer["comparison"]["baseline"]["why"]


@pytest.mark.parametrize("chosen", [{"average_over": ["dog", "eel"]}, {"average_except": ["cat"]}])
def test_a_stored_evaluation_keeps_the_classes_that_its_averages_are_over(
    client: httpx.Client, chosen: Json
) -> None:
    """Where it is read, compared, and in the order of the classes of the other side."""
    indices: Json = {"indices": ["micro_f1", "macro_recall"]}
    turned: Json = {"labels": ["eel", "cat", "dog"]}
    first = keep(client, labels(2, wrong=0.3, version="1", **indices, **chosen, **turned))
    report = keep(client, labels(1, version="2", baseline={"version": "1"}, **indices, **chosen))
    later = client.get(f"/v1/evaluations/{report['id']}").json()
    assert later["options"]["average_over"] == ["dog", "eel"]
    assert later["overall"] == report["overall"]
    for key, change in report["comparison"]["overall"].items():
        assert change["baseline"] == pytest.approx(first["overall"][key]["value"])
        assert change["interval"] is not None
    body = {"candidate": {"evaluation": report["id"]}, "baseline": {"evaluation": first["id"]}}
    compared = client.post("/v1/compare", json=body).json()["comparison"]["overall"]
    for key, change in report["comparison"]["overall"].items():
        assert compared[key]["value"] == pytest.approx(change["value"])
        assert compared[key]["interval"] == pytest.approx(change["interval"])
    body["options"] = {**indices, "average_over": ["dog", "eel"]}
    asked = client.post("/v1/compare", json=body).json()["comparison"]["overall"]
    assert asked["micro_f1"] == compared["micro_f1"]
