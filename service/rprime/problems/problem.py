"""Problems of RFC 9457: the exception, and its document."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rprime.core.index_names import nearest_name
from rprime.problems.kinds import KINDS, PAGE

_MOMENT = "a date such as 2026-01-31 or a datetime such as 2026-01-31T12:00:00Z"
_VALUES = {
    "bool": "true or false",
    "byte": "a number of bytes such as 512MiB",
    "date": "a date such as 2026-01-31",
    "datetime": _MOMENT,
    "dict": "an object",
    "finite": "a finite number",
    "float": "a number",
    "int": "an integer",
    "list": "a list",
    "model_type": "an object",
    "not_a_moment": _MOMENT,
    "string_type": "a string",
    "tuple": "a list",
}
"""What a member must be, by the type of an error of Pydantic or its first word."""
_SENTENCES = {
    "extra_forbidden": "A name is not known here: correct or remove it; /docs lists the names",
    "missing": "Add {name}, which is required",
    "null": "Leave {name} out instead of sending null",
    "required_null": "Give {name} a value: it is required, and null is none",
    "union_tag_invalid": "The tag is none of the expected ones",
}
_WORDS = {
    r"^Value should have at least (\d+) items": r"{name} must have at least \1 characters",
    "^(?:Dictionary|Input|List|String|Tuple|Value) should": "{name} must",
    r"match pattern '\^\[\^.*": "have no control characters",
    r"match pattern '\^\[0-9a-f\].*": "be 64 digits of 0-9 and a-f",
    r"match pattern '\^\[A-Za-z0-9\]\[A-Za-z0-9(.*)\]\*\$'": (
        r"begin with a letter or a digit, then have letters, digits and the signs \1 only"
    ),
    " after validation": "",
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
    "must be True": "must be true",
    "^Path does": "{name} does",
    "^Value error, ": "",
    "^value is not": "{name} is not",
}
"""The words of other messages of Pydantic, and those that a reader understands."""


def member(parts: Sequence[str | int], *, within: bool = False) -> str:
    """Name the member at a place, or a value `within` it; no part may be a value of the request."""
    if not parts:
        return "the body"
    *outer, last = parts
    if isinstance(last, int):
        return f"item {last + 1} of {member(outer)}"
    return f"a value in `{last}`" if within else f"`{last}`"


def error_sentence(error: Mapping[str, Any], name: str) -> str:
    """Say what is wrong with a member, by an error of Pydantic, without repeating its value."""
    kind = error["type"]
    if value := _VALUES.get(kind) or _VALUES.get(kind.partition("_")[0]):
        text = f"{name} must be {value}"
    elif kind in _SENTENCES:
        text = _SENTENCES[kind].format(name=name)
    else:
        text = error["msg"]
        for theirs, ours in _WORDS.items():
            text = re.sub(theirs, ours.replace("{name}", name), text)
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('?', '.')) else '.'}"


class _Prefix:
    """Set once for the process, since its answers are made in many places and threads."""

    path = ""


def set_root_path(path: str) -> None:
    """Set the prefix; "" for none."""
    _Prefix.path = path


def rooted(path: str) -> str:
    """Return a path of the service as its clients see it."""
    return _Prefix.path + path


Model = TypeVar("Model", bound=BaseModel)

MEDIA_TYPE = "application/problem+json"
MOST_VIOLATIONS = 20
MOST_COUNTED = 10_000
"""Violations that are looked for, to count those that are equal."""
LONGEST_SEGMENT = 64
NO_PROJECT = "There is no such project, or you may not see it."
"""One detail for both: a client must not learn which projects exist."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that the request breaks, and where; `detail` repeats no value of it."""

    pointer: Annotated[
        str,
        Field(
            description="JSON pointer into the body; of a parameter: `/query/NAME`, `/path/NAME` "
            "or `/header/NAME`. Empty for the body as a whole."
        ),
    ]
    code: Annotated[str, Field(description="The rule that is broken, for programs.")]
    detail: Annotated[str, Field(description="The rule that is broken, for people.")]


@dataclass(frozen=True, slots=True)
class UnknownMember(Violation):
    """What is not known; its name is said in-process, and of a parameter or a member."""

    name: str


