"""Store evaluations in one transaction, each with its look, key and content."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import orjson
from sqlalchemy import BindParameter, Connection, Select, Table, bindparam, select, tuple_

from rprime.store import packing, project_sizes
from rprime.store.compression import content_key, digest_bytes, expand, squeeze
from rprime.store.database import Row, add, insert, serialise
from rprime.store.documents import enveloped
from rprime.store.errors import decoding
from rprime.store.evaluations import JSON_COLUMNS, checked_row
from rprime.store.records import NAMES, NewEvaluation
from rprime.store.schema import evaluations, items, looks, replays, scores, shared, slices
from rprime.store.schema import project_sizes as sizes

REPLAY_MILLISECONDS = 24 * 60 * 60 * 1000
"""How long the answer to a key is stored."""

_of = evaluations.c
_SUBMISSION_BYTES = 16
_AS_GIVEN = ("id", "project", *NAMES, "waived", "engine_version")


class KeyReusedError(Exception):
    """An idempotency key was reused with another payload."""


class EvaluationDeletedError(Exception):
    """The evaluation that an idempotency key stored was deleted."""


class LookMovedError(Exception):
    """Another evaluation was stored on this test set first; the look would now have this number."""

    def __init__(self, look: int) -> None:
        super().__init__(f"it would be look {look} at this test set")
        self.look = look


class ProjectQuotaError(Exception):
    """With this evaluation a project would have more bytes than it may have."""

    # Its arguments are those of the class, so that it can be pickled between processes.
    def __init__(self, stored: int, needed: int, quota: int) -> None:
        super().__init__(stored, needed, quota)

    def __str__(self) -> str:
        stored, needed, quota = self.args
        return (
            f"The project has {stored} of {quota} bytes; the evaluation needs {needed}. Nothing "
            "was stored."
        )


class EvaluationExistsError(Exception):
    """An evaluation with this id is stored already."""


@dataclass(frozen=True, kw_only=True)
class Idempotency:
    """An idempotency key, unique for its owner, and the answer to repetitions for 24 hours.

    The owner is the API key or the project; the payload is the digest of the request.
    """

    owner: str
    key: str
    payload: bytes
    status: int
    body: bytes


@dataclass(frozen=True)
class Replay:
    """The answer to the first request with a key."""

    evaluation: str
    status: int
    body: bytes


@dataclass(frozen=True)
class Stored:
    """The outcome of storing an evaluation: its id, or that of an equal one stored earlier.

    The look is its number at the test set, None without a fingerprint; the replay is the earlier
    answer, if its key was used before.
    """

    id: str
    created: bool
    look: int | None = None
    replay: Replay | None = None


Outcome = Stored | Exception
"""The outcome of an evaluation, or the error that prevented it."""
LookKey = tuple[str, bytes]
EvidenceKey = tuple[str, bytes, bytes]


@dataclass(frozen=True, kw_only=True, eq=False)
class Packed:
    """An evaluation as rows of the database."""

    evaluation: Row
    contents: tuple[Row, Row]
    kept: Mapping[Table, Sequence[Row]]
    look_key: LookKey | None
    look: int | None
    replay: Row | None

    @property
    def id(self) -> str:
        """The id of the evaluation."""
        return str(self.evaluation["id"])

    @property
    def evidence_key(self) -> EvidenceKey | None:
        """What is equal for the same predictions on the same test set."""
        if self.look_key is None:
            return None
        return (*self.look_key, self.evaluation["input_digest"])

    @property
    def names(self) -> Iterator[bytes]:
        """The names that two transactions must not store at the same time."""
        if self.replay is not None:
            yield b"key:" + self.replay["key"]
        if self.evaluation["submission"] is not None:
            yield b"submission:" + self.evaluation["submission"]
        if self.look_key is not None:
            project, fingerprint = self.look_key
            yield b"look:" + project.encode() + b"\n" + fingerprint


def replay_key(owner: str, key: str) -> bytes:
    """Return the primary key of the answer to an idempotency key."""
    return content_key(f"{owner}\n{key}".encode(errors="surrogatepass"))


def pack(new: NewEvaluation, idempotency: Idempotency | None, now: int) -> Packed:
    """Turn an evaluation into rows, as `Store.pack`; `now` is in milliseconds since 1970."""
    submission = items_content = replay = None
    if idempotency is not None:
        replay = {
            "key": replay_key(idempotency.owner, idempotency.key),
            "payload": idempotency.payload,
            "status": idempotency.status,
            "body": squeeze(idempotency.body),
            "evaluation": new.id,
            "project": new.project,
            "expires": now + REPLAY_MILLISECONDS,
        }
    if new.items is not None:
        columns = None if new.slices is None else new.slices.columns
        items_content = packing.pack_items(new.items, columns)
    if new.submission is not None:
        repeated = new.project.encode() + b"\n" + new.submission
        submission = hashlib.blake2b(repeated, digest_size=_SUBMISSION_BYTES).digest()
    return rows_of(
        new,
        items_content=items_content,
        scores_content=None if new.scores is None else packing.pack_scores(new.scores),
        submission=submission,
        replay=replay,
    )


def rows_of(
    new: NewEvaluation,
    *,
    items_content: bytes | None,
    scores_content: bytes | None,
    submission: bytes | None,
    replay: Row | None = None,
) -> Packed:
    """Turn an evaluation into rows, with the packed content of its items and scores."""
    new.check()
    labels, options = _labels(new.labels), _options(new.options)
    fingerprint = None if new.fingerprint is None else digest_bytes(new.fingerprint)
    kept: dict[Table, Sequence[Row]] = {
        table: [] if content is None else [{"evaluation": new.id, "content": content}]
        for table, content in ((items, items_content), (scores, scores_content))
    }
    kept[slices] = [] if new.slices is None else packing.pack_slices(new.slices, new.id)
    row = {
        **{name: getattr(new, name) for name in _AS_GIVEN},
        **{name: _document(name, getattr(new, name)) for name in JSON_COLUMNS},
        # So that "\ntag\n" is found exactly where that tag is one of them.
        "tags": "\n".join(("", *new.tags, "")) if new.tags else "",
        "fingerprint": fingerprint,
        "keeps_items": items_content is not None,
        "input_digest": digest_bytes(new.input_digest),
        "submission": submission,
        "labels": labels["key"],
        "options": options["key"],
        "cells": packing.pack_table(new.table, new.id),
    }
    beside = (row for rows in kept.values() for row in rows)
    return Packed(
        evaluation=checked_row(row, labels, options, *beside),
        contents=(labels, options),
        kept=kept,
        look_key=None if fingerprint is None else (new.project, fingerprint),
        look=new.look,
        replay=replay,
    )


@lru_cache(maxsize=256)
def _labels(labels: tuple[str, ...]) -> Row:
    return _content(orjson.dumps(labels))


@lru_cache(maxsize=256)
def _options(document: bytes) -> Row:
    return _content(enveloped("options", document))


def _document(name: str, document: bytes | None) -> bytes | None:
    return None if document is None else squeeze(enveloped(name, document))


def _content(content: bytes) -> Row:
    """Return the row of content that many evaluations share."""
    return {"key": content_key(content), "content": squeeze(content)}


def find_replay(connection: Connection, key: bytes, payload: bytes, now: int) -> Replay | None:
    """Return the answer to an idempotency key, as `Store.replay`."""
    alive = (replays.c.key == key) & (replays.c.expires > now)
    row = connection.execute(select(replays).where(alive)).mappings().first()
    if row is None:
        return None
    if row["payload"] != payload:
        raise KeyReusedError
    stored = select(_of.id).where(_of.id == row["evaluation"])
    if connection.scalar(stored) is None:
        raise EvaluationDeletedError
    return _replay(row)


@decoding()
def _replay(row: Row) -> Replay:
    return Replay(row["evaluation"], row["status"], expand(row["body"]) or b"")


def next_look(connection: Connection, key: EvidenceKey) -> int:
    """Return the number of the look that storing this evidence would be."""
    project, fingerprint, input_digest = key
    test_set = looks.c.project == project, looks.c.fingerprint == fingerprint
    count = connection.scalar(select(looks.c.looks).where(*test_set)) or 0
    stored = select(_of.id).where(_of.project == project, _of.fingerprint == fingerprint)
    same = stored.where(_of.input_digest == input_digest).limit(1)
    return count + (connection.scalar(same) is None)


def put_all(
    connection: Connection, batch: Sequence[Packed], *, now: int, quota: int | None, repeated: bool
) -> list[Outcome]:
    """Store evaluations, of two with one key the first, in a transaction; return their outcomes.

    An outcome is an exception only if nothing of the evaluation is in the transaction.

    Parameters
    ----------
    quota
        Most bytes of the evaluations of a project. Replicas that write at the same time may exceed
        it by what they write.
    repeated
        Whether they may already be stored, because the connection was lost during the commit.
    """
    if not batch:
        return []
    serialise(connection, [name for packed in batch for name in packed.names])
    state = _read_known(connection, batch, now=now, quota=quota, repeated=repeated)
    outcomes = [state.judge(packed) for packed in batch]
    _write(connection, state)
    return outcomes


@dataclass
class _Known:
    """What is stored already, and what of the batch will be stored."""

    replays: dict[bytes, Row]
    submissions: dict[bytes, str]
    looks: dict[LookKey, int]
    evidence: set[EvidenceKey]
    ids: set[str]
    sizes: Counter[str]
    quota: int | None
    fresh: list[Packed] = field(default_factory=list)
    looked: set[LookKey] = field(default_factory=set)

    def judge(self, packed: Packed) -> Outcome:
        """Decide whether an evaluation will be stored, and record it for the next decisions."""
        earlier = self._earlier(packed)
        if earlier is not None:
            return earlier
        project, needed = packed.evaluation["project"], packed.evaluation["bytes"]
        if self.quota is not None and self.sizes[project] + needed > self.quota:
            return ProjectQuotaError(stored=self.sizes[project], needed=needed, quota=self.quota)
        look = self._look(packed)
        if look is not None and packed.look not in {None, look}:
            return LookMovedError(look)
        if packed.look_key is not None and packed.evidence_key is not None and look is not None:
            self.looks[packed.look_key] = look
            self.evidence.add(packed.evidence_key)
            self.looked.add(packed.look_key)
        self.fresh.append(packed)
        self.sizes[project] += needed
        if packed.replay is not None:
            self.replays[packed.replay["key"]] = packed.replay
        if packed.evaluation["submission"] is not None:
            self.submissions[packed.evaluation["submission"]] = packed.id
        return Stored(packed.id, created=True, look=look)

    def _look(self, packed: Packed) -> int | None:
        """Return the number of a look; the same predictions again are no new one."""
        if packed.look_key is None:
            return None
        return self.looks.get(packed.look_key, 0) + (packed.evidence_key not in self.evidence)

    def _earlier(self, packed: Packed) -> Outcome | None:
        if packed.id in self.ids:
            return Stored(packed.id, created=True, look=packed.look)
        row = None if packed.replay is None else self.replays.get(packed.replay["key"])
        if packed.replay is None or row is None:
            identifier = self.submissions.get(packed.evaluation["submission"])
            return None if identifier is None else Stored(identifier, created=False)
        if row["payload"] != packed.replay["payload"]:
            return KeyReusedError()
        return Stored(row["evaluation"], created=False, replay=_replay(row))


def _read_known(
    connection: Connection, batch: Sequence[Packed], *, now: int, quota: int | None, repeated: bool
) -> _Known:
    def rows(statement: Select[Any], values: Iterable[Any], **more: int) -> Iterable[Row]:
        keys = [key for key in values if key is not None]
        if not keys:
            return ()
        return connection.execute(statement, {"wanted": keys, **more}).mappings()

    replayed = (packed.replay["key"] for packed in batch if packed.replay is not None)
    digests = (packed.evaluation["submission"] for packed in batch)
    pairs = {packed.look_key for packed in batch if packed.look_key is not None}
    counts = {
        (row["project"], row["fingerprint"]): row["looks"] for row in rows(_LOOKS, sorted(pairs))
    }
    # At the first look there is nothing to repeat.
    evidence = {packed.evidence_key for packed in batch if packed.look_key in counts}
    identifiers = (packed.id for packed in batch if repeated)
    bounded = {packed.evaluation["project"] for packed in batch if quota is not None}
    return _Known(
        {row["key"]: row for row in rows(_REPLAYS, replayed, now=now)},
        {row["submission"]: row["id"] for row in rows(_SUBMISSIONS, digests)},
        counts,
        {
            (row["project"], row["fingerprint"], row["input_digest"])
            for row in rows(_SAME_EVIDENCE, evidence)
        },
        {row["id"] for row in rows(_IDS, identifiers)},
        Counter({name: connection.scalar(_SIZE, {"project": name}) or 0 for name in bounded}),
        quota,
    )


# Built once: SQLAlchemy takes longer to build a statement than the database to run it.
_WANTED: BindParameter[Any] = bindparam("wanted", expanding=True)
_REPLAYS = select(replays).where(replays.c.key.in_(_WANTED), replays.c.expires > bindparam("now"))
_SUBMISSIONS = select(_of.submission, _of.id).where(_of.submission.in_(_WANTED))
_LOOKS = select(looks).where(tuple_(looks.c.project, looks.c.fingerprint).in_(_WANTED))
_EVIDENCE = (_of.project, _of.fingerprint, _of.input_digest)
_SAME_EVIDENCE = select(*_EVIDENCE).where(tuple_(*_EVIDENCE).in_(_WANTED)).distinct()
_IDS = select(_of.id).where(_of.id.in_(_WANTED))
# Of one project: a group has seldom more, and lists are rendered at each execution.
_SIZE = select(sizes.c.bytes).where(sizes.c.project == bindparam("project"))


_PUT_CONTENTS = insert(shared).on_conflict_do_nothing()
_REPLAY, _LOOK = insert(replays), insert(looks)
# A row with this key exists only if it has expired.
_PUT_REPLAYS = _REPLAY.on_conflict_do_update(
    index_elements=["key"],
    set_={c.name: _REPLAY.excluded[c.name] for c in replays.c if not c.primary_key},
)
_PUT_LOOKS = _LOOK.on_conflict_do_update(
    index_elements=["project", "fingerprint"], set_={"looks": _LOOK.excluded.looks}
)


def _write(connection: Connection, state: _Known) -> None:
    add_all(connection, state.fresh)
    answers = [packed.replay for packed in state.fresh if packed.replay is not None]
    if answers:
        connection.execute(_PUT_REPLAYS, answers)
    pairs = sorted(state.looked)
    counted = [{"project": p, "fingerprint": f, "looks": state.looks[p, f]} for p, f in pairs]
    if counted:
        connection.execute(_PUT_LOOKS, counted)


def add_all(connection: Connection, fresh: Sequence[Packed]) -> None:
    """Add evaluations that the store lacks with their content, and count their bytes."""
    if not fresh:
        return
    contents = {row["key"]: row for packed in fresh for row in packed.contents}
    # Sorted, so that two transactions never wait for each other.
    connection.execute(_PUT_CONTENTS, [contents[key] for key in sorted(contents)])
    add(connection, evaluations, [packed.evaluation for packed in fresh])
    for table in (items, scores, slices):
        kept = [row for packed in fresh for row in packed.kept[table]]
        if kept:
            add(connection, table, kept)
    rows = (packed.evaluation for packed in fresh)
    project_sizes.change(connection, ((row["project"], row["bytes"]) for row in rows))
