"""The recipes of docs/writing-gates.md, each seen to pass and to fail on models of digits."""

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np
import pytest
from jsonschema import Draft202012Validator
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from rprime.commands.mappings import read_mapping
from tests.command import Completed, Run
from tests.examples.recipes import EXAMPLES
from tests.history_service import ServeApp, keeping

PAGE = (EXAMPLES.parent / "docs" / "writing-gates.md").read_text(encoding="utf-8")
_RECIPE = r"\n### ([^\n]+)\n(?:(?!\n#).)*?```yaml\n(.*?)```"
_PART = PAGE.partition("\n## Recipes\n")[2].partition("\n## ")[0]
RECIPES: dict[str, str] = dict(re.findall(_RECIPE, _PART, re.DOTALL))
Array = np.ndarray[Any, Any]
PASS, FAIL, USAGE, INCONCLUSIVE = 0, 1, 2, 3


class Models(NamedTuple):
    """True digits of 899 images, what three models say, and the probabilities of one."""

    true: Array
    svc: Array
    logistic: Array
    bayes: Array
    probabilities: Array

    def sevens_as_nines(self, count: int) -> Array:
        """Return the predictions of the best model, some of its right 7s spoilt."""
        predicted = self.svc.copy()
        predicted[np.flatnonzero((self.true == 7) & (predicted == 7))[:count]] = 9
        return predicted

    def spoilt(self, count: int) -> Array:
        """Return the predictions of the best model, some right ones everywhere spoilt."""
        predicted = self.svc.copy()
        right = np.flatnonzero(self.true == predicted)
        predicted[right[:: right.size // count][:count]] += 1
        return predicted % 10


@pytest.fixture(scope="module")
def models() -> Models:
    images, digits = load_digits(return_X_y=True)
    training, unseen, known_digits, true = train_test_split(
        images, digits, test_size=0.5, random_state=0, stratify=digits
    )
    scaled = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    classifiers = [model.fit(training, known_digits) for model in (SVC(), scaled, GaussianNB())]
    svc, logistic, bayes = (model.predict(unseen) for model in classifiers)
    return Models(true, svc, logistic, bayes, classifiers[1].predict_proba(unseen))


class Desk(NamedTuple):
    """Writes files and runs the command on them."""

    folder: Path
    run: Run
    models: Models

    def columns(self, name: str, predicted: Array, chosen: Any = slice(None), **more: Array) -> str:
        columns = {"y_true": self.models.true, "y_pred": predicted, **more}
        rows = zip(*(column[chosen] for column in columns.values()), strict=True)
        lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
        (self.folder / name).write_text("\n".join(lines), encoding="utf-8")
        return str(self.folder / name)

    def judge(self, gates: str, *arguments: str, **variables: str) -> Completed:
        file = self.folder / "gates.yaml"
        file.write_text(gates, encoding="utf-8")
        return self.run("evaluate", *arguments, "--gates", str(file), "--strict", **variables)

    def against(self, gates: str, candidate: Array, baseline: Array, **more: Any) -> Completed:
        files = (
            self.columns(f"{name}.csv", predicted, **more)
            for name, predicted in (("candidate", candidate), ("baseline", baseline))
        )
        first, second = files
        return self.judge(gates, first, "--baseline", second)


@pytest.fixture
def desk(tmp_path: Path, rprime: Run, models: Models) -> Desk:
    return Desk(tmp_path, rprime, models)


def floor(desk: Desk, gates: str) -> Iterator[Completed]:
    for predicted in (desk.models.svc, desk.models.bayes):
        yield desk.judge(gates, desk.columns("model.csv", predicted))


def differences(desk: Desk, gates: str) -> Iterator[Completed]:
    for candidate in (desk.models.svc, desk.models.bayes):
        yield desk.against(gates, candidate, desk.models.logistic)


def of_sevens(worse: int) -> Callable[[Desk, str], Iterator[Completed]]:
    def runs(desk: Desk, gates: str) -> Iterator[Completed]:
        yield desk.against(gates, desk.models.svc, desk.models.svc)
        done = desk.against(gates, desk.models.sevens_as_nines(worse), desk.models.svc)
        assert re.search("recall of class `7` dropped|predicted as `9` rose", done.stdout)
        yield done

    return runs


def long_tail(desk: Desk, gates: str) -> Iterator[Completed]:
    eights = np.flatnonzero(desk.models.true == 8)
    chosen = np.setdiff1d(np.arange(desk.models.true.size), eights[4:])
    for candidate in (desk.models.svc, desk.models.bayes):
        done = desk.against(gates, candidate, desk.models.logistic, chosen=chosen)
        assert "classes_left_out" in done.stdout
        yield done


def probabilities(desk: Desk, gates: str) -> Iterator[Completed]:
    p = desk.models.probabilities
    sharp = p**8
    for scores in (p, sharp / sharp.sum(1, keepdims=True)):
        files = [
            desk.columns(
                name,
                desk.models.logistic,
                **{f"score:{digit}": matrix[:, digit] for digit in range(10)},
            )
            for name, matrix in (("candidate.csv", scores), ("baseline.csv", p))
        ]
        yield desk.judge(gates, files[0], "--baseline", files[1])


def challenger(desk: Desk, gates: str) -> Iterator[Completed]:
    svc, logistic = desk.models.svc, desk.models.logistic
    yield desk.against(gates, svc, logistic)
    yield desk.against(gates, logistic, svc)
    assert desk.against(gates, svc, svc).returncode == INCONCLUSIVE


def undecided(desk: Desk, gates: str) -> Iterator[Completed]:
    svc, logistic = desk.models.svc, desk.models.logistic
    yield desk.against(gates, svc, logistic)
    yield desk.against(gates, logistic, svc, chosen=slice(60))
    alone = desk.judge(gates, desk.columns("alone.csv", svc))
    assert (alone.returncode, "name it by --baseline" in alone.stderr) == (USAGE, True)


def warned(desk: Desk, gates: str) -> Iterator[Completed]:
    for candidate in (desk.models.svc, desk.models.bayes):
        yield desk.against(gates, candidate, desk.models.svc)
    done = desk.against(gates, desk.models.spoilt(6), desk.models.svc)
    assert "1 result has too few items to pass alone: early." in done.stdout
    assert done.returncode == INCONCLUSIVE


def known_failure(desk: Desk, gates: str) -> Iterator[Completed]:
    assert "expires: 2" in gates
    worse, today = desk.models.sevens_as_nines(27), datetime.now(UTC).date()
    for days in (1, -2):
        until = re.sub(r"expires: .*", f"expires: {today + timedelta(days)}", gates)
        yield desk.against(until, worse, desk.models.svc)
    assert desk.against(gates, desk.models.sevens_as_nines(60), desk.models.svc).returncode == FAIL


ALONE: dict[str, Callable[[Desk, str], Iterator[Completed]]] = {
    "A floor": floor,
    "No worse than the model in use": differences,
    "No class may lose much": of_sevens(40),
    "One critical class": of_sevens(30),
    "A suspected loss fails": of_sevens(12),
    "One costly confusion": of_sevens(12),
    "A long tail of classes": long_tail,
    "Probabilities": probabilities,
    "A challenger must be better": challenger,
    "Nothing undecided, nothing missing": undecided,
    "A warning before the failure": warned,
    "A known failure": known_failure,
}


@pytest.mark.parametrize("title", ALONE)
def test_a_recipe_passes_and_fails(title: str, desk: Desk) -> None:
    passed, failed = ALONE[title](desk, RECIPES[title])
    assert passed.returncode == PASS, passed.stdout + passed.stderr
    assert "Gate passed" in passed.stdout
    assert failed.returncode == FAIL, failed.stdout + failed.stderr
    assert "Gate failed" in failed.stdout


@pytest.fixture
def service(serve_app: ServeApp, tmp_path: Path) -> Iterator[httpx.Client]:
    with keeping(serve_app, tmp_path) as client:
        yield client


def stored(desk: Desk, client: httpx.Client, predicted: Array, gates: str, *more: str) -> Completed:
    """Evaluate and keep as the newest version, with its id in report.json."""
    file = desk.columns("model.csv", predicted)
    arguments = (
        "--project",
        "digits",
        "--model",
        "svc",
        "--json-file",
        str(desk.folder / "r.json"),
    )
    return desk.judge(gates, file, *arguments, *more, RPRIME_SERVER=str(client.base_url))


def point(desk: Desk, client: httpx.Client, alias: str) -> None:
    report = str(desk.folder / "r.json")
    server = {"RPRIME_SERVER": str(client.base_url)}
    # By hand, as people do, whatever the gate said.
    arguments = (report, alias, "--project", "digits", "--force")
    assert desk.run("promote", *arguments, **server).returncode == 0


def test_no_slow_decline(desk: Desk, service: httpx.Client) -> None:
    gates = RECIPES["No slow decline"]
    plain = gates.partition("anchor:")[0]
    stored(desk, service, desk.models.svc, plain, "--baseline", "alias=champion")
    for alias in ("agreed", "champion"):
        point(desk, service, alias)
    champion = ("--baseline", "alias=champion")
    passed = stored(desk, service, desk.models.svc, gates, *champion)
    assert (passed.returncode, "Gate passed" in passed.stdout) == (PASS, True), passed.stderr
    stored(desk, service, desk.models.spoilt(25), plain, *champion)
    point(desk, service, "champion")
    alone = stored(desk, service, desk.models.spoilt(50), plain, *champion)
    assert alone.returncode != FAIL, alone.stdout
    failed = stored(desk, service, desk.models.spoilt(50), gates, *champion)
    assert failed.returncode == FAIL, failed.stdout
    assert "anchor" in failed.stdout


def test_many_candidates_on_one_test_set(desk: Desk, service: httpx.Client) -> None:
    gates = RECIPES["Many candidates, one test set"]
    stored(desk, service, desk.models.svc, gates, "--baseline", "alias=champion")
    point(desk, service, "champion")
    # The same predictions again are no new look.
    for number, (predicted, status) in enumerate(
        ((desk.models.svc, PASS), (desk.models.bayes, FAIL)), 1
    ):
        done = stored(desk, service, predicted, gates, "--baseline", "alias=champion")
        assert done.returncode == status, done.stdout
        gate = json.loads((desk.folder / "r.json").read_text(encoding="utf-8"))["gate"]
        assert (gate["look"], gate["alpha"]) == (number, 0.05 / (number * (number + 1))), gate


def test_every_recipe_is_tested() -> None:
    last = {"No slow decline", "Many candidates, one test set"}
    assert set(RECIPES) == set(ALONE) | last
    assert len(re.findall(r"\n### ", _PART)) == len(RECIPES)


def test_an_editor_knows_every_recipe_and_explains_every_member(
    rprime: Run, tmp_path: Path
) -> None:
    schema = json.loads(rprime("gates-schema").stdout)
    validator = Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
    file = tmp_path / "gates.yaml"
    for title, recipe in RECIPES.items():
        file.write_text(recipe, encoding="utf-8")
        # Of a date, an editor sees the text.
        content = json.loads(json.dumps(read_mapping(file, "gates"), default=str))
        assert [error.message for error in validator.iter_errors(content)] == [], title
        content["rules"][0]["maxdrop"] = 0.1
        assert not validator.is_valid(content)
    objects = [schema, *schema["$defs"].values()]
    members = [
        member for definition in objects for member in definition.get("properties", {}).values()
    ]
    assert len(members) > 30
    assert all(len(member["description"]) > 10 for member in members)