class Problem(Exception):  # noqa: N818 - RFC 9457 calls it a problem
    """An error of the API as an exception, raised anywhere above the core.

    Parameters
    ----------
    code
        A key of `KINDS`.
    detail
        What is wrong this time, for people, without repeating the input; default: the number of
        errors, or the meaning of the kind.
    errors
        The violations, of which the first 20 are sent.
    counted
        Whether these are all of them.
    headers
        Further ones of the response, such as ``Retry-After``.
    """

    def __init__(
        self,
        code: str,
        detail: str | None = None,
        *,
        errors: Sequence[Violation] = (),
        counted: bool = True,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.code = code
        self.kind = KINDS[code]
        summary = _count(len(errors), counted=counted) if errors else self.kind.meaning
        self.detail = detail or summary
        self.errors = tuple(errors[:MOST_VIOLATIONS])
        self.headers = dict(headers or {})
        super().__init__(f"{self.kind.status} {code}: {self.detail}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickling, to send it from a worker process."""
        again = partial(Problem, errors=self.errors, headers=self.headers)
        return again, (self.code, self.detail)

    @property
    def status(self) -> int:
        """The status of the response."""
        return self.kind.status

    def document(self, request_id: str | None = None, *, local: bool = False) -> dict[str, Any]:
        """Return the members of the problem document, without empty ones.

        A local one stays in the process of the request, and may repeat names of its members.
        """
        members = {
            "type": rooted(f"{PAGE}#{self.code}"),
            "title": self.kind.title,
            "status": self.kind.status,
            "detail": self.detail,
            "code": self.code,
            "request_id": request_id,
            "errors": [_published_violation(violation, local=local) for violation in self.errors],
        }
        return {name: value for name, value in members.items() if value not in (None, [])}


def _published_violation(violation: Violation, *, local: bool) -> dict[str, str]:
    members: dict[str, str] = asdict(violation)
    name = members.pop("name", None)
    if name is not None and (local or _may_be_named(violation, name)):
        shown = repr(_clipped(name))
        # Isolated: text from right to left must not reorder the sentence.
        shown = shown if shown.isascii() else f"\u2068{shown}\u2069"
        members["detail"] = f"{shown}: {members['detail']}"
    return members


def _may_be_named(violation: Violation, name: str) -> bool:
    """Whether an answer repeats a name: that of a parameter, or of a member if it can be read."""
    of_query = violation.pointer.startswith("/query")
    short = len(name) <= LONGEST_SEGMENT and name.isprintable()
    return of_query or (violation.code == "unknown_field" and short)


def pointer(*parts: str | int) -> str:
    """Return the JSON pointer (RFC 6901) of a place, safe to send and of bounded length."""
    return "".join(f"/{_segment(part)}" for part in parts)


def invalid(errors: Iterable[Violation]) -> Problem:
    """Return the problem of a request with violations.

    Where they are more than are sent, equal ones of an array become one with their number.
    """
    faults = list(islice(errors, MOST_COUNTED))
    if len(faults) <= MOST_VIOLATIONS:
        return Problem("invalid_request", errors=faults)
    counted = len(faults) < MOST_COUNTED
    same: dict[tuple[str, str, str], list[Violation]] = {}
    for violation in faults:
        array = _ITEM.sub("", violation.pointer)
        same.setdefault((array, violation.code, violation.detail), []).append(violation)
    joined = [_joined(violations, counted=counted) for violations in same.values()]
    return Problem("invalid_request", errors=joined, counted=counted)


_ITEM = re.compile(r"(/\d+)+$")
"""The place of an item in an array, at the end of a pointer."""


def _joined(same: Sequence[Violation], *, counted: bool) -> Violation:
    """Return the first of equal violations, with their number."""
    first, *others = same
    number = f"{len(same):,}" if counted else f"at least {len(same):,}"
    detail = f"{first.detail} This is the first of {number} such places."
    return replace(first, detail=detail) if others else first


def refuse(place: str, code: str, detail: str) -> Problem:
    """Return the problem of a request with a single violation."""
    return invalid([Violation(place, code, detail)])


def raise_violations(errors: Iterable[Violation]) -> None:
    """Refuse a request if it has violations, of which there may be more if there are over 20."""
    if violations := list(errors):
        counted = len(violations) <= MOST_VIOLATIONS
        raise Problem("invalid_request", errors=violations, counted=counted)


def from_errors(details: Sequence[Mapping[str, Any]], names: Sequence[str] = ()) -> Problem:
    """Turn the `errors()` of an exception of Pydantic into a problem, without the input.

    `names` are those of the members of the body, of which an unknown one may be a misspelling.
    """
    if any(error["type"] == "json_invalid" for error in details):
        return Problem("unreadable_body", "The body is not valid JSON.")
    errors = [_violation(error, names) for error in islice(details, MOST_VIOLATIONS)]
    return Problem("invalid_request", _count(len(details)), errors=errors)


def validated(model: type[Model], content: Mapping[str, Any] | bytes) -> Model:
    """Return members or JSON of a request as a model; a problem if they do not fit it.

    Only here is a `ValidationError` the fault of a request: elsewhere, as of a stored document, it
    is a defect.
    """
    try:
        if isinstance(content, bytes):
            return model.model_validate_json(content)
        return model.model_validate(content)
    except ValidationError as exc:
        names = [field.alias or name for name, field in model.model_fields.items()]
        raise from_errors(exc.errors(), names) from None


class ProblemDocument(BaseModel):
    """An error in the form of RFC 9457."""

    model_config = ConfigDict(title="Problem")

    type: str = Field(description="Reference to the explanation of this kind of problem.")
    title: str = Field(description="The kind of problem in a few words.")
    status: int = Field(description="The status of the response.")
    detail: str = Field(
        description="What is wrong this time. It names unknown members; it repeats no value."
    )
    code: str = Field(description="The kind of problem, for programs.")
    request_id: str = Field(description="The X-Request-Id of the response.")
    errors: list[Violation] = Field(
        default=[],
        description="The first 20 violations; absent if there are none.",
        max_length=MOST_VIOLATIONS,
    )


def responses(*codes: str) -> dict[int | str, dict[str, Any]]:
    """Describe kinds of problems for OpenAPI: the argument ``responses`` of a route."""
    descriptions: dict[int | str, dict[str, Any]] = {}
    schema = {"$ref": "#/components/schemas/Problem"}
    kinds = [(code, KINDS[code]) for code in codes]
    for status in sorted({kind.status for _, kind in kinds}):
        same = {code: kind for code, kind in kinds if kind.status == status}
        examples = {}
        for code, kind in same.items():
            errors = [_EXAMPLE] if code == "invalid_request" else []
            detail = kind.example or f"{kind.title}."
            value = Problem(code, detail, errors=errors).document(_EXAMPLE_ID)
            examples[code] = {"summary": kind.meaning, "value": value}
        descriptions[status] = {
            "description": "; ".join(kind.title for kind in same.values()),
            "content": {MEDIA_TYPE: {"schema": schema, "examples": examples}},
        }
    return descriptions


_EXAMPLE = Violation("/confusion_matrix/2/0", "negative", "A count is 0 or more.")
_EXAMPLE_ID = "0b9f6a1c4d2e4f0f8a7c5e3b1d9f7a5c"


def components() -> dict[str, Any]:
    """Return the JSON schemas that `responses` refers to, for the OpenAPI document."""
    schema = ProblemDocument.model_json_schema(ref_template="#/components/schemas/{model}")
    return {**schema.pop("$defs"), "Problem": schema}


def _count(total: int, *, counted: bool = True) -> str:
    listed = f"; the first {MOST_VIOLATIONS} are listed" if total > MOST_VIOLATIONS else ""
    number = f"{total:,}" if counted else f"At least {total:,}"
    return f"{number} error{'s' if total > 1 else ''} in the request{listed}."


def _violation(error: Mapping[str, Any], names: Sequence[str]) -> Violation:
    place, *rest = error["loc"] or ("body",)
    parts = rest if place == "body" else error["loc"]
    kind, text = error["type"], error_sentence(error, member(parts))
    if kind == "unknown_index":
        return UnknownMember(pointer(*parts), kind, text, error["ctx"]["name"])
    if kind == "extra_forbidden" and place != "query":
        name = str(parts[-1])
        if len(parts) == 1 and names:
            text = f"The name is not known here. {nearest_name(name, names)}"
        return UnknownMember(pointer(*parts[:-1]), "unknown_field", text, name)
    return Violation(pointer(*parts), kind, text)


def _clipped(text: str) -> str:
    return text if len(text) <= LONGEST_SEGMENT else text[: LONGEST_SEGMENT - 1] + "…"


def _segment(part: str | int) -> str:
    text = _clipped(str(part))
    # A lone surrogate has no UTF-8 form, so it cannot be sent.
    text = text.encode("utf-8", "replace").decode("utf-8")
    return text.replace("~", "~0").replace("/", "~1")
