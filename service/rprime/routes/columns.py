"""Evaluation of items that come as columns: CSV, Arrow, Parquet, NPZ."""

import asyncio
from typing import IO, Any, cast

from starlette.requests import ClientDisconnect, Request

from rprime.application.columns_request import parse_columns_request, read_columns_request
from rprime.application.evaluate import (
    RenderedReport,
    ResponseOptions,
    UnstoredEvaluation,
    evaluate_and_render,
)
from rprime.evidence import EXTRA, MEDIA_TYPES, Kind, is_readable
from rprime.problems.problem import Problem
from rprime.routes.services import get_services
from rprime.server.body import (
    Inflated,
    check_length,
    content_encoding,
    inflated_bound,
    received_chunks,
    too_large,
)
from rprime.server.body_pipe import BodyPipe, ReaderGoneError

STALLED_SECONDS = 30.0
"""Without a byte for so long, a client counts as gone: others wait for its place."""
_BEGIN = 1 << 20
"""Bytes that have to be there, if not all, before a place is taken: who sends little has none."""

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


async def evaluate_columns(
    request: Request, kind: Kind, options: ResponseOptions
) -> RenderedReport | UnstoredEvaluation:
    """Answer a request whose body is columns.

    Parameters
    ----------
    request
        Its body is read as far as it is of use.
    kind
        Of the body.
    options
        What is asked.

    Raises
    ------
    Problem
        400, 413, 415, 422; 503 if too many others are worked on.
    """
    if not is_readable(kind):
        raise Problem("unsupported_media_type", _MISSING)
    limit = options.limits.other_body_bytes
    encoding = content_encoding(request)
    check_length(request, limit)
    asked = parse_columns_request(request.query_params.get("request", "").encode(), options.limits)
    threads = get_services(request).threads
    sent = _Sent(request, limit)
    begin = await sent.begin()
    async with threads.slots.place():
        pipe = BodyPipe()
        body = _inflated(pipe, encoding, limit)
        hold = _Holding(request, limit)

        def work() -> RenderedReport | UnstoredEvaluation:
            try:
                evaluation_request = read_columns_request(kind, body, asked, options.limits, hold)
            finally:
                pipe.leave()
            if evaluation_request.store_request is None:
                return evaluate_and_render(evaluation_request, options)
            # The digest stands for the body, which nobody has any more.
            return UnstoredEvaluation(
                evaluation_request,
                _payload(evaluation_request.evidence.input_digest, evaluation_request),
            )

        return await _fed(pipe, begin, sent, threads.start(work))


_MISSING = (
    f"The service was installed without the extra `{EXTRA}`, which reads this type: "
    f"pip install 'rprime[{EXTRA}]', or send JSON."
)


def _payload(digest: str, evaluation_request: object) -> bytes:
    assessment = getattr(evaluation_request, "review", None)
    baseline_side = assessment.baseline_side if assessment is not None else None
    return f"{digest} {baseline_side.identity if baseline_side is not None else ''}".encode()


class _Holding:
    """Counts the memory that a body takes, by the limit of one and of all."""

    def __init__(self, request: Request, limit: int) -> None:
        self._in_flight = get_services(request).admission
        self._scope = request.scope
        self._limit = limit
        # What is read at once and what is kept of it are each within the limit.
        self._left = 2 * limit

    def __call__(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise too_large(self._limit)
        self._in_flight.hold(self._scope, size)


def _inflated(pipe: BodyPipe, encoding: str, limit: int) -> IO[bytes]:
    sent = cast("IO[bytes]", pipe)
    if encoding == "identity":
        return sent
    bound = lambda: inflated_bound(limit, pipe.received)  # noqa: E731 (read in one place)
    return cast("IO[bytes]", Inflated(sent, encoding, bound))


class _Sent:
    """The pieces of a body, within its limit and as long as they keep coming."""

    def __init__(self, request: Request, limit: int) -> None:
        self._in_flight = get_services(request).admission
        self._scope = request.scope
        self._pieces = received_chunks(request)
        self._limit = limit
        self._size = 0

    async def piece(self) -> bytes | None:
        """Wait for the next one; None at the end."""
        try:
            async with asyncio.timeout(STALLED_SECONDS):
                piece = await anext(self._pieces, None)
        except TimeoutError:
            raise ClientDisconnect from None
        self._size += len(piece or b"")
        if self._size > self._limit:
            raise too_large(self._limit)
        return piece

    async def begin(self) -> list[bytes]:
        """Wait for the first ones."""
        begin: list[bytes] = []
        while self._size < _BEGIN and (piece := await self.piece()) is not None:
            self._in_flight.hold(self._scope, len(piece))
            begin.append(piece)
        return begin


async def _fed(
    pipe: BodyPipe,
    begin: list[bytes],
    sent: _Sent,
    answer: "asyncio.Future[RenderedReport | UnstoredEvaluation]",
) -> RenderedReport | UnstoredEvaluation:
    """Feed a thread with the body and wait for its answer."""
    try:
        await _feed(pipe, begin, sent)
    except BaseException:
        pipe.finish(gone=True)
        # The place is free again only when the thread is.
        await asyncio.wait([answer])
        answer.exception()
        raise
    pipe.finish()
    try:
        return await answer
    except ReaderGoneError:
        raise ClientDisconnect from None


async def _feed(pipe: BodyPipe, begin: list[bytes], sent: _Sent) -> None:
    wanted = all([await pipe.feed(piece) for piece in begin])
    # They would stay in memory as long as the body is read.
    begin.clear()
    while wanted and (piece := await sent.piece()) is not None:
        wanted = await pipe.feed(piece)
