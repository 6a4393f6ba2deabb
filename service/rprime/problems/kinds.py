"""Every kind of problem that the service can answer with, declared once."""

from dataclasses import dataclass

PAGE = "/docs/problems"


@dataclass(frozen=True)
class Kind:
    """A kind of problem: its meaning and what the client can do."""

    status: int
    title: str
    meaning: str
    cure: str
    example: str | None = None
    """The detail of the example in the OpenAPI document; None: the title as a sentence."""


KINDS = {
    "unreadable_body": Kind(
        400,
        "The body cannot be read",
        "The bytes are not what their content type says: broken JSON, a damaged archive, "
        "a compressed stream that ends too early.",
        "Send the body again, whole, in the format that Content-Type names.",
        "The body is not valid JSON: unexpected end of data at line 1, column 18.",
    ),
    "bad_request": Kind(
        400,
        "The request is not valid HTTP",
        "A header or the framing of the request breaks the rules of HTTP.",
        "Check what the client, or a proxy in between, sends.",
        "The header Content-Length is not a number.",
    ),
    "unauthorized": Kind(
        401,
        "A valid key is needed",
        "The request carries no key, or one that is not valid, has expired or was revoked.",
        "Send a key that `rprime keys create` made, in the header Authorization: Bearer KEY.",
        "The key is not valid.",
    ),
    "forbidden": Kind(
        403,
        "The key does not open this",
        "The key is valid, but has none of the scopes that the operation needs.",
        "Use a key with a scope that the answer names; rprime keys create --scope makes it.",
        "The key needs the scope write.",
    ),
    "unproven_origin": Kind(
        403,
        "The CSRF token is missing or wrong",
        "A browser that is signed in asks for a change, but without the token that the pages "
        "of its session carry, or from a page of another site.",
        "Load the page again and repeat it there; a script of the page sends the token in the "
        "header X-CSRF-Token, and a program a key in the header Authorization.",
        "The form is too old; load the page again.",
    ),
    "not_found": Kind(
        404,
        "Not found",
        "The path names no resource, or one that the caller may not see.",
        "Compare the path with the routes in the documentation.",
        "There is nothing at this path.",
    ),
    "baseline_not_found": Kind(
        404,
        "The baseline does not exist",
        "The request names a stored baseline by an id, a version, a model or an alias that "
        "does not exist. Nothing was stored.",
        "Correct the name: the detail has the nearest ones.",
        "Project `digits` has no alias `champoin`. The nearest aliases: `champion`.",
    ),
    "candidate_not_found": Kind(
        404,
        "The candidate does not exist",
        "The request names a stored candidate by an id, a version, a model or an alias that "
        "does not exist, or that the caller may not see.",
        "Correct the name: the detail has the nearest ones.",
        "Project `digits` has no alias `challenger`. Known aliases: `champion`.",
    ),
    "method_not_allowed": Kind(
        405,
        "Method not allowed",
        "The path exists, but not for this method.",
        "Use one of the methods in the header Allow.",
        "This path answers to: POST.",
    ),
    "not_acceptable": Kind(
        406,
        "No acceptable representation",
        "The header Accept names only media types that the service cannot write.",
        "Accept one of application/json, text/markdown, text/html and text/csv.",
        "None of the media types in Accept can be written.",
    ),
    "request_timeout": Kind(
        408,
        "The request did not arrive in time",
        "The client kept the service waiting for the rest of its head or body.",
        "Send it again without pauses; `/version` has the deadlines.",
    ),
    "no_store": Kind(
        409,
        "The service has no store",
        "The request reads the history, or names a `project` to store the evaluation in, but "
        "the service runs without a store.",
        "Remove `project`, or start the service with RPRIME_STORE set to a store.",
        "The service runs without a store.",
    ),
    "idempotency_key_running": Kind(
        409,
        "The first request with this key is still running",
        "Another request with the same Idempotency-Key is still running.",
        "Retry after the seconds in Retry-After: the answer will be the same.",
        "The first request with this Idempotency-Key is still running.",
    ),
    "evaluation_aliased": Kind(
        409,
        "An alias points at the evaluation",
        "An evaluation cannot be deleted while an alias points at it.",
        "Point the alias at another evaluation, or delete it first.",
    ),
    "evaluation_deleted": Kind(
        410,
        "The evaluation was deleted",
        "The first request with this Idempotency-Key stored an evaluation, which was deleted "
        "since.",
        "To store it again, send the request with a new key.",
        "The evaluation of this Idempotency-Key was deleted.",
    ),
    "precondition_failed": Kind(
        412,
        "The alias has changed",
        "The alias is not in the state that If-Match or If-None-Match expects.",
        "Read the alias again and decide anew; its current ETag is in the header ETag, if it "
        "exists.",
        "The alias is not what the request expects.",
    ),
    "body_too_large": Kind(
        413,
        "The body is too large",
        "The body exceeds a limit, as sent or after it was inflated.",
        "Send a confusion matrix or cells instead of labels, or split the request; "
        "the limits are listed at /version.",
        "The body exceeds the limit of 33554432 bytes.",
    ),
    "unsupported_media_type": Kind(
        415,
        "The media type is not supported",
        "Content-Type is missing or names an unsupported format.",
        "Set Content-Type to one of the types that the operation lists.",
        "Content-Type must be one of: application/json.",
    ),
    "unsupported_encoding": Kind(
        415,
        "The content encoding is not supported",
        "Content-Encoding is neither gzip nor zstd.",
        "Send the body uncompressed, or compressed with gzip or zstd.",
        "Content-Encoding must be one of: gzip, zstd.",
    ),
    "misdirected": Kind(
        421,
        "The request was meant for another host",
        "The header Host names a host that this service does not answer for.",
        "Use a name from RPRIME_HOSTS; on loopback the service answers as localhost.",
        "The header Host names a host that this service does not answer for.",
    ),
    "invalid_request": Kind(
        422,
        "The request is not valid",
        "The body is readable but not valid. Each entry of `errors` names a place and what is "
        "wrong there.",
        "Correct every listed place; nothing was computed or stored.",
        "1 error in the request.",
    ),
    "idempotency_key_reused": Kind(
        422,
        "The Idempotency-Key came with another request",
        "A key belongs to one request: it was used within 24 hours with another payload.",
        "Send every new request with a new key, and the same request with the same one.",
        "The Idempotency-Key was used with another payload.",
    ),
    "precondition_required": Kind(
        428,
        "A precondition is required",
        "A change of an alias must name the expected state, so that no change gets lost.",
        "Send If-Match with the ETag of the alias, or If-None-Match: * to create a new one.",
        "The request needs If-Match or If-None-Match: *.",
    ),
    "too_many_requests": Kind(
        429,
        "Too many requests",
        "The key has sent more requests than RPRIME_KEY_REQUESTS_PER_MINUTE allows, or its address "
        "too many wrong keys.",
        "Retry after the seconds in Retry-After, with a key that is right; spread requests evenly "
        "or send batches.",
    ),
    "head_too_large": Kind(
        431,
        "The head of the request is too large",
        "The path and the headers together exceed the limit in `/version`.",
        "Move large values into the body.",
    ),
    "internal_error": Kind(
        500,
        "The service failed",
        "A defect of the service. It says nothing about the evidence or the model.",
        "Report it with the request_id; the log of the service has the cause under this id.",
        "The service failed; its log has the cause under this request_id.",
    ),
    "store_damaged": Kind(
        500,
        "The store is damaged",
        "The database has something that nobody wrote, as after a failure of a disk.",
        "Keep a copy of the file of the store, then restore a backup, or save what can be read "
        "with `sqlite3 FILE .recover`. The log of the service has the error.",
        "The store is damaged; its log says how to save what can be read.",
    ),
    "unsupported_transfer_coding": Kind(
        501,
        "The transfer coding is not known",
        "The header Transfer-Encoding names another coding than `chunked`.",
        "Compress the body by Content-Encoding instead.",
        "The only Transfer-Encoding is `chunked`.",
    ),
    "overloaded": Kind(
        503,
        "The service is busy",
        "Other requests occupy all the memory or all the workers.",
        "Retry after the seconds in Retry-After.",
        "The bodies of running requests take all the memory reserved for them.",
    ),
    "stopping": Kind(
        503,
        "The service is stopping",
        "The service is shutting down and takes no new requests.",
        "Retry after the seconds in Retry-After.",
    ),
    "store_unavailable": Kind(
        503,
        "The store cannot be used now",
        "The database is locked by another program, cannot be reached, cannot be read or "
        "is no longer at its path. `detail` has the state and the cause.",
        "Retry after the seconds in Retry-After; if it keeps failing, the log of the service "
        "has the cause.",
    ),
    "store_full": Kind(
        507,
        "The disk of the store is full",
        "Nothing of the request was stored. Reading, and evaluating without a project, still work.",
        "Make room, or delete evaluations by POST /v1/projects/{project}/purge, which works on "
        "a full disk.",
        "The disk of the store is full; nothing was stored.",
    ),
    "project_quota_exceeded": Kind(
        507,
        "The project has no room for the evaluation",
        "The evaluations of the project would have more bytes than RPRIME_PROJECT_MAX_BYTES "
        "allows. Nothing was stored.",
        "Delete evaluations, or purge old ones by POST /v1/projects/{project}/purge; "
        "evaluating without a project still works.",
        "The project has 1073741210 of 1073741824 bytes; the evaluation needs 2041. Nothing "
        "was stored.",
    ),
}
"""By the code, for programs."""
