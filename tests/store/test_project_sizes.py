"""The bytes of each project, counted in the transaction that changes them, and their quota."""

import pickle
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from sqlalchemy import Connection, Function, LargeBinary, Text, func, select

from rprime.store import (
    DatabaseOptions,
    EvaluationMissingError,
    Expected,
    Idempotency,
    ProjectMissingError,
    Retention,
    Store,
    Stored,
    open_store,
)
from rprime.store.evaluations import EvaluationAliasedError
from rprime.store.insertion import ProjectQuotaError
from rprime.store.schema import evaluations, items, project_sizes, scores, shared, slices
from tests.history_service import ServeApp, keep, keeping, matrix
from tests.store import samples
from tests.waiting import wait_until

PROJECTS = ("animals", "plants", "stones")


@contextmanager
def limited(url: str, quota: int) -> Iterator[Store]:
    store = open_store(url, options=DatabaseOptions(project_bytes=quota))
    try:
        yield store
    finally:
        store.close()


def counted(connection: Connection) -> Counter[str]:
    rows = connection.execute(select(project_sizes.c.project, project_sizes.c.bytes))
    return Counter({project: n for project, n in rows if n})


def measured(connection: Connection) -> Counter[str]:
    """Add up the length of every text and blob, by the database and not by the store."""
    columns: list[Function[Any]] = [
        func.coalesce(func.length(column), 0)
        for column in evaluations.c
        if isinstance(column.type, Text | LargeBinary)
    ]
    labels, options = shared.alias(), shared.alias()
    columns += [func.length(labels.c.content), func.length(options.c.content)]
    columns += [func.coalesce(func.length(kept.c.content), 0) for kept in (items, scores)]
    of_slices = func.sum(func.length(slices.c.name) + func.length(slices.c.content))
    parts = select(of_slices).where(slices.c.evaluation == evaluations.c.id)
    columns.append(func.coalesce(parts.scalar_subquery(), 0))
    rows = connection.execute(
        select(evaluations.c.project, *columns)
        .join(labels, labels.c.key == evaluations.c.labels)
        .join(options, options.c.key == evaluations.c.options)
        .outerjoin(items, items.c.evaluation == evaluations.c.id)
        .outerjoin(scores, scores.c.evaluation == evaluations.c.id)
    )
    sizes: Counter[str] = Counter()
    for project, *lengths in rows:
        sizes[project] += sum(lengths)
    return sizes


def sizes_agree(store: Store) -> Counter[str]:
    table, rows = store.database.read(lambda c: (counted(c), measured(c)))
    assert table == rows
    assert {p.name: p.bytes for p in store.projects() if p.bytes} == rows
    return table


def change_at_random(
    store: Store, draw: np.random.Generator, numbers: Iterator[int], lines: list[bytes]
) -> str:
    """Do one thing; return its name."""
    project = str(draw.choice(PROJECTS))
    identifiers = [item.id for item in store.page(project, limit=200).items]
    do = str(draw.choice(("put", "put", "put", "alias", "delete", "purge", "drop", "import")))
    match do:
        case "put":
            put_at_random(store, draw, numbers)
        case "alias" if identifiers:
            name = f"alias {next(numbers)}"
            store.put_alias(project, name, evaluation=identifiers[0], expected=Expected())
        case "delete" if identifiers:
            with suppress(EvaluationAliasedError):
                store.delete(str(draw.choice(identifiers)))
        case "purge":
            store.purge(project, Retention(keep_last=int(draw.integers(1, 6))))
        case "drop" if identifiers and draw.random() < 0.5:
            store.delete_project(project)
        case "import":
            store.import_lines(lines)
    return do


def put_at_random(store: Store, draw: np.random.Generator, numbers: Iterator[int]) -> None:
    """Put one evaluation into each project, in one batch, and one of them again with its key."""
    packed = []
    for project in PROJECTS:
        new = samples.evaluation(
            next(numbers),
            project=project,
            labels=tuple(map(str, draw.random(3))),
            tags=("größer", "b"),
            items=samples.kept_items(int(draw.integers(1, 90))) if draw.random() < 0.5 else None,
            scores=samples.score_summary() if draw.random() < 0.5 else None,
            slices=samples.slices() if draw.random() < 0.5 else None,
            gate=b"{}" * int(draw.integers(50)) or None,
        )
        key = Idempotency(owner="o", key=new.id, payload=b"p", status=201, body=b"{}")
        packed.append(store.pack(new, idempotency=key))
    store.put_many([*packed, packed[0]]).result()
    store.put_many(packed[:1]).result()


