"""Problems of RFC 9457: every kind the service can answer with, declared once."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from http import HTTPStatus
from itertools import groupby, islice
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

MEDIA_TYPE = "application/problem+json"
PAGE = "/docs/problems"
MOST_VIOLATIONS = 20
LONGEST_SEGMENT = 64

# In place of messages of Pydantic that would repeat what the client sent, or mend nothing.
_SILENT = {
    "union_tag_invalid": "The tag is none of the expected ones",
    "extra_forbidden": "It is not known here: mend its name or leave it out; /docs has the names",
}


@dataclass(frozen=True)
class Kind:
    """A kind of problem: what it means and what the caller can do about it."""

    status: int
    code: str
    title: str
    meaning: str
    mend: str
    example: str
    """The detail of an example that is published."""

    @property
    def type(self) -> str:
        """The reference to the explanation of this kind."""
        return f"{PAGE}#{self.code}"


KINDS = {
    kind.code: kind
    for kind in (
        Kind(
            400,
            "unreadable_body",
            "The body cannot be read",
            "The bytes are not what their content type says: broken JSON, a damaged archive, "
            "a compressed stream that ends too early.",
            "Send the body again, whole, in the format that Content-Type names.",
            "The body is not valid JSON: unexpected end of data at line 1, column 18.",
        ),
        Kind(
            400,
            "bad_request",
            "The request is not valid HTTP",
            "A header or the framing of the request breaks the rules of HTTP.",
            "Look at what the client or a proxy on the way sends.",
            "The header Content-Length is not a number.",
        ),
        Kind(
            401,
            "unauthorized",
            "A valid key is needed",
            "The request carries no key, or one that is not valid, has expired or was revoked.",
            "Send a key that `rprime keys create` made, in the header Authorization: Bearer KEY.",
            "The key is not valid.",
        ),
        Kind(
            403,
            "forbidden",
            "The key does not open this",
            "The key is valid, but has none of the scopes that the operation needs.",
            "Use a key with a scope that the answer names; rprime keys create --scope makes it.",
            "The key needs the scope write.",
        ),
        Kind(
            403,
            "unproven_origin",
            "Nothing proves that a page of this service asks for it",
            "A browser that is signed in asks for a change, but without the token that the pages "
            "of its session carry, or from a page of another site.",
            "Load the page again and repeat it there; a script of the page sends the token in the "
            "header X-CSRF-Token, and a program a key in the header Authorization.",
            "The form is too old; load the page again.",
        ),
        Kind(
            404,
            "not_found",
            "There is nothing here",
            "The path names no resource, or one that the caller may not see.",
            "Compare the path with the routes in the documentation.",
            "There is nothing at this path.",
        ),
        Kind(
            405,
            "method_not_allowed",
            "The method is not possible here",
            "The path exists, but not for this method.",
            "Use one of the methods in the header Allow.",
            "This path answers to: POST.",
        ),
        Kind(
            406,
            "not_acceptable",
            "No acceptable representation",
            "The header Accept names only media types that the service cannot write.",
            "Accept one of application/json, text/markdown, text/html and text/csv.",
            "None of the media types in Accept can be written.",
        ),
        Kind(
            408,
            "request_timeout",
            "The request did not arrive in time",
            "The client kept the service waiting for the rest of its head or body.",
            "Send it again, in one go; `/version` names the deadlines.",
            "The request did not arrive in time.",
        ),
        Kind(
            409,
            "no_store",
            "The service keeps no history",
            "The request is about the history, or names a `project` to keep the evaluation in, "
            "but the service runs without a store.",
            "Leave `project` out, or start the service with RPRIME_STORE set to a store.",
            "The service runs without a store.",
        ),
        Kind(
            409,
            "idempotency_key_running",
            "The first request with this key is still running",
            "A request with the same Idempotency-Key is being answered right now.",
            "Send it again after the seconds that Retry-After names: it gets the same answer.",
            "The first request with this Idempotency-Key is still running.",
        ),
        Kind(
            409,
            "evaluation_aliased",
            "An alias points at the evaluation",
            "An evaluation is not deleted as long as an alias points at it.",
            "Point the alias at another evaluation, or delete it first.",
            "An alias points at the evaluation.",
        ),
        Kind(
            412,
            "precondition_failed",
            "It has changed meanwhile",
            "What the request expects to be there (If-Match, If-None-Match) is not what is there.",
            "Read it again and decide anew; the header ETag says what is there, if anything is.",
            "The alias is not what the request expects.",
        ),
        Kind(
            413,
            "body_too_large",
            "The body is too large",
            "The body exceeds a limit, as sent or after it was inflated.",
            "Send a confusion matrix or cells in place of labels, or split the request; "
            "the limits are listed at /version.",
            "The body exceeds the limit of 33554432 bytes.",
        ),
        Kind(
            415,
            "unsupported_media_type",
            "The media type is not supported",
            "Content-Type is missing or names a format that is not read here.",
            "Set Content-Type to one of the types that the operation lists.",
            "Content-Type must be one of: application/json.",
        ),
        Kind(
            415,
            "unsupported_encoding",
            "The content encoding is not supported",
            "Content-Encoding names something else than gzip or zstd.",
            "Send the body as it is, or compressed with gzip or zstd.",
            "Content-Encoding must be one of: gzip, zstd.",
        ),
        Kind(
            421,
            "misdirected",
            "The request was meant for another host",
            "The header Host names a host that this service does not answer for.",
            "Ask it by a name that RPRIME_HOSTS has; on loopback it answers as localhost.",
            "The header Host names a host that this service does not answer for.",
        ),
        Kind(
            422,
            "invalid_request",
            "The request is not valid",
            "The body was read, but what it says cannot be evaluated. Each entry of `errors` "
            "points at a place and says what is wrong with it.",
            "Mend every place that is listed; nothing was computed or stored.",
            "1 error in the request.",
        ),
        Kind(
            422,
            "idempotency_key_reused",
            "The Idempotency-Key came with another request",
            "A key stands for one request: it was used within 24 hours with another payload.",
            "Send every new request with a new key, and the same request with the same one.",
            "The Idempotency-Key was used with another payload.",
        ),
        Kind(
            428,
            "precondition_required",
            "Say what you expect to be there",
            "An alias is changed only by who knows what it was, so that no change gets lost.",
            "Send If-Match with the ETag of the alias, or If-None-Match: * to make a new one.",
            "The request needs If-Match or If-None-Match: *.",
        ),
        Kind(
            431,
            "head_too_large",
            "The head of the request is too large",
            "The path and the headers together are larger than the limit that `/version` names.",
            "Send what is large in the body.",
            "The head of the request is too large.",
        ),
        Kind(
            500,
            "internal_error",
            "The service failed",
            "A defect of the service. It says nothing about the evidence or the model.",
            "Report it with the request_id, under which the log of the service has the cause.",
            "The service failed; its log has the cause under this request_id.",
        ),
        Kind(
            501,
            "not_installed",
            "The service was installed without this",
            "The operation needs a library that only an extra of the package brings.",
            "Install the extra that the answer names, beside the service; the image has it.",
            "Figures need the extra `figures`: pip install 'rprime[figures]'.",
        ),
        Kind(
            503,
            "overloaded",
            "The service is busy",
            "Other requests hold all the memory or all the workers that are set aside.",
            "Send the same request again after the seconds that Retry-After names.",
            "The bodies in flight take all the memory that is set aside for them.",
        ),
        Kind(
            503,
            "stopping",
            "The service is stopping",
            "It was asked to stop and takes no new work; others, or its successor, will.",
            "Send the same request again after the seconds that Retry-After names.",
            "The service is stopping.",
        ),
        Kind(
            503,
            "store_unavailable",
            "The store cannot be used now",
            "The database is locked by another program, cannot be reached or cannot be read.",
            "Send the same request again after the seconds that Retry-After names; if it stays "
            "so, the log of the service has the cause.",
            "The store cannot be used now.",
        ),
        Kind(
            507,
            "store_full",
            "The disk of the store is full",
            "Nothing of the request was stored. Reading, and evaluating without a project, go on.",
            "Make room, or delete evaluations by POST /v1/projects/{project}/purge.",
            "The disk of the store is full; nothing was stored.",
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Violation:
    """One place of a request that breaks a rule; ``detail`` never repeats the input."""

    pointer: Annotated[
        str,
        Field(
            description="JSON pointer into the body; of a parameter: `/query/NAME`, `/path/NAME` "
            "or `/header/NAME`. Empty for the body as a whole."
        ),
    ]
    code: Annotated[str, Field(description="The rule that is broken, for programs.")]
    detail: Annotated[str, Field(description="The rule that is broken, for people.")]


class Problem(Exception):  # noqa: N818 - RFC 9457 calls it a problem
    """An answer that is an error, to be raised anywhere above the core.

    Parameters
    ----------
    code
        A key of `KINDS`; it gives the status, the title and the type.
    detail
        What is wrong this time, for people, without a word of what the client sent; default:
        how many errors there are, or else the meaning of the kind.
    errors
        The places that are wrong. Only the first 20 are sent.
    headers
        Further headers of the response, such as ``Retry-After``.
    """

    def __init__(
        self,
        code: str,
        detail: str | None = None,
        *,
        errors: Sequence[Violation] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.kind = KINDS[code]
        self.detail = detail or (_count(len(errors)) if errors else self.kind.meaning)
        self.errors = tuple(errors[:MOST_VIOLATIONS])
        self.headers = dict(headers or {})
        super().__init__(f"{self.kind.status} {code}: {self.detail}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Let it be sent from a process that found it."""
        return _again, (self.kind.code, self.detail, self.errors, self.headers)

    @property
    def status(self) -> int:
        """The status of the response."""
        return self.kind.status

    def document(self, request_id: str | None = None) -> dict[str, Any]:
        """Give the members of the problem document, without those that are empty."""
        return _document(
            type=self.kind.type,
            title=self.kind.title,
            status=self.kind.status,
            detail=self.detail,
            code=self.kind.code,
            request_id=request_id,
            errors=[asdict(violation) for violation in self.errors],
        )


