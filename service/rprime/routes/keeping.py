"""Keeping: an evaluation with a project goes into the store before it is answered."""

import asyncio
import hashlib
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from rprime.core.evaluate import Evaluation
from rprime.inquiry import Inquiry
from rprime.inquiry.history import SCORES_NOT_KEPT, Draft, at_look, reads_history, resolved
from rprime.inquiry.recollection import recollect, subject_of
from rprime.problems import Problem
from rprime.report.formats import Format
from rprime.routes.access import access_of, admit
from rprime.routes.history import store_of
from rprime.routes.negotiation import rendered
from rprime.routes.putting import Putting
from rprime.settings import Limits
from rprime.store import (
    Idempotency,
    LookMovedError,
    Replay,
    Store,
    Stored,
    new_id,
)

LONGEST_KEY = 255
MOST_LOOKS = 50
"""How often a gate is judged again because others looked at its test set meanwhile."""

Evaluate = Callable[[Inquiry], Coroutine[Any, Any, Evaluation]]


@dataclass(frozen=True, eq=False, kw_only=True)
class Keeping:
    """How a request to keep an evaluation wants to be answered.

    Parameters
    ----------
    store
        Where to.
    form
        Of the answer; None: JSON.
    with_table
        Whether the report has the table itself.
    large
        Whether it takes so long that it goes to a thread.
    limits
        What a request may cost.
    putting
        Gathers what is not large.
    key
        The idempotency key, as far as there is one.
    """

    store: Store
    form: Format | None
    with_table: bool
    large: bool
    limits: Limits
    putting: Putting = field(default_factory=Putting)
    key: "Key | None" = None


@dataclass(frozen=True)
class Key:
    """An idempotency key: whose, which, and the digest of what came with it."""

    owner: str
    name: str
    payload: bytes


async def keep(
    request: Request,
    inquiry: Inquiry,
    body: bytes,
    *,
    form: Format | None,
    with_table: bool,
    large: bool,
) -> Response:
    """Answer a request that is to be kept, after it was.

    Raises
    ------
    Problem
        404 if the project is not the caller's, 409 and 422 as the contract says.
    """
    assert inquiry.origin is not None  # noqa: S101 (nothing else comes here)
    admit(request, inquiry.origin.project)
    way = Keeping(
        store=store_of(request),
        form=form,
        with_table=with_table,
        limits=request.app.state.limits,
        large=large,
        putting=request.app.state.history.putting,
        key=_key(request, body, form),
    )
    gathering = request.app.state.gathering
    evaluate: Evaluate = _in_thread if large else gathering.evaluate
    with nullcontext() if large else way.putting.entered():
        if way.key is None:
            return _response(await kept(inquiry, way, evaluate), way)
        return await _once(inquiry, way, way.key, evaluate)


@dataclass(frozen=True)
class Answer:
    """What a request that was kept is answered with."""

    status: int
    content: bytes
    evaluation: str
    verdict: str | None
    replayed: bool = False


async def kept(inquiry: Inquiry, way: Keeping, evaluate: Evaluate) -> Answer:
    """Store an evaluation and give its report, or that of the same one stored earlier."""
    if reads_history(inquiry):
        inquiry = await run_in_threadpool(resolved, inquiry, way.store)
    draft = draft_of(inquiry, await evaluate(inquiry))
    for _ in range(MOST_LOOKS):
        try:
            answer, stored = await _put(draft, way)
        except LookMovedError as moved:
            draft = replace(draft, inquiry=at_look(draft.inquiry, moved.look))
            continue
        if stored.replay is not None:
            return _replayed(stored.replay, way)
        return answer if stored.created else await run_in_threadpool(_existing, stored.id, way)
    raise Problem("overloaded", headers={"Retry-After": "1"})


async def _put(draft: Draft, way: Keeping) -> tuple[Answer, Stored]:
    if way.large:
        answer, future = await run_in_threadpool(_submit, draft, way)
        return answer, await asyncio.wrap_future(future)
    if way.key is not None:
        answer = _answer(draft, way)
        packed = way.store.pack(draft.record, idempotency=_idempotency(answer, way.key))
        return answer, await way.putting.put(way.store, packed)
    put = way.putting.put(way.store, way.store.pack(draft.record))
    # Rendered while it is on its way to the disk: the one takes the processor, the other waits.
    await asyncio.sleep(0)
    return _answer(draft, way), await put