@pytest.mark.parametrize("seed", range(3))
def test_the_sizes_are_those_of_the_rows_after_any_changes(
    store: Store, other_store: Store, seed: int
) -> None:
    draw, numbers = np.random.default_rng(seed), iter(range(10_000))
    for number in range(5):
        new = samples.evaluation(
            number, items=samples.kept_items(), options=b'{"options":{"beta":2}}'
        )
        samples.put(other_store, new).result()
    lines = list(other_store.export())
    done = set()
    for _ in range(60):
        done.add(change_at_random(store, draw, numbers, lines))
        sizes_agree(store)
    assert len(done) == 6


def test_the_sizes_hold_under_concurrent_changes_of_two_replicas(url: str, store: Store) -> None:
    replicas = [store, store if url.startswith("sqlite") else open_store(url)]
    export = [*other_lines(store)]

    def work(seed: int) -> None:
        draw, numbers = np.random.default_rng(seed), iter(range(seed * 1000, 10_000))
        for _ in range(30):
            with suppress(EvaluationMissingError, ProjectMissingError):
                change_at_random(replicas[seed % 2], draw, numbers, export)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    assert sizes_agree(store)
    replicas[1].close()


def other_lines(store: Store) -> Iterator[bytes]:
    """Export three evaluations, then delete them."""
    for number in range(3):
        samples.put(store, samples.evaluation(number, project="stones")).result()
    yield from list(store.export())
    store.delete_project("stones")


def test_a_project_over_its_quota_takes_no_more_until_something_is_deleted(url: str) -> None:
    batch = [samples.evaluation(number, fingerprint=samples.FINGERPRINT) for number in range(9)]
    with limited(url, 10_000) as store:
        first = samples.put(store, batch[0]).result()
        size = sizes_agree(store)["animals"]
    with limited(url, 4 * size + size // 2) as store:
        outcomes = store.put_many([store.pack(evaluation) for evaluation in batch[1:8]]).result()
        assert [type(outcome) for outcome in outcomes] == [Stored] * 3 + [ProjectQuotaError] * 4
        assert store.looks("animals", samples.FINGERPRINT) == 4
        with pytest.raises(ProjectQuotaError, match=rf"of {4 * size + size // 2} bytes"):
            samples.put(store, batch[8]).result()
        assert samples.put(store, samples.evaluation(9, project="plants")).result().created
        store.delete(first.id)
        assert samples.put(store, batch[8]).result().created
        sizes_agree(store)


def test_an_import_counts_but_is_not_refused(url: str, other_store: Store) -> None:
    samples.put(other_store, samples.evaluation()).result()
    with limited(url, 10) as store:
        store.import_lines(other_store.export())
        assert sizes_agree(store)["animals"] > 10
        assert store.import_lines(other_store.export()).evaluations_present == 1
        sizes_agree(store)


def test_a_refusal_for_the_quota_reaches_another_process() -> None:
    """A worker tells it to the service, which answered 500 where it could not be read again."""
    refusal = ProjectQuotaError(stored=10, needed=5, quota=12)
    again = pickle.loads(pickle.dumps(refusal))  # noqa: S301 (made here)
    assert str(again) == str(refusal)
    assert str(refusal).startswith("The project has 10 of 12 bytes; the evaluation needs 5.")


def refused_batch(client: httpx.Client) -> int:
    """Return the status of the only request of a batch, or of the batch if that is refused."""
    batch = client.post("/v1/evaluate/batch", json={"requests": [matrix(40)]})
    results = batch.json().get("results", [{"status": batch.status_code}])
    status = int(results[0]["status"])
    assert status in {503, 507}, batch.text
    return status


def test_the_service_refuses_what_exceeds_the_quota(serve_app: ServeApp, tmp_path: Path) -> None:
    with keeping(serve_app, tmp_path, project_max_bytes="2KiB") as client:
        answers = [client.post("/v1/evaluate", json=matrix(seed)) for seed in range(30)]
        statuses = Counter(answer.status_code for answer in answers)
        assert set(statuses) == {201, 507}
        check_refusal(answers[-1])
        (project,) = client.get("/v1/projects").json()["items"]
        assert project["evaluations"] == statuses[201]
        assert 0 < project["bytes"] <= 2048
        assert client.post("/v1/evaluate", json=matrix(project=None)).status_code == 200
        assert client.post("/v1/projects/pets/purge", json={"keep_last": 1}).status_code == 200
        keep(client, matrix(41))


@pytest.mark.slow  # a worker of its own, which takes seconds to start beside other tests
def test_a_batch_beyond_the_quota_is_refused(serve_app: ServeApp, tmp_path: Path) -> None:
    with keeping(serve_app, tmp_path, project_max_bytes="2KiB") as client:
        statuses = {
            client.post("/v1/evaluate", json=matrix(seed)).status_code for seed in range(30)
        }
        assert statuses == {201, 507}
        wait_until(lambda: refused_batch(client) == 507)


def check_refusal(answer: httpx.Response) -> None:
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (507, "project_quota_exceeded")
    assert "of 2048 bytes" in problem["detail"]
