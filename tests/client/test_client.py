"""The client: the reports of the service with names and types, and patience with its failures."""

import gzip
import json
import pickle
import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

import rprime
from rprime import Client, ProblemError, Report, ServiceUnavailableError
from rprime.client.clients import Patience, retry_after
from rprime.schemas.population import read_slice
from tests.failing_service import BUSY, DROPPED, JSON, Step, flaky, stopped

Serve = Callable[..., AbstractContextManager[httpx.Client]]
TRUE = ["cat", "cat", "dog", "dog", "eel"]
PREDICTED = ["cat", "dog", "dog", None, "eel"]
GATES = {"rules": [{"index": "accuracy", "min_value": 0.99, "test": "none"}]}
TABLE: Any = {"confusion_matrix": [[50, 3], [4, 60]], "labels": ["a", "b"]}
REPORT = Step(body=rprime.evaluate(TRUE, PREDICTED).content)


@pytest.fixture
def service(server: str) -> Iterator[Client]:
    with Client(server) as client:
        yield client


class TestAnswers:
    def test_a_report_has_names_and_types(self, service: Client) -> None:
        report = service.evaluate(TRUE, PREDICTED, gates=GATES)
        assert report.labels == ["cat", "dog", "eel"]
        assert report.overall["accuracy"].value == pytest.approx(3 / 5)
        assert report.overall.accuracy == report.overall["accuracy"]
        low, high = report.per_class["cat"]["recall"].interval or (0, 0)
        assert low is not None
        assert high is not None
        assert 0 < low < 0.5 < high < 1
        assert report.per_class["cat"].recall.value == 0.5
        assert report.per_class["dog"].support == 2
        assert report.counts.unclassified == 1
        assert (report.verdict, report["labels"]) == ("fail", report.labels)
        assert report.request_id
        assert "3 classes, 5 items, fail" in repr(report)

    def test_it_is_byte_for_byte_what_the_service_sends_and_what_is_computed_here(
        self, service: Client, client: httpx.Client
    ) -> None:
        body = {"y_true": TRUE, "y_pred": PREDICTED, "gates": GATES, "baseline": {"y_pred": TRUE}}
        raw = client.post("/v1/evaluate?include=table,cells", json=body).content
        options: Any = {"gates": GATES, "baseline": {"y_pred": TRUE}, "table": True}
        assert service.evaluate(TRUE, PREDICTED, **options).content == raw
        assert rprime.evaluate(TRUE, PREDICTED, **options).content == raw

    @pytest.mark.parametrize(
        "population",
        [
            {"prevalence": {"a": 0.9, "b": 0.1}},
            {"strata": "predicted", "shares": {"a": 0.9, "b": 0.1}},
        ],
    )
    def test_a_report_on_a_population_is_rendered_at_it(
        self, service: Client, population: Any
    ) -> None:
        report = service.evaluate(**TABLE, population=population, table=True)
        subject = report.subject(("accuracy",))
        assert "a 0.9, b 0.1" in subject.title
        [accuracy] = subject.evaluation.values.overall
        assert accuracy == pytest.approx(report.overall["accuracy"].value)
        assert accuracy != pytest.approx(110 / 117)

    def test_strata_of_items_are_not_in_a_report(self, service: Client) -> None:
        strata: Any = {"strata": [1, 1, 2, 2, 2], "shares": {"1": 0.5, "2": 0.5}}
        report = service.evaluate(TRUE, PREDICTED, population=strata, table=True)
        with pytest.raises(ValueError, match="strata of its items"):
            report.subject()

    def test_what_a_report_does_not_have_is_an_error(self, service: Client) -> None:
        report = service.evaluate(**TABLE)
        for wrong in (lambda: report.overal, lambda: report.overall.acuracy):
            with pytest.raises(AttributeError):
                wrong()
        with pytest.raises(KeyError):
            report["overal"]

    def test_a_batch_has_a_report_or_a_problem_for_each(self, service: Client) -> None:
        good, bad = service.evaluate_batch([TABLE, {"confusion_matrix": [[1, -1], [0, 1]]}])
        assert isinstance(good, Report)
        assert good.content == service.evaluate(**TABLE).content
        assert isinstance(bad, ProblemError)
        assert bad.errors[0].pointer == "/confusion_matrix/0/1"

    def test_a_comparison_is_the_one_made_here(self, service: Client) -> None:
        arguments: Any = ({"y_true": TRUE, "y_pred": PREDICTED}, {"y_pred": TRUE})
        answer = service.compare(*arguments, gates=GATES, options={"confidence": 0.9})
        assert answer.comparison is not None
        assert answer.comparison.pairing == "paired"
        assert answer.comparison.confidence == 0.9
        assert answer.verdict == "fail"
        here = rprime.compare(*arguments, gates=GATES, options={"confidence": 0.9})
        assert answer.content == here.content

    def test_a_lint_is_the_one_made_here(self, service: Client) -> None:
        arguments: Any = {**TABLE, "replicates": 200, "seed": 3}
        lint = service.lint(GATES, **arguments)
        assert lint.false_fail_rate == 1.0
        assert lint.content == rprime.lint(GATES, **arguments).content

    def test_the_catalog_and_the_limits_are_there(self, service: Client) -> None:
        assert len(service.indices().items) > 100
        assert service.index("class", "r_prime").scope == "class"
        assert service.version().limits["dense_classes"] == 1000
        assert service.version().version == rprime.__version__
        assert service.ready()


