"""Stores that version 0.1.0 made, opened by this one; see `schemas/README.md`."""

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine, inspect, make_url, text

from rprime.history.stored_report import stored_report
from rprime.report.formats import FORMATS
from rprime.schemas.gate import Gates
from rprime.store import Store, open_store
from rprime.store.compression import expand
from rprime.store.errors import StoreDamagedError

SCHEMAS = Path(__file__).parent / "schemas"
REPORTS: dict[str, Any] = json.loads((SCHEMAS / "schema_1.json").read_text(encoding="utf-8"))
OUR_OWN = {"links", "table", "counts", "gate", "comparison", "overall", "recall"}
"""What is compared by itself."""


@pytest.fixture
def old(url: str) -> str:
    """Return the URL of a store of version 0.1.0, on each database in turn."""
    if make_url(url).get_backend_name() == "sqlite":
        shutil.copy(SCHEMAS / "schema_1.db", make_url(url).database or "")
    else:
        run(url, lambda connection: raw(connection, "schema_1.sql"))
    return url


def raw(connection: Connection, name: str) -> None:
    driver: Any = connection.connection.driver_connection
    driver.execute((SCHEMAS / name).read_text(encoding="utf-8"))


def run(url: str, work: Callable[[Connection], Any]) -> Any:
    engine = create_engine(url)
    with engine.begin() as connection:
        result = work(connection)
    engine.dispose()
    return result


