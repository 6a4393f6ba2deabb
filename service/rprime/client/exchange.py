"""The rules of retries and errors that both clients share, without a connection."""

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

PROBLEM = "application/problem+json"
BUSY = frozenset({429, 502, 503, 504})
"""Statuses after which the same request may succeed."""
# Errors that are safe to retry: the service cannot have answered, or repeats its answer to the key.
# Other retries, such as after a read timeout, would only add to the load.
_PASSING = (httpx.NetworkError, httpx.RemoteProtocolError, httpx.ConnectTimeout, httpx.PoolTimeout)


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How often to repeat a call, and how long to wait before each retry.

    Parameters
    ----------
    retries
        After the first attempt.
    backoff
        Seconds before the first retry, doubled for each further one; the wait is random between
        half and all of it, so that clients do not return simultaneously.
    longest
        Most seconds to wait. If a service asks for more, the call is not repeated.
    """

    retries: int = 3
    backoff: float = 0.5
    longest: float = 60.0

    def pause(self, retry: int, asked: float | None) -> float | None:
        """Return the seconds to wait before a retry; None means no retry.

        Parameters
        ----------
        retry
            Which one.
        asked
            The seconds in Retry-After.
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
        The retry settings of the client.
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
            If there is no answer and no further attempt.
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
            raise ServiceUnavailableError(f"{_place(outcome.request.url)}: {said}") from outcome
        said = f"it answers {_phrase(outcome.status_code)}{tried}"
        raise ServiceUnavailableError(f"{_place(outcome.url)}: {said}") from problem_of(outcome)


def check(response: httpx.Response) -> None:
    """Refuse an unsuccessful answer.

    Raises
    ------
    ProblemError
        If it is a problem, or another 4xx.
    ServiceUnavailableError
        If it cannot be from an rprime service.
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
    raise ServiceUnavailableError(f"{_place(response.url)}: no rprime service answers there:{what}")


def problem_of(response: httpx.Response) -> ProblemError | None:
    """Return the problem in an answer; None without one."""
    if not response.headers.get("content-type", "").startswith(PROBLEM):
        return None
    try:
        return ProblemError({**_stand_in(response), **orjson.loads(response.content)})
    except (ValueError, TypeError, KeyError):
        return None


def retry_after(response: httpx.Response) -> float | None:
    """Return the seconds in Retry-After; None without the header."""
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


def _stand_in(response: httpx.Response) -> dict[str, Any]:
    """Make a problem of a status, for an answer of a proxy."""
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


def _place(url: httpx.URL) -> str:
    return str(url.copy_with(query=None))  # which may be long


def _words(error: httpx.RequestError) -> str:
    if isinstance(error, httpx.ConnectTimeout):
        return "no connection in time"
    if isinstance(error, httpx.TimeoutException):
        return "no answer in time"
    if "WRONG_VERSION_NUMBER" in f"{error}":
        return "the server does not speak TLS; is its address http:// in place of https://?"
    return _NUMBER.sub("", f"{error}") or type(error).__name__


_NUMBER = re.compile(r"^\[Errno -?\d+\] ")
"""The prefix of a system error message."""
