"""One call and what may come of it, without a connection: both clients follow these rules."""

import gzip
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from secrets import SystemRandom
from typing import Any

import httpx
import orjson

from rprime.client.errors import ProblemError, ServiceUnavailableError

JSON = "application/json"
PROBLEM = "application/problem+json"
BUSY = frozenset({429, 502, 503, 504})
"""Statuses after which the same request may succeed."""
_LARGE = 64 * 1024
"""Bytes from which on a body is compressed."""
# The service cannot have answered, or says that its answer to the key is the same: all others,
# such as an answer that does not come in time, would only add to the load.
_PASSING = (
    httpx.NetworkError,
    httpx.RemoteProtocolError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
)


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How often a call is repeated, and how long is waited before each time.

    Parameters
    ----------
    retries
        After the first attempt.
    backoff
        Seconds before the first retry, doubled for each further one; between half of it and all
        of it is waited, so that many clients do not come back at the same time.
    longest
        Seconds that are waited at most. A service that asks for more is not asked again.
    """

    retries: int = 3
    backoff: float = 0.5
    longest: float = 60.0

    def pause(self, retry: int, asked: float | None) -> float | None:
        """Give the seconds to wait before a retry, counted from 0; None: there is none.

        Parameters
        ----------
        retry
            Which one.
        asked
            What the service asks to wait at least.
        """
        if retry >= self.retries or (asked is not None and asked > self.longest):
            return None
        most = min(self.backoff * 2.0**retry, self.longest)
        waited = SystemRandom().uniform(most / 2, most)
        return waited if asked is None else max(asked, waited)


@dataclass
class Attempts:
    """The attempts at one call.

    Parameters
    ----------
    patience
        Shared by all calls of a client.
    """

    patience: Patience
    made: int = field(default=0, init=False)

    def pause(self, outcome: httpx.Response | httpx.RequestError) -> float | None:
        """Judge the outcome of an attempt.

        Returns
        -------
        Seconds to wait before the next one; None if the outcome is an answer.

        Raises
        ------
        ProblemError
            If the answer is a problem.
        ServiceUnavailableError
            If there is no answer, and no further attempt to be made.
        """
        if isinstance(outcome, httpx.Response) and outcome.status_code not in BUSY:
            check(outcome)
            return None
        asked = retry_after(outcome) if isinstance(outcome, httpx.Response) else None
        lasting = isinstance(outcome, httpx.RequestError) and not isinstance(outcome, _PASSING)
        pause = None if lasting else self.patience.pause(self.made, asked)
        self.made += 1
        if pause is None:
            self._give_up(outcome)
        return pause

    def _give_up(self, outcome: httpx.Response | httpx.RequestError) -> None:
        tried = "" if self.made == 1 else f" after {self.made} attempts"
        if isinstance(outcome, httpx.RequestError):
            said = f"{_words(outcome)}{tried}"
            raise ServiceUnavailableError(f"{outcome.request.url}: {said}") from outcome
        said = f"it answers {_phrase(outcome.status_code)}{tried}"
        raise ServiceUnavailableError(f"{outcome.url}: {said}") from problem_of(outcome)


def check(response: httpx.Response) -> None:
    """Refuse an answer that is not what was asked for.

    Raises
    ------
    ProblemError
        If it is a problem, or another 4xx.
    ServiceUnavailableError
        If it is nothing that the service would send.
    """
    media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if response.is_success and media_type == response.request.headers["accept"]:
        return
    problem = problem_of(response)
    if problem is not None:
        raise problem
    if response.is_client_error:
        raise ProblemError(_stand_in(response))
    what = "" if response.is_success else f" {_phrase(response.status_code)}"
    if response.has_redirect_location:
        what += f", to {response.headers['location']}"
    raise ServiceUnavailableError(f"{response.url}: no service of this kind answers there:{what}")


def problem_of(response: httpx.Response) -> ProblemError | None:
    """Read the problem in an answer; None where there is none."""
    if not response.headers.get("content-type", "").startswith(PROBLEM):
        return None
    try:
        return ProblemError({**_stand_in(response), **orjson.loads(response.content)})
    except (ValueError, TypeError, KeyError):
        return None


def retry_after(response: httpx.Response) -> float | None:
    """Read for how many seconds the service asks to wait; None where it does not say."""
    said = response.headers.get("retry-after", "").strip()
    if said.isdecimal():
        return float(said)
    try:
        moment = parsedate_to_datetime(said)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def compressed(body: bytes) -> tuple[bytes, dict[str, str]]:
    """Compress a large body, and give the headers that say so."""
    if len(body) < _LARGE:
        return body, {}
    return gzip.compress(body, 1), {"Content-Encoding": "gzip"}


def _stand_in(response: httpx.Response) -> dict[str, Any]:
    """Say what a status says, for an answer of a proxy."""
    phrase = _phrase(response.status_code)
    return {
        "status": response.status_code,
        "code": f"http_{response.status_code}",
        "title": phrase,
        "detail": f"{response.url} answers so.",
        "request_id": response.headers.get("x-request-id"),
    }


def _phrase(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _words(error: httpx.RequestError) -> str:
    if isinstance(error, httpx.ConnectTimeout):
        return "no connection in time"
    if isinstance(error, httpx.TimeoutException):
        return "no answer in time"
    return _NUMBER.sub("", f"{error}") or type(error).__name__


_NUMBER = re.compile(r"^\[Errno -?\d+\] ")
"""Of an error of the system, before its words."""