def _again(
    code: str, detail: str, errors: Sequence[Violation], headers: Mapping[str, str]
) -> Problem:
    return Problem(code, detail, errors=errors, headers=headers)


def pointer(*parts: str | int) -> str:
    """Give the JSON pointer (RFC 6901) of a place, safe to send and of bounded length."""
    return "".join(f"/{_segment(part)}" for part in parts)


def from_errors(found: Sequence[Mapping[str, Any]]) -> Problem:
    """Turn what Pydantic found wrong into a problem, without a word of the input.

    Parameters
    ----------
    found
        As `errors` of its exception gives it.
    """
    if any(error["type"] == "json_invalid" for error in found):
        return Problem("unreadable_body", "The body is not valid JSON.")
    first = islice(found, MOST_VIOLATIONS)
    return Problem(
        "invalid_request", _count(len(found)), errors=[_violation(error) for error in first]
    )


def blank(status: int, request_id: str | None) -> dict[str, Any]:
    """Give the problem document of a status that says all there is to say (RFC 9457, 4.2.1)."""
    phrase = HTTPStatus(status).phrase
    return _document(
        type="about:blank",
        title=phrase,
        status=status,
        detail=phrase,
        code=HTTPStatus(status).name.lower(),
        request_id=request_id,
    )


class ProblemDocument(BaseModel):
    """An error, as RFC 9457 describes it."""

    model_config = ConfigDict(title="Problem")

    type: str = Field(description="Reference to the explanation of this kind of problem.")
    title: str = Field(description="The kind of problem in a few words.")
    status: int = Field(description="The status of the response.")
    detail: str = Field(description="What is wrong this time. It never repeats the input.")
    code: str = Field(description="The kind of problem, for programs.")
    request_id: str = Field(description="The X-Request-Id of the response.")
    errors: list[Violation] = Field(
        default=[],
        description="The places that are wrong, the first 20 of them; left out if there are none.",
        max_length=MOST_VIOLATIONS,
    )