class TestProblems:
    def test_they_say_where_and_what(self, service: Client) -> None:
        with pytest.raises(ProblemError) as caught:
            service.evaluate(confusion_matrix=[[1, -1], [2, 3]])
        problem = caught.value
        assert (problem.status, problem.code) == (422, "invalid_request")
        assert problem.errors[0][:2] == ("/confusion_matrix/0/1", "out_of_range")
        assert problem.request_id
        assert "/confusion_matrix/0/1: A count" in str(problem)
        assert pickle.loads(pickle.dumps(problem)).errors == problem.errors  # noqa: S301 (our own)

    def test_they_are_the_same_here_and_name_the_member(self, service: Client) -> None:
        wrong: Any = {"y_true": ["a", None], "y_pred": ["a", "b"], "betta": 2}
        problems = []
        for evaluate in (service.evaluate, rprime.evaluate):
            with pytest.raises(ProblemError) as caught:
                evaluate(**wrong)
            problems.append({**caught.value.document, "request_id": None})
        there, here = problems
        assert here["errors"][0]["detail"].startswith("'betta': ")
        assert here == there

    def test_what_is_not_there_is_a_problem(self, service: Client) -> None:
        with pytest.raises(ProblemError) as caught:
            service.index("class", "../version")
        assert caught.value.status == 404

    def test_a_failure_of_the_service_is_not_repeated(self) -> None:
        body = b'{"title":"t","status":500,"detail":"d","code":"internal_error"}'
        failure = Step(500, body, {"Content-Type": "application/problem+json"})
        with flaky(failure) as server, Client(server.url, backoff=0.01) as client:
            with pytest.raises(ProblemError) as caught:
                client.evaluate(**TABLE)
            assert caught.value.code == "internal_error"
            assert len(server.seen) == 1

    def test_another_refusal_on_the_way_is_a_problem_too(self) -> None:
        refusal = Step(403, b"<h1>Forbidden</h1>", {"Content-Type": "text/html"})
        with flaky(refusal) as server, Client(server.url) as client:
            with pytest.raises(ProblemError) as caught:
                client.indices()
            assert (caught.value.status, caught.value.code) == (403, "http_403")

    def test_a_key_opens_a_service_that_asks_for_one(
        self, serve: Serve, rprime: Callable[..., Any], tmp_path: Path
    ) -> None:
        file = str(tmp_path / "keys")
        made = rprime("keys", "create", "--scope", "evaluate", RPRIME_KEYS_FILE=file).stdout
        key = re.search(r"rp\S{20,}", made)
        assert key, made
        with serve(RPRIME_KEYS_FILE=file) as service:
            with Client(str(service.base_url), key=f" {key[0]}\n") as client:
                assert client.evaluate(**TABLE).labels == ["a", "b"]
            with Client(str(service.base_url)) as client, pytest.raises(ProblemError) as caught:
                client.evaluate(**TABLE)
            assert caught.value.status == 401


