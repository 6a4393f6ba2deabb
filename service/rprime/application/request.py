"""Read requests into the options and evidence of the core; violations become problems."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from rprime import __version__, evidence
from rprime.application.assessment import Assessment, BaselineSide, side_of
from rprime.application.stored_options import StoreRequest, write_options
from rprime.core.evaluate import Evaluation, evaluate
from rprime.core.gates.rules import Gate, mistakes
from rprime.core.options import Options
from rprime.core.page import LARGEST_PAGE_VALUES, Paging
from rprime.core.selection import select
from rprime.evidence import (
    Document,
    Evidence,
    EvidenceFault,
    InvalidEvidenceError,
    UnreadableBodyError,
)
from rprime.problems.problem import MOST_VIOLATIONS, Problem, UnknownMember, Violation, pointer
from rprime.report.document import render
from rprime.schemas import fields_at, request_fields
from rprime.schemas.gate import Gates
from rprime.schemas.members import hint
from rprime.schemas.provenance import WAYS, Provenance, Reference
from rprime.schemas.request import BaselineRest, RequestOptions
from rprime.settings import Limits

if TYPE_CHECKING:
    from rprime.store import BaselineQuery

MOST_MEMBERS = 100
"""Most members of a request, far above the number of known ones."""
_NO_PROVENANCE = Provenance()


@dataclass(frozen=True, eq=False)
class EvaluationRequest:
    """A valid request.

    Parameters
    ----------
    given
        The names and addresses in the request.
    store_request
        What to store beside the evidence; None if nothing is stored.
    """

    evidence: Evidence
    options: Options
    assessment: Assessment | None = None
    given: Provenance = _NO_PROVENANCE
    store_request: StoreRequest | None = None

    def evaluate(self) -> Evaluation:
        """Evaluate the request alone."""
        found, items = self.evidence, self.evidence.items
        if self.store_request is not None and items is not None and items.weights is not None:
            # The store has only the weighted table: an answer shows what it can compute again.
            items = replace(items, weights=None)
        scores = None if found.scores is None else found.ranked
        return evaluate(found.table, found.labels, self.options, items, scores=scores)

    def report(
        self,
        evaluation: Evaluation,
        *,
        with_table: bool = False,
        members: Mapping[str, bytes] | None = None,
    ) -> bytes:
        """Render its evaluation as JSON; `members` adds further ones, as JSON."""
        assessment = self.assessment
        return render(
            evaluation,
            engine_version=__version__,
            input_digest=self.evidence.input_digest,
            members={**(members or {}), **(assessment.members if assessment else {})},
            warnings=assessment.warnings if assessment else (),
            with_table=with_table,
        )

    @property
    def verdict(self) -> str | None:
        """The verdict of the gate; None without a gate."""
        found = self.assessment and self.assessment.verdict
        return found.verdict if found else None

    @property
    def judged(self) -> bool:
        """Whether the verdict of the gate rests on numbers."""
        found = self.assessment and self.assessment.verdict
        return bool(found and found.judged)


def read_request(body: bytes, limits: Limits, *, keeping: bool = False) -> EvaluationRequest:
    """Read a request.

    Parameters
    ----------
    body
        JSON, UTF-8.
    limits
        The limits of a request.
    keeping
        Whether the caller can store evaluations.

    Raises
    ------
    Problem
        400 if it cannot be read, 422 if it cannot be evaluated, 409 if it names a project and the
        caller cannot store it.
    """
    evaluation_request = validate_request(parse_request(body, limits), limits)
    if evaluation_request.store_request is not None and not keeping:
        raise Problem("no_store")
    return evaluation_request


def parse_request(body: bytes, limits: Limits) -> Document:
    """Parse a JSON request.

    Raises
    ------
    Problem
        400 or 422.
    """
    with EvidenceErrorsAsProblems():
        return evidence.parse(body, limits.json_depth)


def parse_batch(body: bytes, limits: Limits) -> list[Document]:
    """Parse the requests of a batch.

    Raises
    ------
    Problem
        If the batch as a whole is invalid.
    """
    with EvidenceErrorsAsProblems():
        outer, requests = evidence.parse_batch(body, limits.batch_requests, limits.json_depth)
    if len(outer.names) > 1:
        detail = "A batch has only `requests`; put options into each of them."
        raise Problem("invalid_request", errors=[Violation("", "unknown_field", detail)])
    return requests


def validate_request(document: Document, limits: Limits) -> EvaluationRequest:
    """Validate a parsed request.

    Raises
    ------
    Problem
        422 with the violations of options and evidence together.
    """
    if len(document.rest) > MOST_MEMBERS:
        # Each unknown member costs some microseconds, and only the first ones are reported.
        detail = f"The object has more than {MOST_MEMBERS} members; few of them are known."
        raise Problem("invalid_request", errors=[Violation("", "unknown_field", detail)])
    bounds = class_limits(limits)
    faults = ViolationCollector(document)
    wanted = faults.validated(RequestOptions)
    read = faults.read(lambda: evidence.read(document, bounds))
    baseline = None
    if read is not None and "baseline" in document.inner:
        inner = document.inner["baseline"]
        if not is_reference(inner, faults):
            baseline = faults.read(lambda: evidence.read_baseline(inner, document, read, bounds))
    faults.refuse()
    assert wanted is not None  # noqa: S101 (refused otherwise)
    assert read is not None  # noqa: S101 (refused otherwise)
    if wanted.indices:
        _refuse_missing_options(wanted, read.matrices)
    if wanted.thresholds:
        _refuse_unknown_classes(wanted.thresholds, read)
    options = wanted.options(read.matrices, limits.top_confusions)
    if options.classes is not None:
        _refuse_large_page(options.classes, options, read)
    if not (wanted.baseline or wanted.gates or wanted.project):
        return EvaluationRequest(read, options, given=wanted)
    assessment = _assessment(wanted, options, read, baseline)
    return EvaluationRequest(read, options, assessment, wanted, _store_request(wanted, options))


def is_reference(inner: Document, faults: "ViolationCollector") -> bool:
    """Whether a baseline names a stored evaluation; a violation if it also has evidence."""
    named = any(way in inner.names for way in WAYS)
    if named and inner.arrays:
        detail = "A baseline is evidence or names a stored evaluation, not both."
        faults.violations.append(Violation(inner.pointer, "several_kinds", detail))
    return named


def _store_request(wanted: RequestOptions, options: Options) -> StoreRequest | None:
    named, anchor = reference_of(wanted.baseline), anchor_of(wanted.gates)
    if wanted.project is None:
        places = {"/baseline": named, "/gates/anchor": anchor}
        detail = "A stored baseline belongs to a project: name the project in `project`."
        errors = [
            Violation(place, "needs_project", detail) for place, query in places.items() if query
        ]
        if errors:
            raise Problem("invalid_request", errors=errors)
        return None
    return StoreRequest(
        project=wanted.project,
        given=wanted,
        asked=write_options(options, wanted.gates),
        reference=named,
        anchor=anchor,
    )


def anchor_of(gates: Gates | None) -> "BaselineQuery | None":
    """Return the stored baseline that a gate names."""
    return None if gates is None else reference_of(gates.anchor)


def reference_of(rest: Reference | None) -> "BaselineQuery | None":
    """Return the stored baseline that a request names."""
    if rest is None or not rest.ways:
        return None
    from rprime.store import BaselineQuery  # noqa: PLC0415 - only stored evaluations need a database

    return BaselineQuery(*rest.ways[0], rest.model)


def _assessment(
    wanted: RequestOptions, options: Options, read: Evidence, baseline: Evidence | None
) -> Assessment | None:
    if baseline is None and wanted.gates is None and wanted.baseline is None:
        return None
    return Assessment(
        candidate=side_of(read, wanted.test_set),
        baseline_side=None
        if baseline is None or wanted.baseline is None
        else baseline_from_evidence(baseline, wanted.baseline),
        options=options,
        gate=gate_of(wanted.gates, options),
    )


def baseline_from_evidence(read: Evidence, rest: BaselineRest) -> BaselineSide:
    """Return a baseline whose evidence is in the request."""
    return BaselineSide(
        side=side_of(read, rest.test_set),
        requested={"evidence": read.kind},
        resolved=None,
        why="It came with the request.",
        identity=read.input_digest,
    )


def gate_of(
    gates: Gates | None, options: Options, place: tuple[str, ...] = ("gates",)
) -> Gate | None:
    """Return the gate of a request for the core.

    Raises
    ------
    Problem
        422 if a rule does not fit the catalog.
    """
    if gates is None:
        return None
    gate = gates.core()
    errors = [
        Violation(pointer(*place, *mistake.place), mistake.code, str(mistake))
        for mistake in mistakes(gate, options)
    ]
    if errors:
        raise Problem("invalid_request", errors=errors)
    return gate


def class_limits(limits: Limits) -> evidence.ClassLimits:
    """Return how many classes evidence may have."""
    return evidence.ClassLimits(dense=limits.dense_classes, sparse=limits.sparse_classes)


ModelT = TypeVar("ModelT", bound=BaseModel)
ReadT = TypeVar("ReadT")


@dataclass(eq=False)
class ViolationCollector:
    """Collects all violations of a document, to report them together.

    Parameters
    ----------
    document
        The parsed request.
    """

    document: Document
    violations: list[Violation] = field(default_factory=list)

    def validated(self, model: type[ModelT]) -> ModelT | None:
        """Validate everything but the arrays; None if it is invalid."""
        try:
            return model.model_validate(self.document.rest)
        except ValidationError as error:
            self.violations.extend(_violations(error, model, self.document))
            return None

    def read(self, reading: Callable[[], ReadT]) -> ReadT | None:
        """Read the arrays; None if they are invalid."""
        try:
            return reading()
        except InvalidEvidenceError as error:
            self.violations.extend(map(_violation, error.faults))
            return None

    def refuse(self) -> None:
        """Refuse the document if it has violations.

        Raises
        ------
        Problem
            422.
        """
        if self.violations:
            raise Problem("invalid_request", errors=self.violations)


class EvidenceErrorsAsProblems(AbstractContextManager[object]):
    """Turns the exceptions of `rprime.evidence` into problems."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, UnreadableBodyError):
            raise Problem("unreadable_body", str(error)) from None
        if isinstance(error, InvalidEvidenceError):
            errors = [_violation(fault) for fault in error.faults]
            raise Problem("invalid_request", errors=errors) from None