def responses(*codes: str) -> dict[int | str, dict[str, Any]]:
    """Describe kinds of problems for OpenAPI: the argument ``responses`` of a route."""
    kinds = sorted((KINDS[code] for code in codes), key=lambda kind: kind.status)
    return {status: _published(list(same)) for status, same in groupby(kinds, lambda k: k.status)}


def components() -> dict[str, Any]:
    """Give the JSON schemas that `responses` refers to, for the OpenAPI document."""
    schema = ProblemDocument.model_json_schema(ref_template="#/components/schemas/{model}")
    return {**schema.pop("$defs"), "Problem": schema}


def _published(kinds: list[Kind]) -> dict[str, Any]:
    return {
        "description": "; ".join(kind.title for kind in kinds),
        "content": {
            MEDIA_TYPE: {
                "schema": {"$ref": "#/components/schemas/Problem"},
                "examples": {
                    kind.code: {"summary": kind.meaning, "value": _example(kind)} for kind in kinds
                },
            }
        },
    }


def _example(kind: Kind) -> dict[str, Any]:
    errors = []
    if kind.code == "invalid_request":
        errors = [Violation("/confusion_matrix/2/0", "negative", "A count is 0 or more.")]
    return Problem(kind.code, kind.example, errors=errors).document(
        "0b9f6a1c4d2e4f0f8a7c5e3b1d9f7a5c"
    )


def _document(**members: Any) -> dict[str, Any]:  # noqa: ANN401 - the members of a JSON object
    return {name: value for name, value in members.items() if value not in (None, [])}


def _count(found: int) -> str:
    told = f"; the first {MOST_VIOLATIONS} are listed" if found > MOST_VIOLATIONS else ""
    return f"{found} error{'s' if found > 1 else ''} in the request{told}."


def _violation(error: Mapping[str, Any]) -> Violation:
    place, *rest = error["loc"] or ("body",)
    parts = rest if place == "body" else error["loc"]
    return Violation(pointer(*parts), error["type"], _SILENT.get(error["type"], error["msg"]) + ".")


def _segment(part: str | int) -> str:
    text = str(part)
    if len(text) > LONGEST_SEGMENT:
        text = text[: LONGEST_SEGMENT - 1] + "…"
    # A lone surrogate has no UTF-8, so it could not be sent.
    text = text.encode("utf-8", "replace").decode("utf-8")
    return text.replace("~", "~0").replace("/", "~1")