class TestRetries:
    @pytest.mark.parametrize("status", [429, 502, 503, 504])
    def test_a_busy_service_is_asked_again(self, status: int) -> None:
        steps = [Step(status, b"", {}), BUSY, REPORT]
        with flaky(*steps) as server, Client(server.url, backoff=0.01) as client:
            assert client.evaluate(TRUE, PREDICTED).content == REPORT.body
            assert len(server.seen) == 3

    def test_one_call_has_one_idempotency_key(self) -> None:
        steps = [BUSY, DROPPED, BUSY, REPORT]
        with flaky(*steps) as server, Client(server.url, backoff=0.01) as client:
            client.evaluate(TRUE, PREDICTED)
            assert len(set(server.keys)) == 1
            assert len({seen.body for seen in server.seen}) == 1
            client.evaluate(TRUE, PREDICTED)
            client.evaluate(TRUE, PREDICTED, idempotency_key="run-1")
            assert len(set(server.keys)) == 3
            assert server.keys[-1] == "run-1"

    def test_a_service_that_comes_back_is_reached(self) -> None:
        with flaky(DROPPED, REPORT) as server, Client(server.url, backoff=0.01) as client:
            assert client.evaluate(TRUE, PREDICTED).labels == ["cat", "dog", "eel"]

    def test_it_gives_up_after_some_attempts_and_keeps_the_problem(self) -> None:
        with flaky(BUSY) as server, Client(server.url, retries=2, backoff=0.01) as client:
            with pytest.raises(ServiceUnavailableError, match=r"503 .* after 3 attempts") as caught:
                client.evaluate(**TABLE)
            assert len(server.seen) == 3
        assert isinstance(caught.value.__cause__, ProblemError)
        assert caught.value.__cause__.request_id == "r-7"

    def test_a_stopped_service_is_named(self) -> None:
        url = stopped()
        with Client(url, retries=1, backoff=0.01) as client:
            with pytest.raises(ServiceUnavailableError, match=f"{url}/v1/.*after 2 attempts"):
                client.evaluate(**TABLE)
            assert not client.ready()

    def test_a_server_without_tls_is_no_riddle(self) -> None:
        message = r"does not speak TLS \(is its address http://"
        with (
            flaky(REPORT) as server,
            Client(server.url.replace("http:", "https:"), retries=0) as client,
            pytest.raises(ServiceUnavailableError, match=message),
        ):
            client.evaluate(**TABLE)

    def test_a_slow_service_is_asked_once(self) -> None:
        slow = Step(after=20)
        with flaky(slow) as server, Client(server.url, timeout=0.2, backoff=0.01) as client:
            start = time.monotonic()
            with pytest.raises(ServiceUnavailableError, match="no answer in time"):
                client.evaluate(**TABLE)
            assert time.monotonic() - start < 5
            assert len(server.seen) == 1

    def test_it_waits_as_long_as_the_service_asks(self) -> None:
        busy = Step(503, BUSY.body, {**BUSY.headers, "Retry-After": "1"})
        with flaky(busy, REPORT) as server, Client(server.url, backoff=0.01) as client:
            start = time.monotonic()
            client.evaluate(TRUE, PREDICTED)
            assert time.monotonic() - start >= 1

    def test_it_does_not_wait_for_hours(self) -> None:
        busy = Step(503, BUSY.body, {**BUSY.headers, "Retry-After": "3600"})
        with flaky(busy, REPORT) as server, Client(server.url) as client:
            with pytest.raises(ServiceUnavailableError):
                client.evaluate(TRUE, PREDICTED)
            assert len(server.seen) == 1

    def test_readiness_is_asked_once(self) -> None:
        with flaky(BUSY) as server, Client(server.url) as client:
            assert not client.ready()
            assert len(server.seen) == 1

    def test_the_pauses_double_and_vary(self) -> None:
        patience = Patience(retries=3, backoff=0.5, longest=1.5)
        for retry, (low, high) in enumerate([(0.25, 0.5), (0.5, 1.0), (0.75, 1.5)]):
            pauses = {patience.pause(retry, None) for _ in range(20)}
            assert len(pauses) > 1
            assert all(pause is not None and low <= pause <= high for pause in pauses)
        assert patience.pause(0, 1.25) == 1.25
        assert patience.pause(0, 2) is None
        assert patience.pause(3, None) is None

    @pytest.mark.parametrize(
        ("said", "known"), [("7", 7), ("soon", None), ("", None), ("-1", None)]
    )
    def test_retry_after_in_seconds(self, said: str, known: float | None) -> None:
        assert retry_after(httpx.Response(503, headers={"Retry-After": said})) == known

    def test_retry_after_as_a_date(self) -> None:
        for minutes, low, high in ((1, 50, 61), (-1, 0, 0)):
            date = format_datetime(datetime.now(UTC) + timedelta(minutes=minutes), usegmt=True)
            pause = retry_after(httpx.Response(503, headers={"Retry-After": date}))
            assert pause is not None
            assert low <= pause <= high


