"""The questions that a history answers, each by one command: of a service, and of a store."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rprime import Client
from tests.command import Run
from tests.history_service import ServeApp, keep, keeping

DIGITS = [str(digit) for digit in range(10)]
COMMITS = {version: f"{version:040x}" for version in range(9, 13)}


def digits(version: int, *, model: str = "logreg", sevens_as_nines: int = 0) -> dict[str, Any]:
    """Return 1000 items, a hundred of each digit; later versions have fewer errors."""
    errors = 14 - version if version > 8 else 6
    table = np.diag([100 - 9 * errors] * 10) + errors * (1 - np.eye(10, dtype=int))
    table[7, 7] -= sevens_as_nines
    table[7, 9] += sevens_as_nines
    names = {"project": "digits", "model": model, "version": f"v{version}", "branch": "main"}
    evidence = {"confusion_matrix": table.tolist(), "labels": DIGITS}
    commit = f"{version + (0 if model == 'logreg' else 100):040x}"
    return {**evidence, **names, "commit": commit, "test_set": {"id": "digits"}}


@pytest.fixture(params=["service", "store"])
def where(
    request: pytest.FixtureRequest, serve_app: ServeApp, tmp_path: Path
) -> Iterator[tuple[dict[str, str], dict[str, dict[str, Any]]]]:
    """Four versions of a model and one of another; v12 takes most 7s for 9s."""
    with keeping(serve_app, tmp_path) as client:
        reports = {f"v{v}": keep(client, digits(v)) for v in (9, 10, 11)}
        reports["knn"] = keep(client, digits(5, model="knn"))
        reports["v12"] = keep(client, digits(12, sevens_as_nines=60))
        if request.param == "service":
            yield {"RPRIME_SERVER": str(client.base_url)}, reports
    if request.param == "store":
        yield {"RPRIME_STORE": f"sqlite:///{tmp_path}/rprime.db"}, reports


@pytest.mark.parametrize("command", ["", "trend", "leaderboard"])
def test_a_wrong_index_is_named(rprime: Run, where: Any, command: str) -> None:
    arguments = ("history", *command.split(), "--project", "digits", "--index", "acuracy")
    done = rprime(*arguments, **where[0])
    assert done.returncode == 2
    message = "'acuracy': The catalog has no such index. Did you mean `accuracy`?"
    place = "/query/index" if command else "/query/index/0"
    assert f"{place}: {message}" in done.stderr


def test_the_four_questions(rprime: Run, where: tuple[dict[str, str], dict[str, Any]]) -> None:
    environment, reports = where

    def ask(command: str) -> str:
        arguments = command.split()
        if arguments[0] != "compare":
            arguments.insert(0, "history")
        done = rprime(*arguments, "--project", "digits", **environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    best = ask("leaderboard --index r_prime --model logreg").splitlines()
    assert best[0].split() == ["TIER", "MODEL", "VERSION", "VALUE", "INTERVAL", "ID"]
    assert best[1].split()[:3] == ["1", "logreg", "v12"]
    assert best[1].split()[-1] == reports["v12"]["id"]

    worse = ask("trend --index recall --class 7 --model logreg")
    values = [line.split()[4] for line in worse.splitlines()[1:5]]
    assert values == ["0.5500", "0.6400", "0.7300", "0.2200"]
    assert "It got worse most from logreg v11 to logreg v12: \N{MINUS SIGN}0.5100" in worse
    explained = worse[worse.index("It got worse") :].splitlines()[1:]
    assert explained[0].split() == ["TRUE", "CLASS", "PREDICTED", "AS", "WAS", "IS"]
    assert ["7", "9", "3", "62"] in [line.split() for line in explained]

    difference = ask("compare version=v12 version=v11")
    assert "Change" in difference
    answer = json.loads(ask("compare version=v12 version=v11 --json"))["comparison"]
    assert answer["baseline"]["requested"] == {"version": "v11"}
    assert answer["baseline"]["resolved"] == reports["v11"]["id"]
    assert answer["per_class"]["7"]["recall"]["value"] == pytest.approx(-0.51)
    assert f"{answer['overall']['accuracy']['value']:+.4f}"[1:] in difference

    then = json.loads(ask(f"show --commit {COMMITS[10]} --json"))
    assert (then["id"], then["version"]) == (reports["v10"]["id"], "v10")
    assert then["overall"] == reports["v10"]["overall"]
    shown = ask(f"show --commit {COMMITS[10]}")
    assert f"{then['overall']['accuracy']['value']:.4f}" in shown


def test_a_short_commit_is_enough_if_it_is_of_one(
    rprime: Run, where: tuple[dict[str, str], dict[str, Any]]
) -> None:
    environment, reports = where
    show = ("history", "show", "--project", "digits", "--json", "--commit")
    done = rprime(*show, COMMITS[10][:39] + "a", **environment)
    assert json.loads(done.stdout)["id"] == reports["v10"]["id"]
    several = rprime(*show, COMMITS[10][:12], **environment)
    assert several.returncode == 2
    assert "several commits begin like this" in several.stderr


def test_a_list_has_values_and_commits(
    rprime: Run, where: tuple[dict[str, str], dict[str, Any]]
) -> None:
    environment, reports = where
    arguments = ("history", "--project", "digits", "--index", "accuracy")
    lines = rprime(*arguments, **environment).stdout.splitlines()
    assert "ACCURACY" in lines[0]
    for line, version in zip(lines[1:], ("v12", "knn", "v11", "v10", "v9"), strict=True):
        report = reports[version]
        assert f" {report['overall']['accuracy']['value']:.4f} " in line
        assert f" {report['commit'][:12]} " in line
    listed = rprime(*arguments, "--commit", COMMITS[11], "--json", **environment)
    (only,) = map(json.loads, listed.stdout.splitlines())
    assert only["id"] == reports["v11"]["id"]
    shown = reports["v11"]["overall"]["accuracy"]
    assert only["values"]["accuracy"]["value"] == pytest.approx(shown["value"], abs=1e-12)
    several = rprime(*arguments, "--index", "mcc", **environment).stdout.splitlines()
    assert several[0].split()[5:7] == ["ACCURACY", "MCC"]


def test_a_purge_keeps_the_last_of_each_model(
    rprime: Run, where: tuple[dict[str, str], dict[str, Any]]
) -> None:
    environment, _ = where
    arguments = ("history", "purge", "--project", "digits", "--keep-last", "1")
    assert "3 would be deleted, 2 kept" in rprime(*arguments, "--dry-run", **environment).stderr
    assert "3 deleted, 2 kept" in rprime(*arguments, **environment).stderr
    assert rprime("history", "purge", "--project", "digits", **environment).returncode == 2


def test_what_is_not_there_is_said(
    rprime: Run, where: tuple[dict[str, str], dict[str, Any]]
) -> None:
    environment, _ = where
    for command, message in (
        ("show --project digits --version v77", "digits has no evaluation of version v77"),
        ("show", "name an id"),
        ("trend --project digits --index recal", "recall"),
        ("", "name the --project"),
    ):
        done = rprime("history", *command.split(), **environment)
        assert done.returncode == 2, command
        assert message in done.stderr


def test_a_wrong_place_is_named(rprime: Run, server: str, tmp_path: Path) -> None:
    done = rprime("history", "--project", "p", "--store", f"sqlite:///{tmp_path / 'none.db'}")
    assert done.returncode == 2
    assert done.stderr.startswith("rprime: There is no store at ")
    assert "a service by --server or RPRIME_SERVER" in done.stderr
    (tmp_path / "a.json").write_text('{"confusion_matrix": [[1]]}')
    url = f"{server}/elsewhere"
    done = rprime("evaluate", f"{tmp_path / 'a.json'}", "--server", url)
    assert done.returncode == 2
    assert done.stderr.startswith(f"rprime: {url}: Not found.")


def test_both_clients_ask_the_same(serve_app: ServeApp, tmp_path: Path) -> None:
    with keeping(serve_app, tmp_path) as service:
        reports = [keep(service, digits(v)) for v in (10, 11)]
        with Client(str(service.base_url)) as client:
            page = client.evaluations("digits", commit=COMMITS[10])
            assert [item.id for item in page.items] == [reports[0]["id"]]
            assert client.evaluation(reports[1]["id"]).to_dict() == reports[1]
            trend = client.trend("digits", "recall", class_="7", model="logreg")
            assert [item.value for item in trend.items] == [0.64, 0.73]
            (tier,) = client.leaderboard("digits", test_set="digits", limit=1).tiers
            assert tier.versions[0].version == "v11"
            assert client.purge("digits", keep_last=1, dry_run=True).deleted == 1


def test_the_slices_of_an_evaluation_are_shown(
    rprime: Run, serve_app: ServeApp, tmp_path: Path
) -> None:
    true, wrong = ["a", "b"] * 200, ["a", "a"] * 50
    slices = {"region": ["EU"] * 100 + ["US"] * 300}
    request = {"y_true": true, "y_pred": wrong + true[100:], "slices": slices, "project": "pets"}
    with keeping(serve_app, tmp_path) as client:
        kept = keep(client, request)
    store = {"RPRIME_STORE": f"sqlite:///{tmp_path}/rprime.db"}
    shown = rprime("history", "show", kept["id"], **store).stdout.splitlines()
    at = next(i for i, line in enumerate(shown) if line.startswith("SLICE, WEAKEST FIRST"))
    assert shown[at].split()[3:] == ["ITEMS", "ACCURACY", "INTERVAL", "TO", "THE", "REST"]
    assert shown[at + 1].split()[:3] == ["region=EU", "100", "0.5000"]
    assert shown[at + 1].endswith("\N{MINUS SIGN}0.5000")
    assert shown[at + 2].split()[:3] == ["region=US", "300", "1.0000"]
    alone = rprime("history", "show", kept["id"], "--slice", "region=EU", **store)
    assert "region=EU, 100 items" in alone.stdout
    assert "SLICE, WEAKEST FIRST" not in alone.stdout
    options = ("--slice", "region=US", "--json")
    part = json.loads(rprime("history", "show", kept["id"], *options, **store).stdout)
    assert (part["slice"], part["overall"]["accuracy"]["value"]) == ({"region": "US"}, 1.0)
    unknown = rprime("history", "show", kept["id"], "--slice", "region=Eu", **store)
    assert unknown.returncode == 2
    assert "Did you mean `region=EU`" in unknown.stderr
    plain = json.loads(rprime("history", "show", kept["id"], "--json", **store).stdout)
    assert plain["slices"] == kept["slices"]


@pytest.mark.parametrize("command", ["trend", "leaderboard"])
def test_what_names_no_slice_ends_with_2(rprime: Run, command: str) -> None:
    done = rprime("history", command, "--project", "pets", "--slice", "region")
    assert done.returncode == 2
    assert "--slice region: Name a slice by the value of each of its columns" in done.stderr


def test_a_trend_of_a_class_prints_no_table_without_rows(
    rprime: Run, serve_app: ServeApp, tmp_path: Path
) -> None:
    true = ["a", "b"] * 200
    with keeping(serve_app, tmp_path) as client:
        for version, wrong in (("1", 10), ("2", 120)):
            predicted = ["b" if place < wrong else label for place, label in enumerate(true)]
            names = {"project": "p", "model": "m", "version": version}
            slices = {"region": ["EU", "US"] * 200}
            keep(client, {"y_true": true, "y_pred": predicted, "slices": slices, **names})
        server = {"RPRIME_SERVER": str(client.base_url)}
        arguments = ("history", "trend", "--project", "p", "--index")
        whole = rprime(*arguments, "accuracy", **server).stdout
        of_class = rprime(*arguments, "recall", "--class", "a", **server).stdout
    assert ("SLICE" in whole, "SLICE" in of_class) == (True, False)
    assert "It got worse most from m 1 to m 2" in of_class