def _violation(fault: EvidenceFault) -> Violation:
    found = (fault.pointer, fault.code, fault.detail)
    return Violation(*found) if fault.name is None else UnknownMember(*found, fault.name)


def _refuse_missing_options(wanted: RequestOptions, matrices: Mapping[str, Any]) -> None:
    errors = [
        Violation(
            pointer("indices", i), "option_missing", f"The index needs the option `{option}`."
        )
        for i, option in wanted.lacking(matrices)
    ]
    if errors:
        raise Problem("invalid_request", errors=errors)


def _refuse_large_page(page: Paging, options: Options, read: Evidence) -> None:
    indices = select(options, scored=read.scores is not None).reported
    if min(page.limit, read.table.k) * indices > LARGEST_PAGE_VALUES:
        detail = (
            f"A report has at most {LARGEST_PAGE_VALUES:,} values of classes, and each class has "
            f"{indices}: ask for fewer classes at a time, or for fewer `indices`."
        )
        errors = [Violation("/classes/limit", "too_many_values", detail)]
        raise Problem("invalid_request", errors=errors)


def _refuse_unknown_classes(thresholds: Mapping[str, float], read: Evidence) -> None:
    unknown = sum(name not in read.labels for name in thresholds)
    if unknown:
        detail = f"{unknown} of the names are not classes; use the names in `labels`."
        raise Problem(
            "invalid_request", errors=[Violation("/thresholds", "undeclared_label", detail)]
        )