class TestConnections:
    @pytest.mark.parametrize(
        "answer",
        [
            Step(body=b"<html>", headers={"Content-Type": "text/html"}),
            Step(307, b"", {"Location": "http://elsewhere.example/"}),
            Step(500, b"<html>", {"Content-Type": "text/html"}),
        ],
    )
    def test_what_is_no_service_is_no_answer(self, answer: Step) -> None:
        with flaky(answer) as server, Client(server.url, key="rp_secret") as client:
            with pytest.raises(ServiceUnavailableError):
                client.evaluate(**TABLE)
            assert len(server.seen) == 1

    def test_the_key_is_sent_and_never_shown(self) -> None:
        with flaky(REPORT) as server, Client(server.url, key="rp_secret") as client:
            client.evaluate(TRUE, PREDICTED)
            assert server.seen[0].headers["authorization"] == "Bearer rp_secret"
            assert "secret" not in repr(client)

    def test_a_large_body_is_compressed(self, service: Client) -> None:
        labels = [str(i % 7) for i in range(30_000)]
        with flaky(REPORT) as server, Client(server.url) as client:
            client.evaluate(labels, labels)
            assert server.seen[0].headers["content-encoding"] == "gzip"
            sent = json.loads(gzip.decompress(server.seen[0].body))
        assert sent == {"y_true": labels, "y_pred": labels}
        assert service.evaluate(labels, labels).overall["accuracy"].value == 1

    def test_a_path_before_the_service_is_kept(self) -> None:
        with flaky(REPORT) as server, Client(f"{server.url}/tools/") as client:
            client.evaluate(TRUE, PREDICTED)
            assert server.seen[0].path == "/tools/v1/evaluate"

    def test_a_client_that_was_handed_in_stays_open(self, server: str) -> None:
        with httpx.Client(base_url=server) as http:
            with Client(http=http) as client:
                assert client.evaluate(**TABLE).labels == ["a", "b"]
            assert http.get("/livez").status_code == 200

    def test_a_transport_can_be_handed_in(self, server: str) -> None:
        seen = []

        class Watching(httpx.HTTPTransport):
            def handle_request(self, request: httpx.Request) -> httpx.Response:
                seen.append(request.url.path)
                return super().handle_request(request)

        with Client(server, transport=Watching()) as client:
            client.evaluate(**TABLE)
        assert seen == ["/v1/evaluate"]

    @pytest.mark.parametrize(
        "address", ["", "rprime.example", "ftp://rprime.example", "http://", "http://a/?b=1"]
    )
    def test_an_address_that_is_none_is_refused(self, address: str) -> None:
        with pytest.raises(ValueError, match=r"not an address|must end"):
            Client(address)

    @pytest.mark.parametrize("key", ["", "rp secret", "rp\nsecret", "rp_sécret"])
    def test_a_key_that_is_none_is_refused_without_repeating_it(self, key: str) -> None:
        with pytest.raises(ValueError, match="key") as caught:
            Client("http://127.0.0.1:1", key=key)
        assert "cret" not in str(caught.value)


def test_json_is_the_only_thing_that_is_asked_for() -> None:
    with flaky(REPORT) as server, Client(server.url) as client:
        client.evaluate(TRUE, PREDICTED)
        assert server.seen[0].headers["accept"] == JSON["Content-Type"]
        assert server.seen[0].headers["user-agent"] == f"rprime/{rprime.__version__}"


def test_a_slice_is_named_in_queries_and_comparisons() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(404)

    crossing = {"region": "EU", "a=b": "x"}
    sides: Any = ({"evaluation": "1"}, {"evaluation": "2"})
    with Client("http://x", transport=httpx.MockTransport(answer)) as client:
        for ask in (client.trend, client.leaderboard):
            with pytest.raises(ProblemError):
                ask("p", slice=crossing)
        with pytest.raises(ProblemError):
            client.compare(*sides, slice=crossing)
    for request in seen[:2]:
        assert dict(read_slice(request.url.params.get_list("slice"))) == crossing
    assert json.loads(seen[2].content)["slice"] == crossing