def report(store: Store, identifier: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(
        stored_report(store.get(identifier), store, 10).report(include=("table",))
    )
    return content


def assert_close(now: dict[str, float | None], then: dict[str, float | None]) -> None:
    for name, value in then.items():
        assert now[name] == (None if value is None else pytest.approx(value, rel=1e-12)), name


OPENING = """
import sys
from rprime.store import open_store
print("ready", flush=True)
open_store(sys.argv[1])
"""
KILLS = int(os.environ.get("RPRIME_TEST_CRASHES", "3"))


def kill_while_opening(url: str, seconds: float) -> None:
    command = [sys.executable, "-c", OPENING, url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as opening:
        assert opening.stdout is not None
        assert opening.stdout.readline() == b"ready\n"
        with suppress(subprocess.TimeoutExpired):
            opening.wait(timeout=seconds)
        opening.kill()


def test_a_kill_while_a_file_is_migrated_loses_nothing(tmp_path: Path) -> None:
    """At any moment: whoever opens it next begins the migration anew, or has it done."""
    moments = random.Random(1)  # noqa: S311 - of a test
    for number in range(KILLS):
        file = tmp_path / f"{number}.db"
        shutil.copy(SCHEMAS / "schema_1.db", file)
        kill_while_opening(f"sqlite:///{file}", moments.uniform(0, 0.4))
        with closing(open_store(f"sqlite:///{file}")) as store:
            store.check()
            assert [store.get(identifier).id for identifier in REPORTS] == [*REPORTS]


def test_a_kill_while_a_database_is_migrated_loses_nothing(old: str) -> None:
    for _ in range(2):
        kill_while_opening(old, 0.1)
    with closing(open_store(old)) as store:
        assert [store.get(identifier).id for identifier in REPORTS] == [*REPORTS]


def test_every_evaluation_is_read_as_it_was(old: str) -> None:
    store = open_store(old)
    for identifier, then in REPORTS.items():
        now = report(store, identifier)
        assert {k: v for k, v in then.items() if k not in OUR_OWN} == {
            k: now[k] for k in then if k not in OUR_OWN
        }
        assert now["table"] == then["table"]
        counts = dict(then["counts"])
        counts["weight" if counts.pop("weighted") else "items"] = counts.pop("total")
        shown = counts if "items" in counts else {"weight"}  # items of weights are not known
        assert {name: now["counts"][name] for name in shown} == {n: counts[n] for n in shown}
        values = {key: now["overall"][key]["value"] for key in then["overall"]}
        assert_close(values, then["overall"])
        recalls = {
            label: now["per_class"][label]["indices"]["recall"]["value"] for label in then["recall"]
        }
        assert_close(recalls, then["recall"])
    store.check()
    store.close()


def test_verdicts_and_comparisons_are_those_that_were_given(old: str) -> None:
    store = open_store(old)
    judged = [(i, then["gate"]) for i, then in REPORTS.items() if "gate" in then]
    assert {gate["verdict"] for _, gate in judged} == {"pass", "fail", "inconclusive", "no_rules"}
    for identifier, then in judged:
        now = report(store, identifier)["gate"]
        assert (now["verdict"], now["alpha"], now["look"], now["max_looks"]) == (
            *(then[name] for name in ("verdict", "alpha", "look")),
            None,
        )
        for result, before in zip(now["results"], then["results"], strict=True):
            limits = before.pop("interval") or [None, None]
            before["verdict"] = before["verdict"].replace("inconclusive", "undecided")
            assert [result["lower_limit"], result["upper_limit"]] == limits
            assert {name: result[name] for name in before} == before
            level = None if limits == [None, None] else pytest.approx(1 - then["alpha"])
            assert result["level"] == level
            before["interval"] = limits
    for identifier, then in REPORTS.items():
        if "comparison" in then:
            whole = report(store, identifier)
            now = whole["comparison"]
            overall = then["comparison"].pop("overall")
            assert {name: now[name] for name in then["comparison"]} == then["comparison"]
            for name, difference in overall.items():
                # The candidate's value is that of the report, where that is about all its items.
                value = whole["overall"].get(name, {}).get("value")
                shown = {"candidate": value} | now["overall"][name]
                candidate = pytest.approx(difference["candidate"])
                assert {m: shown[m] for m in difference} == difference | {"candidate": candidate}
            then["comparison"]["overall"] = overall
    store.close()


def test_every_rendering_shows_them(old: str) -> None:
    store = open_store(old)
    messages = set()
    for identifier in REPORTS:
        subject = stored_report(store.get(identifier), store, 10).subject
        for entry in FORMATS:
            assert entry.render(subject)
        if subject.gate is not None:
            messages.add((subject.gate.message, subject.gate.judged))
    assert (
        "The gate failed: accuracy.max_drop, recall.max_drop of classes `cat`, `dog`.",
        True,
    ) in messages
    assert ("The gate has no rules, so nothing was judged.", False) in messages
    store.close()


def test_gates_can_be_judged_again(old: str) -> None:
    store = open_store(old)
    gates_by_id = {
        identifier: options["gates"]
        for identifier in REPORTS
        if "gates" in (options := json.loads(store.get(identifier).options))
    }
    store.close()
    assert sum("gate" in document for document in REPORTS.values()) == len(gates_by_id)
    # 0.1.0 spent 6/pi^2 of alpha on the first look; half of it is the next lower level.
    assert {gates.get("max_looks") for gates in gates_by_id.values()} == {None, 2}
    policies = {rule.get("policy") for gates in gates_by_id.values() for rule in gates["rules"]}
    assert policies == {None, "each"}
    for gates in gates_by_id.values():
        Gates.model_validate(gates)


def test_aliases_looks_items_and_settings_stay(old: str) -> None:
    store = open_store(old)
    first = store.alias("animals", "champion").evaluation
    assert REPORTS[first]["version"] == "1"
    [change] = store.alias_changes("animals", "champion")
    assert (change.evaluation, change.version, change.by) == (first, "1", None)
    assert change.changed_at == store.alias("animals", "champion").updated_at
    assert store.looks("animals", REPORTS[first]["test_set"]["fingerprint"]) == 2
    projects = {project.name: project for project in store.projects()}
    assert projects["animals"].badge_public
    assert projects["animals"].evaluations == 6
    kept = store.items(first)
    assert kept is not None
    cells = {(cell[0], cell[1]): cell[2] for cell in REPORTS[first]["table"]["cells"]}
    pairs = list(zip(kept.true.tolist(), kept.predicted.tolist(), strict=True))
    assert {pair: pairs.count(pair) for pair in set(pairs)} == cells
    store.close()


def test_an_upgraded_store_is_like_a_new_one_that_imported_it(old: str, other_store: Store) -> None:
    store = open_store(old)
    lines = list(store.export())
    other_store.import_lines(lines)
    assert list(other_store.export())[1:] == lines[1:]
    # 0.1.0 did not count sizes. Documents keep the form in which it wrote them, and so their size.
    for project, imported in zip(store.projects(), other_store.projects(), strict=True):
        assert project.model_copy(update={"bytes": imported.bytes}) == imported
        assert project.bytes > 0
    store.close()
    assert run(old, _declared) == other_store.database.read(_declared)


def _declared(connection: Connection) -> Any:
    """Return what the database says of the tables, whatever order it lists them in."""
    inspector = inspect(connection)
    tables = {}
    for name in sorted(inspector.get_table_names()):
        named = sorted(inspector.get_columns(name), key=itemgetter("name"))
        columns = [{**column, "type": repr(column["type"])} for column in named]
        keys = (inspector.get_pk_constraint(name), inspector.get_foreign_keys(name))
        tables[name] = (columns, sorted(inspector.get_indexes(name), key=str), keys)
    options = (inspector.get_table_options(name) for name in tables)
    return tables, list(options)


def test_a_repeated_request_is_still_answered(tmp_path: Path) -> None:
    path = tmp_path / "rprime.db"
    shutil.copy(SCHEMAS / "schema_1.db", path)
    open_store(f"sqlite:///{path}").close()
    with closing(sqlite3.connect(path)) as connection:
        [(body, evaluation)] = connection.execute("SELECT body, evaluation FROM replays")
    assert json.loads(expand(body) or b"")["id"] == evaluation
    assert REPORTS[evaluation]["project"] == "idem"


def test_a_damaged_store_is_refused_and_stays_as_it_was(old: str) -> None:
    statement = "UPDATE shared SET content = substr(content, 1, 5)"
    run(old, lambda connection: connection.execute(text(statement)))
    for _ in range(2):
        with pytest.raises(StoreDamagedError):
            open_store(old)
    count = text("SELECT count(*) FROM evaluations")
    version = text("SELECT version_num FROM rprime_version")
    assert run(old, lambda c: (c.scalar(count), c.scalar(version))) == (len(REPORTS), "1")
