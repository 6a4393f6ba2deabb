"""Exceptions of the clients and of the in-process functions."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Violation(NamedTuple):
    """A rule that the request breaks, and where."""

    pointer: str
    code: str
    detail: str


class ProblemError(Exception):
    """The answer is a problem (RFC 9457): 4xx means the request is wrong, 5xx the service is.

    Attributes
    ----------
    status, code, title, detail
        The kind of problem, and what is wrong this time.
    errors
        The violations, each with pointer, code and detail.
    request_id
        The id of the request in the log of the service; None in-process.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = dict(document)
        self.status: int = document["status"]
        self.code: str = document["code"]
        self.title: str = document["title"]
        self.detail: str = document["detail"]
        self.request_id: str | None = document.get("request_id")
        self.errors = tuple(
            Violation(error["pointer"], error["code"], error["detail"])
            for error in document.get("errors", ())
        )
        places = "".join(f"\n  {v.pointer or '/'}: {v.detail}" for v in self.errors)
        super().__init__(f"{self.status} {self.code}: {self.title}. {self.detail}{places}")

    def __reduce__(self) -> tuple[type["ProblemError"], tuple[dict[str, Any]]]:
        return type(self), (self.document,)


class ServiceUnavailableError(Exception):
    """The service did not answer: it is unreachable, too busy or too slow.

    This says nothing about the request or the model. If a busy service sent a problem, that is the
    cause (`__cause__`).
    """
