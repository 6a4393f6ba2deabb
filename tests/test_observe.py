"""What operations.md says of metrics and events, and the alerts, follow from the code."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import rprime
from rprime.auth import keys
from tests.examples.recipes import EXAMPLES
from tests.history_service import matrix
from tests.services import Serve

PACKAGE = Path(rprime.__file__).parent
PAGE = (EXAMPLES.parent / "docs/operations.md").read_text(encoding="utf-8")
RULES = EXAMPLES / "monitoring/rprime-rules.yml"
PARTS = re.compile(r"_(bucket|count|sum)$")


def listed(head: str) -> set[str]:
    """Return the names in the first column of a table."""
    table = PAGE.partition(f"| {head} |")[2].partition("\n\n")[0]
    rows = [line.split("|")[1] for line in table.splitlines()[2:]]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def events() -> Iterator[str]:
    """Yield the events that the service logs."""
    for path in PACKAGE.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(call, ast.Call):
                continue
            called, arguments = call.func, call.args
            if ast.unparse(called) == "partial":
                called, *arguments = arguments
            if not isinstance(called, ast.Attribute):
                continue
            logger = ast.unparse(called.value)
            logs = logger in {"log", "_log"} or logger.startswith("structlog.get_logger(")
            if logs and called.attr in {"info", "warning", "error"}:
                event = arguments[0]
                assert isinstance(event, ast.Constant), f"{path}: the event is no literal"
                yield str(event.value)


@pytest.fixture(scope="module")
def scrape(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the metrics of a service with keys and a store, after some requests."""
    path = tmp_path_factory.mktemp("observed") / "keys.json"
    token = keys.create(path, ["evaluate", "read"])[1]
    with serve(RPRIME_KEYS_FILE=str(path)) as client:
        client.headers["Authorization"] = f"Bearer {token}"
        client.post("/evaluate", json=matrix()).raise_for_status()
        return client.get("/metrics").text


def families(scrape: str) -> set[str]:
    return set(re.findall(r"^# TYPE (\w+) ", scrape, re.MULTILINE))


def test_every_metric_is_listed(scrape: str) -> None:
    metrics = {name for name in families(scrape) if name.startswith("rprime_")}
    assert listed("metric") == metrics


def test_every_event_is_listed() -> None:
    names = set(events())
    assert len(names) > 15
    assert listed("event") == names


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    alerts: list[dict[str, Any]] = group["rules"]
    return alerts


def test_an_alert_names_metrics_and_labels_of_a_real_scrape(scrape: str) -> None:
    metrics = families(scrape) | {"up"}
    labels = {"job", "instance", "le", *re.findall(r"[{,](\w+)=", scrape)}
    labels |= {"cause", "kind", "reason"}  # of series that begin with the first failure
    used = set()
    for rule in rules():
        expression = rule["expr"]
        names = set(re.findall(r"\b(?:rprime_\w+|process_\w+|up)\b", expression))
        assert names, rule["alert"]
        used |= {PARTS.sub("", name) for name in names}
        for matcher in re.findall(r"\{(.*?)\}", expression):
            assert set(re.findall(r"(\w+)[!=]?[=~]", matcher)) <= labels
        for by in re.findall(r"by \((.*?)\)", expression):
            assert set(by.split(", ")) <= labels
        assert expression.count("(") == expression.count(")")
    assert used <= metrics
    assert len(used) >= 10


def test_the_alerts_of_the_keys_can_fire(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    token = keys.create(path, ["read"])[1]
    alerts = {rule["alert"]: rule for rule in rules()}
    with serve(RPRIME_KEYS_FILE=str(path), RPRIME_STORE="none") as client:
        client.headers["Authorization"] = f"Bearer {token}"
        assert client.get("/metrics").status_code == 200
        path.write_text("no keys", encoding="utf-8")
        series, _, above = alerts["RprimeKeysFile"]["expr"].partition(" > ")
        assert above == "0"
        assert f"{series} 1.0" in client.get("/metrics").text
        path.unlink()
        assert client.get("/metrics").status_code == 401
    assert re.search(r"401: .* keys_missing", alerts["RprimeDown"]["annotations"]["action"])


def test_an_alert_says_what_and_what_to_do() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names)
    for rule in rules():
        assert set(rule) - {"for"} == {"alert", "expr", "labels", "annotations"}
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert set(rule["annotations"]) == {"summary", "action"}
        for name in re.findall(r"\b[a-z]+_[a-z_]+\b", rule["annotations"]["action"]):
            assert name in listed("event"), name
