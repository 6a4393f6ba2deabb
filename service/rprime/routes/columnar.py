"""Evaluation of items that come as columns: CSV, Arrow, Parquet, NPZ."""

import asyncio
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any, cast

from starlette.requests import ClientDisconnect, Request

from rprime.evidence import EXTRA, MEDIA_TYPES, Kind, is_readable
from rprime.inquiry.answering import Question, Report, Unkept, report_of
from rprime.inquiry.columnar import inquire_columns, question_of
from rprime.problems import Problem
from rprime.routes.body import (
    Inflated,
    check_length,
    content_encoding,
    inflated_bound,
    received,
    too_large,
)
from rprime.routes.inlet import GoneError, Inlet

if TYPE_CHECKING:
    from rprime.routes.in_flight import InFlight

STALLED_SECONDS = 30.0
"""Without a byte for so long, a client counts as gone: others wait for its place."""


CONTENT: dict[str, Any] = {
    media: {"schema": {"type": "string", "format": "binary"}} for media in MEDIA_TYPES
}
"""The bodies, for the OpenAPI document."""
PARAMETER: dict[str, Any] = {
    "name": "request",
    "in": "query",
    "description": "Of a body of columns: every other member of the request, the JSON object that "
    "a JSON body would be without its items. Columns are `y_true`, `y_pred`, and optionally "
    "`y_pred_baseline` (the baseline, on the same items), `sample_weight`, `item_id` (items are "
    "compared in the order of their ids, whatever the order of the rows) and `group`; scores are "
    "columns `score:<label>`, one for each class, or in NPZ an array `y_score` with a column for "
    "each of `labels`, and `y_pred` may be missing beside them. Labels are integers, strings or "
    "dictionary-encoded; null or, in CSV, an empty field is unclassified. In "
    'CSV, labels are integers if all of them are written as such. With `"codes": true` the labels '
    "of the items are positions in `labels`, and -1 is unclassified.",
    "content": {
        "application/json": {
            "schema": {"type": "object"},
            "example": {"codes": True, "labels": ["cat", "dog"], "indices": ["r_prime"]},
        }
    },
}


async def answer_columns(request: Request, kind: Kind, question: Question) -> Report | Unkept:
    """Answer a request whose body is columns.

    Parameters
    ----------
    request
        Its body is read as far as it is of use.
    kind
        Of the body.
    question
        What is asked.

    Raises
    ------
    Problem
        400, 413, 415, 422; 503 if too many others are worked on.
    """
    if not is_readable(kind):
        raise Problem("unsupported_media_type", _MISSING)
    limit = question.limits.other_body_bytes
    encoding = content_encoding(request)
    check_length(request, limit)
    asked = question_of(request.query_params.get("request", "").encode(), question.limits)
    threads = request.app.state.threads
    async with threads.places.place():
        inlet = Inlet()
        body = _inflated(inlet, encoding, limit)
        hold = _Holding(request, limit)

        def work() -> Report | Unkept:
            try:
                inquiry = inquire_columns(kind, body, asked, question.limits, hold)
            finally:
                inlet.leave()
            if inquiry.origin is None:
                return report_of(inquiry, question)
            # The digest stands for the body, which nobody has any more.
            return Unkept(inquiry, _payload(inquiry.evidence.input_digest, inquiry))

        return await _fed(request, inlet, threads.start, work, limit)


_MISSING = (
    f"The service was installed without the extra `{EXTRA}`, which reads this type: "
    f"pip install 'rprime[{EXTRA}]', or send JSON."
)


def _payload(digest: str, inquiry: object) -> bytes:
    review = getattr(inquiry, "review", None)
    opponent = review.opponent if review is not None else None
    return f"{digest} {opponent.identity if opponent is not None else ''}".encode()


class _Holding:
    """Counts the memory that a body takes, by the limit of one and of all."""

    def __init__(self, request: Request, limit: int) -> None:
        self._in_flight: InFlight = request.app.state.in_flight
        self._scope = request.scope
        self._limit = limit
        # What is read at once and what is kept of it are each within the limit.
        self._left = 2 * limit

    def __call__(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise too_large(self._limit)
        self._in_flight.hold(self._scope, size)


def _inflated(inlet: Inlet, encoding: str, limit: int) -> IO[bytes]:
    sent = cast("IO[bytes]", inlet)
    if encoding == "identity":
        return sent
    bound = lambda: inflated_bound(limit, inlet.received)  # noqa: E731 (read in one place)
    return cast("IO[bytes]", Inflated(sent, encoding, bound))


async def _fed(
    request: Request,
    inlet: Inlet,
    start: Callable[[Callable[[], Report | Unkept]], "asyncio.Future[Report | Unkept]"],
    work: Callable[[], Report | Unkept],
    limit: int,
) -> Report | Unkept:
    """Feed a thread with the body and wait for its answer."""
    answer = start(work)
    try:
        await _feed(request, inlet, limit)
    except BaseException:
        inlet.finish(gone=True)
        # The place is free again only when the thread is.
        await asyncio.wait([answer])
        answer.exception()
        raise
    inlet.finish()
    try:
        return await answer
    except GoneError:
        raise ClientDisconnect from None


async def _feed(request: Request, inlet: Inlet, limit: int) -> None:
    pieces = received(request)
    while True:
        try:
            piece = await asyncio.wait_for(anext(pieces), STALLED_SECONDS)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise ClientDisconnect from None
        if inlet.received + len(piece) > limit:
            raise too_large(limit)
        if not await inlet.feed(piece):
            return