def kept_in_thread(inquiry: Inquiry, evaluation: Evaluation, way: Keeping) -> Answer:
    """Do as `kept` in a thread that may wait, for an evaluation that is there already."""
    draft = draft_of(resolved(inquiry, way.store), evaluation)
    for _ in range(MOST_LOOKS):
        answer, future = _submit(draft, way)
        try:
            stored = future.result()
        except LookMovedError as moved:
            draft = replace(draft, inquiry=at_look(draft.inquiry, moved.look))
            continue
        return answer if stored.created else _existing(stored.id, way)
    raise Problem("overloaded", headers={"Retry-After": "1"})


def draft_of(inquiry: Inquiry, evaluation: Evaluation) -> Draft:
    """Give an evaluation a name of its own."""
    assert inquiry.origin is not None  # noqa: S101 (only what is to be kept comes here)
    if inquiry.evidence.scores is not None:
        evaluation = replace(evaluation, warnings=(*evaluation.warnings, SCORES_NOT_KEPT))
    return Draft(inquiry=inquiry, origin=inquiry.origin, evaluation=evaluation, id=new_id())


def _submit(draft: Draft, way: Keeping) -> tuple[Answer, Future[Stored]]:
    answer = _answer(draft, way)
    return answer, way.store.put(draft.record, idempotency=_idempotency(answer, way.key))


def _answer(draft: Draft, way: Keeping) -> Answer:
    """Render the answer: it is stored with its key, so it is there before it is true."""
    if way.form is None:
        content = draft.report(with_table=way.with_table)
    else:
        content = way.form.render(subject_of(draft.inquiry, draft.evaluation, draft.id))
    return Answer(HTTPStatus.CREATED, content, draft.id, draft.inquiry.verdict)


def _idempotency(answer: Answer, key: Key | None) -> Idempotency | None:
    if key is None:
        return None
    return Idempotency(
        owner=key.owner,
        key=key.name,
        payload=key.payload,
        status=answer.status,
        body=answer.content,
    )


def _existing(identifier: str, way: Keeping) -> Answer:
    """Render the report on the same evaluation, which is there already."""
    kept = way.store.get(identifier)
    found = recollect(kept, way.store, way.limits.top_confusions)
    if way.form is None:
        content = found.report(with_table=way.with_table)
    else:
        content = way.form.render(found.subject)
    return Answer(HTTPStatus.OK, content, identifier, kept.verdict)


def _replayed(replay: Replay, way: Keeping) -> Answer:
    verdict = None
    if way.form is None:
        verdict = (orjson.loads(replay.body).get("gate") or {}).get("verdict")
    return Answer(replay.status, replay.body, replay.evaluation, verdict, replayed=True)


async def _once(inquiry: Inquiry, way: Keeping, key: Key, evaluate: Evaluate) -> Response:
    """Answer a request with a key: the first one is kept, the others get its answer."""
    running = way.store.running(key.owner, key.name)
    replay = await run_in_threadpool(_begin, running, way.store, key)
    try:
        if replay is not None:
            return _response(_replayed(replay, way), way)
        return _response(await kept(inquiry, way, evaluate), way)
    finally:
        await run_in_threadpool(running.__exit__, None, None, None)


def _begin(running: AbstractContextManager[None], store: Store, key: Key) -> Replay | None:
    """Hold a key, then look whether it was answered before; else it could be in between."""
    running.__enter__()
    try:
        return store.replay(key.owner, key.name, key.payload)
    except BaseException:
        running.__exit__(None, None, None)
        raise


def _key(request: Request, body: bytes, form: Format | None) -> Key | None:
    given = request.headers.get("idempotency-key")
    if given is None:
        return None
    name = given.strip()
    if len(name) > 1 and name[0] == name[-1] == '"':
        name = name[1:-1]
    if not 0 < len(name) <= LONGEST_KEY:
        raise Problem(
            "bad_request", f"The header Idempotency-Key has 1 to {LONGEST_KEY} characters."
        )
    digest = hashlib.sha256()
    for part in (request.scope["query_string"], (form.name if form else "json").encode(), body):
        digest.update(len(part).to_bytes(8, "big") + part)
    return Key(access_of(request).key or "", name, digest.digest())


def _response(answer: Answer, way: Keeping) -> Response:
    headers = {"Location": f"/v1/evaluations/{answer.evaluation}"}
    if answer.verdict is not None:
        headers["Evaluation-Verdict"] = answer.verdict
    if answer.replayed:
        headers["Idempotency-Replayed"] = "true"
    return rendered(answer.content, way.form, answer.status, headers)


async def _in_thread(inquiry: Inquiry) -> Evaluation:
    return await run_in_threadpool(inquiry.evaluate)
