"""The commands of the history: on a store that is in use, and on one that is not."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rprime.auth import keys
from tests.command import Run
from tests.failing_service import BUSY, Step, flaky, stopped
from tests.history_service import TRUE, ServeApp, keep, keeping, labels, matrix, predicted


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/rprime.db"


def test_a_history_is_listed_beside_its_service_and_by_it(
    rprime: Run, serve_app: ServeApp, url: str, tmp_path: Path
) -> None:
    with keeping(serve_app, tmp_path) as client:
        old = keep(client, matrix(1, version="1", model="a", commit="0123456789abcdef"))["id"]
        new = keep(client, matrix(2, version="2", branch="main"))["id"]
        for more in ((), ("--server", str(client.base_url))):
            listed = rprime("history", "--project", "pets", *more, RPRIME_STORE=url)
            assert listed.returncode == 0, listed.stderr
            lines = listed.stdout.splitlines()
            assert lines[0].split()[0] == "CREATED"
            assert [line.split()[-1] for line in lines[1:]] == [new, old]
            for filter_ in (("--model", "a"), ("--commit", "0123456789abcdef")):
                narrowed = rprime(
                    "history", "--project", "pets", "--json", *filter_, *more, RPRIME_STORE=url
                )
                assert [json.loads(line)["id"] for line in narrowed.stdout.splitlines()] == [old]
            assert " 0123456789ab " in lines[2]


def test_a_job_promotes_by_the_service(
    rprime: Run, serve_app: ServeApp, url: str, tmp_path: Path
) -> None:
    path = tmp_path / "keys.json"
    _, token = keys.create(path, ["evaluate", "write"], project="pets")
    with keeping(serve_app, tmp_path, keys_file=path) as client:
        client.headers["Authorization"] = f"Bearer {token}"
        ids = [keep(client, matrix(errors))["id"] for errors in (1, 2)]
        there = {"RPRIME_SERVER": str(client.base_url), "RPRIME_KEY": token}
        for identifier in ids:
            done = rprime("promote", identifier, "champion", "--project", "pets", **there)
            assert done.returncode == 0, done.stderr
            alias = client.get("/v1/projects/pets/aliases/champion").json()
            assert alias["evaluation"] == identifier
        wrong = rprime("promote", "nothing", "champion", "--project", "pets", **there)
        assert (wrong.returncode, "no such evaluation" in wrong.stderr) == (2, True)
        held = rprime("promote", ids[0], "champion", "--project", "pets", RPRIME_STORE=url)
        assert (held.returncode, f"uses {tmp_path}/rprime.db" in held.stderr) == (2, True)
    away = rprime("promote", ids[0], "champion", "--project", "pets", "--retries", "0", **there)
    assert away.returncode == 4


@dataclass
class Promoting:
    rprime: Run
    reports: dict[str, dict[str, Any]]
    where: dict[str, str]

    def __call__(self, version: str, *more: str, status: int = 0) -> str:
        """Promote an evaluation; return what was said."""
        identifier = self.reports.get(version, {}).get("id", version)
        arguments = ("champion", "--project", "pets", *more)
        done = self.rprime("promote", identifier, *arguments, **self.where)
        assert done.returncode == status, done.stderr
        return done.stderr.splitlines()[-1]

    def points_at(self, version: str) -> str:
        return f"rprime: champion of pets points at {self.reports[version]['id']}"


@pytest.fixture(params=["service", "store"])
def promoting(
    request: pytest.FixtureRequest, rprime: Run, serve_app: ServeApp, url: str, tmp_path: Path
) -> Iterator[Promoting]:
    """Three evaluations of a project: without a gate, passed, failed; and `rprime promote`."""
    floor = {"rules": [{"index": "accuracy", "min_value": 0.8}]}
    with keeping(serve_app, tmp_path) as client:
        reports = [
            keep(client, matrix(1, version="open")),
            keep(client, matrix(2, version="passed", gates=floor)),
            keep(client, matrix(30, version="failed", gates=floor)),
        ]
        there = {"RPRIME_SERVER": str(client.base_url)}
        if request.param == "service":
            yield Promoting(rprime, {r["version"]: r for r in reports}, there)
    if request.param == "store":
        yield Promoting(rprime, {r["version"]: r for r in reports}, {"RPRIME_STORE": url})


STAYS = "rprime: champion of pets is set already and stays as it is"


def test_an_absent_alias_is_set_once(promoting: Promoting) -> None:
    assert promoting("open", "--if-absent") == promoting.points_at("open")
    assert promoting("passed", "--if-absent") == STAYS
    assert promoting("passed") == promoting.points_at("passed")


def test_only_a_pass_moves_an_alias(promoting: Promoting) -> None:
    unset = "rprime: champion of pets is not set (--if-absent sets it): the verdict is"
    assert promoting("open", "--if-passed") == f"{unset} no_gate"
    assert promoting("open", "--if-absent") == promoting.points_at("open")
    stays = "rprime: champion of pets stays as it is: the verdict is"
    assert promoting("open", "--if-passed") == f"{stays} no_gate"
    assert promoting("failed", "--if-passed") == f"{stays} fail"
    assert promoting("passed", "--if-passed", "--if-absent") == STAYS
    assert promoting("passed", "--if-passed") == promoting.points_at("passed")


def test_a_failed_evaluation_is_promoted_by_force_alone(promoting: Promoting) -> None:
    assert "is not set" in promoting("failed", "--if-absent")
    assert "--force points champion at it" in promoting("failed", status=2)
    assert promoting("failed", "--force") == promoting.points_at("failed")


def test_a_candidate_that_left_out_its_wrong_items_is_not_promoted(
    rprime: Run, serve_app: ServeApp, tmp_path: Path
) -> None:
    """The same answers with and without the rows of b that became a."""
    true = ["b" if i % 10 == 0 else "a" for i in range(2000)]
    old = [t if i % 7 else "a" for i, t in enumerate(true)]
    worse = [
        "a" if t == "b" and i > 200 else p for i, (t, p) in enumerate(zip(true, old, strict=True))
    ]
    answered = [i for i, t in enumerate(true) if not (t == "b" and i > 200)]
    gates = {
        "rules": [
            {"index": "accuracy", "max_drop": 0.02},
            {"index": "recall", "classes": "all", "max_drop": 0.1, "min_items": 10},
        ]
    }

    (tmp_path / "gates.json").write_text(json.dumps(gates))
    judged = ("--baseline", "alias=champion", "--gates", str(tmp_path / "gates.json"))

    with keeping(serve_app, tmp_path) as client:
        there = {"RPRIME_SERVER": str(client.base_url)}

        def store(version: str, predicted: list[str], items: Sequence[int], *options: str) -> str:
            rows = "".join(f"{i},{true[i]},{predicted[i]}\n" for i in items)
            body, report = tmp_path / f"{version}.csv", tmp_path / f"{version}.json"
            body.write_text(f"item_id,y_true,y_pred\n{rows}")
            origin = ("--project", "pets", "--version", version, "--json-file", str(report))
            rprime("evaluate", str(body), *origin, *options, **there)
            identifier: str = json.loads(report.read_text())["id"]
            return identifier

        champion = store("first", old, range(2000))
        rprime("promote", champion, "champion", "--project", "pets", **there)
        for version, predicted, items, moves in (
            ("all", worse, range(2000), False),
            ("lost", worse, answered, False),
            ("same", old, range(2000), True),
        ):
            candidate = store(version, predicted, items, *judged)
            rprime("promote", candidate, "champion", "--project", "pets", "--if-passed", **there)
            alias = client.get("/v1/projects/pets/aliases/champion").json()
            assert alias["evaluation"] == (candidate if moves else champion), version


def test_a_report_names_its_evaluation(promoting: Promoting, tmp_path: Path) -> None:
    path = tmp_path / "rprime.json"
    path.write_text(json.dumps(promoting.reports["open"]))
    assert promoting(str(path)) == promoting.points_at("open")
    for content, message in (("{}", "not stored"), ("[]", "no report"), ("{", "no report")):
        path.write_text(content)
        assert message in promoting(str(path), status=2)
    assert "cannot read" in promoting("missing.json", status=2)


def test_an_unknown_evaluation_is_not_promoted(promoting: Promoting) -> None:
    for more in ((), ("--if-absent",), ("--if-passed",)):
        told = promoting("01k9d3hv5gw2zj4t8x6c7m1n0p", *more, status=2)
        assert "there is no such evaluation" in told


def test_a_first_evaluation_is_announced(rprime: Run, serve_app: ServeApp, tmp_path: Path) -> None:
    file = tmp_path / "request.json"
    with keeping(serve_app, tmp_path) as client:
        for errors, announced in ((1, True), (1, False), (2, False)):
            file.write_text(json.dumps(matrix(errors, project=None)))
            arguments = ("--project", "petz", "--server", str(client.base_url), "--json")
            done = rprime(
                "evaluate", str(file), *arguments, "--tag", "again" if announced else "new"
            )
            assert done.returncode == 0, done.stderr
            assert ("FIRST evaluation of project petz" in done.stderr) is announced
            identifier, again = json.loads(done.stdout)["id"], errors == 1 and not announced
            message = (
                f"stored already, as {identifier} without these `tags`, and stays so: delete it"
            )
            assert (message in done.stderr) is again


def test_a_baseline_of_another_model_is_named(
    rprime: Run, serve_app: ServeApp, tmp_path: Path
) -> None:
    file = tmp_path / "request.json"
    file.write_text(json.dumps(matrix(3, project=None)))
    with keeping(serve_app, tmp_path) as client:
        names = {"model": "knn", "version": "4", "branch": "a,b=c"}
        identifier = keep(client, matrix(1, **names))["id"]
        arguments = (
            "--project",
            "pets",
            "--model",
            "svc",
            "--server",
            str(client.base_url),
            "--json",
        )
        for number, name in enumerate(
            ("version=4,model=knn", "branch=a,b=c,model=knn", "latest,model=knn")
        ):
            version = ("--version", str(number))
            done = rprime("evaluate", str(file), "--baseline", name, *arguments, *version)
            assert done.returncode == 0, done.stderr
            assert json.loads(done.stdout)["comparison"]["baseline"]["resolved"] == identifier
        typo = rprime("evaluate", str(file), "--baseline", "version=4,model=knm", *arguments)
        assert typo.returncode == 2
        assert "The nearest models: `knn`" in typo.stderr


def test_two_stored_evaluations_are_compared(
    rprime: Run, serve_app: ServeApp, tmp_path: Path
) -> None:
    gates = tmp_path / "gates.yaml"
    gates.write_text("rules: [{index: accuracy, max_drop: 0.02}]")
    with keeping(serve_app, tmp_path) as client:
        old, new = (keep(client, labels(1, w, version=str(w)))["id"] for w in (0.1, 0.4))
        there = ("--server", str(client.base_url))
        body = {"candidate": {"evaluation": new}, "baseline": {"evaluation": old}}
        expected = client.post("/v1/compare", json=body).json()
        for name in (f"evaluation={old}", "version=0.1"):
            done = rprime("compare", f"evaluation={new}", name, "--json", *there)
            assert done.returncode == 0, done.stderr
            answer = json.loads(done.stdout)
            answer["comparison"]["baseline"] = expected["comparison"]["baseline"]
            assert answer == expected
        arguments = ("compare", f"evaluation={new}", f"evaluation={old}")
        shown = rprime(*arguments, "--gates", str(gates), *there)
        assert shown.returncode == 1, shown.stderr
        assert "Gate failed" in shown.stdout
        assert f"{expected['comparison']['overall']['accuracy']['value']:+.4f}"[1:] in shown.stdout
        assert rprime("promote", old, "champion", "--project", "pets", *there).returncode == 0
        names = (("latest", "version=0.1"), ("version=0.4", "alias=champion"))
        for sides in (*names, ("alias=champion", f"evaluation={old}")):
            done = rprime("compare", *sides, "--project", "pets", "--json", *there)
            answer = json.loads(done.stdout)["comparison"]
            assert answer["baseline"]["resolved"] == old, done.stderr
            same = sides[0] == "alias=champion"
            assert (answer["overall"]["accuracy"]["value"] == 0) is same
        file = tmp_path / "items.csv"
        items = zip(TRUE, predicted(1, 0.4), strict=True)
        file.write_text("\n".join(["y_true,y_pred", *map(",".join, items)]))
        of_pets = (*there, "--project", "pets")
        done = rprime("compare", str(file), "version=0.1", "--json", *of_pets)
        answer = json.loads(done.stdout)["comparison"]
        assert answer["overall"]["accuracy"] == expected["comparison"]["overall"]["accuracy"]
        for wrong, message in (
            (("latest", "champion.csv"), "champion.csv names none"),
            (("version=7", "latest"), "There is no evaluation of version `7` without a model"),
            (
                ("alias=nobody", "latest"),
                "Project `pets` has no alias `nobody`. Known aliases: `champion`",
            ),
        ):
            refused = rprime("compare", *wrong, *of_pets)
            assert (refused.returncode, message in refused.stderr) == (2, True), refused.stderr
        lost = rprime("compare", "latest", f"evaluation={old}", *there)
        assert (lost.returncode, "--project" in lost.stderr) == (2, True)
    here = rprime(*arguments, "--json", RPRIME_STORE=f"sqlite:///{tmp_path}/rprime.db")
    assert json.loads(here.stdout)["comparison"]["overall"] == expected["comparison"]["overall"]


def test_all_numbers_of_a_stored_comparison_are_about_the_same_items(
    rprime: Run, serve_app: ServeApp, tmp_path: Path
) -> None:
    """The value, the baseline and the change: of a slice, and at a population."""
    site = ["x" if i % 3 else "y" for i in range(len(TRUE))]
    with keeping(serve_app, tmp_path) as client:
        old, new = (keep(client, labels(1, w, slices={"site": site}))["id"] for w in (0.1, 0.4))
        shares = {"prevalence": {"cat": 0.8, "dog": 0.1, "eel": 0.1}}
        mapped = {"strata": "predicted", "shares": shares["prevalence"]}
        weighed, on_map = (
            keep(client, labels(2, 0.3, population=p))["id"] for p in (shares, mapped)
        )
        of: tuple[Any, ...] = ("--slice", "site=x")
        for candidate, more, sentence in (
            (new, of, "site=x"),
            (weighed, (), "cat 0.8, dog 0.1, eel 0.1"),
            (on_map, (), "400 items"),
        ):
            arguments = ("compare", f"evaluation={candidate}", f"evaluation={old}", *more)
            arguments += ("--server", str(client.base_url))
            answer = json.loads(rprime(*arguments, "--json").stdout)["comparison"]
            shown = rprime(*arguments).stdout
            assert sentence in shown.splitlines()[0]
            [line] = [line for line in shown.splitlines() if line.startswith("  Accuracy ")]
            accuracy = answer["overall"]["accuracy"]
            assert [f"{accuracy[side]:.4f}" in line for side in ("candidate", "baseline")] == [
                True
            ] * 2
            assert f"{abs(accuracy['value']):.4f}" in line


def test_a_history_is_saved_and_brought_back(
    rprime: Run, serve_app: ServeApp, url: str, tmp_path: Path
) -> None:
    with keeping(serve_app, tmp_path) as client:
        report = keep(client, matrix(1, version="1"))
        saved = rprime("export", "--output", str(tmp_path / "all.ndjson"), RPRIME_STORE=url)
        assert saved.returncode == 0, saved.stderr
        printed = rprime("export", RPRIME_STORE=url).stdout.splitlines()
        assert [next(iter(json.loads(line))) for line in printed][:2] == [
            "rprime_export",
            "evaluation",
        ]
        copied = rprime("backup", str(tmp_path / "copy.db"), RPRIME_STORE=url)
        assert copied.returncode == 0, copied.stderr
        assert rprime("backup", str(tmp_path / "copy.db"), RPRIME_STORE=url).returncode == 2
        nowhere = rprime("backup", str(tmp_path / "no" / "copy.db"), RPRIME_STORE=url)
        message = f"rprime: There is no folder {tmp_path}/no; make it first.\n"
        assert (nowhere.returncode, nowhere.stderr) == (2, message)
        in_use = rprime("import", str(tmp_path / "all.ndjson"), RPRIME_STORE=url)
        assert (in_use.returncode, f"uses {tmp_path}/rprime.db" in in_use.stderr) == (2, True)
        assert "If that is a service, name it by --server or RPRIME_SERVER." in in_use.stderr
    other = f"sqlite:///{tmp_path}/other.db"
    brought = rprime("import", str(tmp_path / "all.ndjson"), RPRIME_STORE=other)
    assert (brought.returncode, "1 evaluations" in brought.stderr) == (0, True)
    promoted = rprime("promote", report["id"], "main", "--project", "pets", RPRIME_STORE=other)
    assert promoted.returncode == 0, promoted.stderr
    for place in (other, f"sqlite:///{tmp_path}/copy.db"):
        with keeping(serve_app, tmp_path, store=place) as client:
            assert client.get(report["links"]["self"]).json() == report


def test_a_history_moves_from_service_to_service(
    rprime: Run, serve_app: ServeApp, tmp_path: Path
) -> None:
    file = tmp_path / "all.ndjson"
    with keeping(serve_app, tmp_path) as client:
        report = keep(client, matrix(1, version="1"))
        there = {"RPRIME_SERVER": str(client.base_url)}
        done = rprime("export", "--project", "pets", "--output", str(file), **there)
        assert done.returncode == 0, done.stderr
        nothing = rprime("history", "--project", "nothing", **there)
        assert (nothing.returncode, "no project nothing" in nothing.stderr) == (2, True)
    with keeping(serve_app, tmp_path, store=f"sqlite:///{tmp_path}/other.db") as client:
        brought = rprime("import", str(file), "--server", str(client.base_url))
        assert (brought.returncode, "1 evaluations" in brought.stderr) == (0, True)
        assert client.get(report["links"]["self"]).json() == report


@pytest.mark.parametrize(
    "command",
    [
        ("history", "--project", "pets"),
        ("promote", "id", "champion", "--project", "pets"),
        ("export",),
        ("import", "{file}"),
    ],
)
def test_an_outage_ends_with_4(rprime: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "all.ndjson").write_text("{}\n")
    arguments = [part.format(file=tmp_path / "all.ndjson") for part in command]
    waits = Step(after=40)
    with flaky(BUSY) as busy, flaky(waits) as slow:
        for url, message in (
            (stopped(), "refused"),
            (busy.url, "503"),
            (slow.url, "no answer in time"),
        ):
            options = ["--server", url, "--retries", "0", "--timeout", "0.3"]
            done = rprime(*arguments, *options)
            assert (done.returncode, done.stdout) == (4, "")
            assert f"{url}/v1/" in done.stderr
            assert message in done.stderr


def test_what_is_no_store_is_said_in_a_sentence(rprime: Run, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.db"
    foreign.write_bytes(b"something else entirely" * 100)
    for command in (("serve", "--port", "0"), ("history", "--project", "p"), ("export",)):
        done = rprime(*command, RPRIME_STORE=f"sqlite:///{foreign}")
        assert done.returncode == 2
        assert done.stderr.splitlines()[-1].startswith("rprime: ")
    assert rprime("export", RPRIME_STORE="none").returncode == 2
    broken = tmp_path / "broken.ndjson"
    broken.write_text("{}\n")
    done = rprime("import", str(broken), RPRIME_STORE=f"sqlite:///{tmp_path}/new.db")
    assert (done.returncode, "line 1" in done.stderr) == (2, True)