def _violations(
    error: ValidationError, model: type[BaseModel], document: Document
) -> Iterator[Violation]:
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    for found in errors[:MOST_VIOLATIONS]:
        place = _without_union_tags(found["loc"], document)
        if found["type"] == "extra_forbidden":
            yield _unknown(place, model, document)
        else:
            yield Violation(_place(place), found["type"], _sentence(found["msg"]))


def _sentence(text: str) -> str:
    return text if text.endswith(("?", ".")) else f"{text}."


def _place(location: tuple[int | str, ...]) -> str:
    """Return the pointer of a place, up to the first name that is not a field of a request."""
    known = request_fields()
    parts: list[int | str] = []
    for part in location:
        if isinstance(part, str) and part not in known:
            break
        parts.append(part)
    return pointer(*parts)


def _unknown(
    location: tuple[int | str, ...], model: type[BaseModel], document: Document
) -> Violation:
    """Say which member of an object is unknown, and what it may be."""
    *outer, name = location
    names = list(document.names) if not outer else list(_within(document.rest, outer))
    number = names.index(str(name)) + 1
    detail = f"Member {number} of the object has a name that is not known here."
    known = fields_at(model, tuple(outer))
    place = _place(tuple(outer))
    return UnknownMember(place, "unknown_field", f"{detail} {hint(str(name), known)}", str(name))


def _without_union_tags(
    location: tuple[int | str, ...], document: Document
) -> tuple[int | str, ...]:
    """Drop the names of union members from a location, since they are not in the document."""
    content: Any = document.rest
    parts = []
    for i, part in enumerate(location):
        if not isinstance(content, dict):
            is_place = isinstance(part, int)
        else:
            # Only the last part can name a missing member.
            is_place = part in content or i == len(location) - 1
        if is_place:
            parts.append(part)
            content = _member(content, part)
    return tuple(parts)


def _within(content: Any, location: list[int | str]) -> Any:  # noqa: ANN401 (any JSON value)
    for part in location:
        content = _member(content, part)
    return content


def _member(content: Any, part: int | str) -> Any:  # noqa: ANN401 (any JSON value)
    if isinstance(content, dict):
        return content.get(part)
    return content[part] if isinstance(content, list) and isinstance(part, int) else None
