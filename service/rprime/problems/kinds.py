"""Every kind of problem that the service can answer with, declared once."""

from dataclasses import dataclass

PAGE = "/docs/problems"


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
            "The database is locked by another program, cannot be reached, cannot be read or "
            "is no longer at its path.",
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
