"""Read requests into the options and evidence of the core; violations become problems."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel

from rprime import __version__, evidence
from rprime.application.changed_items import ChangedItemsPage
from rprime.application.population import population_of, refuse_unknown_classes
from rprime.core.catalog import CUSTOM
from rprime.core.custom import CustomIndex, ExpressionError, unknown_custom
from rprime.core.evaluate import Evaluation, evaluate, evaluation_of
from rprime.core.gates.rules import Gate, mistakes
from rprime.core.options import LARGEST_PAGE_VALUES, Options, Paging
from rprime.core.selection import select
from rprime.core.warnings import Warning  # noqa: A004 (its name)
from rprime.evidence import Evidence
from rprime.problems.problem import Problem, Violation, pointer, raise_violations, refuse
from rprime.report.document import render
from rprime.report.subject import ReportSubject, baseline_name, read_comparison, read_gate
from rprime.schemas.document import Body, Document, parse
from rprime.schemas.gate import Gates
from rprime.schemas.provenance import WAYS, Provenance, Reference, origin_of
from rprime.schemas.request import BaselineRest, EvaluateOptions, RequestOptions
from rprime.schemas.violations import validated
from rprime.settings import Limits

if TYPE_CHECKING:
    from rprime.application.assessment import Assessment, BaselineSide
    from rprime.application.stored_sides import StoreRequest
    from rprime.core.comparison.alignment import Side
    from rprime.report.formats import Format
    from rprime.store import BaselineQuery

ModelT = TypeVar("ModelT", bound=BaseModel)

MOST_MEMBERS = 100
"""Most members of a request, far above the number of known ones."""
_NO_PROVENANCE = Provenance()


@dataclass(frozen=True, eq=False)
class EvaluationRequest:
    """A valid request; `given` has the names and addresses in it."""

    evidence: Evidence
    options: Options
    assessment: "Assessment | None" = None
    given: Provenance = _NO_PROVENANCE
    store_request: "StoreRequest | None" = None
    """None: nothing is stored."""

    @property
    def resamples_scores(self) -> bool:
        """Whether intervals are drawn from scores, which takes up to some seconds."""
        return self.options.intervals == "all" and self.evidence.scores is not None

    def evaluate(self) -> Evaluation:
        """Evaluate the request alone."""
        read, items, assessment = self.evidence, self.evidence.items, self.assessment
        if assessment is not None and assessment.options is self.options:
            evaluation = evaluation_of(assessment.estimates, read.labels)
        else:
            scores = None if read.scores is None else read.ranked
            evaluation = evaluate(read.table, read.labels, self.options, items, scores=scores)
        if read.slices is None:
            return evaluation
        from rprime.core.slices.evaluation import evaluate_slices  # noqa: PLC0415 (few have slices)

        return replace(evaluation, slices=evaluate_slices(read.slices, read.table, self.options))

    def report(
        self,
        evaluation: Evaluation,
        form: "Format | None" = None,
        *,
        include: Collection[str] = (),
        members: Mapping[str, bytes] | None = None,
    ) -> bytes:
        """Render its evaluation; form None means JSON, to which `members` adds further ones."""
        if form is not None:
            return form.render(self.subject(evaluation))
        assessment = self.assessment
        return render(
            evaluation,
            engine_version=__version__,
            input_digest=self.evidence.input_digest,
            members={**(members or {}), **(assessment.judged if assessment else {})},
            comparison=assessment.compared_members(include) if assessment else None,
            warnings=(assessment or self.evidence).warnings,
            include=include,
            every_result=assessment is not None and assessment.every_result,
        )

    def subject(self, evaluation: Evaluation) -> ReportSubject:
        """Return what a rendering shows of its evaluation, which is not stored."""
        request, assessment = self.given, self.assessment
        warnings = evaluation.warnings + (assessment or self.evidence).warnings
        members = assessment.members if assessment else {}
        comparison = read_comparison(members.get("comparison"))
        side = assessment.baseline_side if assessment else None
        return ReportSubject(
            evaluation=replace(evaluation, warnings=warnings),
            engine_version=__version__,
            comparison=comparison,
            gate=read_gate(members.get("gate")),
            baseline=baseline_name(comparison, side.name if side else None),
            input_digest=self.evidence.input_digest,
            origin=origin_of(request),
            source=request.source,
        )

    @property
    def verdict(self) -> str | None:
        """The verdict of the gate; None without a gate."""
        gate = self.assessment and self.assessment.verdict
        return gate.verdict if gate else None

    @property
    def undecided(self) -> int:
        """The number of results that neither pass nor fail, nor are waived; 0 without a gate."""
        gate = self.assessment and self.assessment.verdict
        return gate.undecided if gate else 0

    @property
    def judged(self) -> bool:
        """Whether the verdict of the gate rests on numbers."""
        gate = self.assessment and self.assessment.verdict
        return bool(gate and gate.judged)


def read_request(content: Body | Document, limits: Limits) -> EvaluationRequest:
    """Read a request from JSON, or from what was parsed from it or put together from columns.

    Raises
    ------
    Problem
        400 if it cannot be read; 422 with the violations of members and evidence together.
    """
    document = content if isinstance(content, Document) else parse(content, limits.json_depth)
    if len(document.rest) > MOST_MEMBERS:
        # Each unknown member costs some microseconds, and only the first ones are reported.
        detail = f"The object has more than {MOST_MEMBERS} members; few of them are known."
        raise refuse("", "unknown_field", detail)
    errors: list[Violation] = []
    request = validated(RequestOptions, document, errors)
    read = baseline = None
    try:
        read = evidence.read(document, limits)
        inner = document.inner.get("baseline")
        if inner is not None and not is_reference(inner):
            baseline = evidence.read_baseline(inner, document, read, limits)
    except Problem as problem:
        errors.extend(problem.errors)
    if errors or request is None or read is None:
        raise Problem("invalid_request", errors=errors)
    if request.indices:
        detail = "The index needs the option `{}`."
        raise_violations(
            Violation(pointer("indices", i), "option_missing", detail.format(option))
            for i, option in request.lacking(read.matrices)
        )
    thresholds, population, page = request.thresholds or {}, request.population, request.classes
    custom = custom_of(request.custom, read.labels) if request.custom else ()
    if request.indices:
        refuse_unknown_custom(request, "/indices")
    over = request.average_over or request.average_except
    if thresholds:
        refuse_unknown_classes(thresholds, read.labels, "/thresholds")
    options = request.into(
        Options,
        top_confusions=request.top_confusions or limits.top_confusions,
        average_over=averaged_classes(request, read.labels) if over else None,
        thresholds=tuple(thresholds.items()),
        population=population and population_of(population, read, request.gates),
        classes=page and page.into(Paging),
        custom=custom,
        **read.matrices,
    )
    if options.classes is not None:
        _refuse_large_page(options.classes, options, read)
    stored = request.population and request.population.stored
    if not (
        request.baseline or request.gates or request.project or stored or request.changed_items
    ):
        return EvaluationRequest(read, options, given=request)
    assessment = _assessment(request, options, read, baseline)
    return EvaluationRequest(read, options, assessment, request, _store_request(request, options))


def averaged_classes(
    request: EvaluateOptions, labels: Sequence[str], place: str = ""
) -> tuple[int, ...] | None:
    """Return the positions of the classes that averages are over; None for all."""
    over, but = request.average_over, request.average_except
    if over is None and but is None:
        return None
    member = "average_over" if but is None else "average_except"
    pointer_of = partial(pointer, *place.split("/")[1:], member)
    if over is not None and but is not None:
        detail = "Send `average_over` or `average_except`, not both."
        raise refuse(pointer_of(), "several_kinds", detail)
    positions = {name: i for i, name in enumerate(labels)}
    named = list(map(str, over or but or ()))
    detail = "`{}` is no class; use the names in `labels`."
    raise_violations(
        Violation(pointer_of(i), "undeclared_label", detail.format(name))
        for i, name in enumerate(named)
        if name not in positions
    )
    chosen = {positions[name] for name in named}
    if but is not None:
        chosen = set(range(len(labels))) - chosen
    if not chosen:
        detail = "No class is left to average over: leave out fewer."
        raise refuse(pointer_of(), "no_class", detail)
    return tuple(sorted(chosen))


def read_members(
    model: type[ModelT], document: Document, read: Callable[[], Evidence]
) -> tuple[ModelT, Evidence]:
    """Validate the members of a document and read its arrays; 422 for violations of both."""
    errors: list[Violation] = []
    members, content = validated(model, document, errors), None
    try:
        content = read()
    except Problem as problem:
        errors.extend(problem.errors)
    if errors or members is None or content is None:
        raise Problem("invalid_request", errors=errors)
    return members, content


def custom_of(
    expressions: Mapping[str, str], labels: Sequence[str], place: str = ""
) -> tuple[CustomIndex, ...]:
    """Bind indices of one's own to classes; 422 for what is no expression of these."""
    custom, violations = [], []
    for name, expression in expressions.items():
        try:
            custom.append(CustomIndex.bound(name, expression, labels))
        except ExpressionError as error:
            violations.append(Violation(f"{place}/custom/{name}", error.code, str(error)))
    raise_violations(violations)
    return tuple(custom)


def refuse_unknown_custom(request: EvaluateOptions, place: str) -> None:
    """Refuse keys of indices of one's own that the request does not declare."""
    names = request.custom or {}
    raise_violations(
        Violation(f"{place}/{i}", "unknown_index", unknown_custom(key, names))
        for i, key in enumerate(request.indices or ())
        if key.startswith(CUSTOM) and key.removeprefix(CUSTOM) not in names
    )


def is_reference(inner: Document) -> bool:
    """Whether a side is named, without evidence; 422 if it also has some."""
    named = any(way in inner.names for way in (*WAYS, "constant"))
    if named and inner.arrays:
        detail = "A side is evidence, a stored evaluation or a constant classifier: send one."
        raise refuse(inner.pointer, "several_kinds", detail)
    return named


def _store_request(request: RequestOptions, options: Options) -> "StoreRequest | None":
    named, anchor = reference_of(request.baseline), anchor_of(request.gates)
    prevalence_of = request.population.stored if request.population else None
    if request.project is None:
        places = {
            "/baseline": named,
            "/gates/anchor": anchor,
            "/population/prevalence/evaluation": prevalence_of,
        }
        detail = "A stored evaluation belongs to a project: name the project in `project`."
        raise_violations(
            Violation(place, "needs_project", detail) for place, query in places.items() if query
        )
        return None
    from rprime.application.stored_sides import StoreRequest, write_options  # noqa: PLC0415 (as below)

    return StoreRequest(
        project=request.project,
        asked=write_options(options, request.gates),
        reference=named,
        anchor=anchor,
        prevalence_of=prevalence_of,
    )


def anchor_of(gates: Gates | None) -> "BaselineQuery | None":
    """Return the stored baseline that a gate names."""
    return None if gates is None else reference_of(gates.anchor)


def reference_of(rest: Reference | None) -> "BaselineQuery | None":
    """Return the stored evaluation that a side names; None of evidence."""
    if rest is None or not rest.ways:
        return None
    from rprime.store import BaselineQuery  # noqa: PLC0415 - only stored evaluations need a database

    return BaselineQuery(*rest.ways[0], rest.model, rest.project)


def _assessment(
    request: RequestOptions, options: Options, read: Evidence, baseline: Evidence | None
) -> "Assessment | None":
    if request.changed_items is not False and request.baseline is None:
        detail = "Items change against a `baseline`: send one."
        raise refuse("/changed_items", "needs_baseline", detail)
    if baseline is None and request.gates is None and request.baseline is None:
        return None
    from rprime.application.assessment import Assessment, side_of  # noqa: PLC0415 (few compare)

    candidate = side_of(read, request.test_set)
    return Assessment(
        candidate=candidate,
        baseline_side=baseline_side_of(baseline, request.baseline, candidate, options),
        options=options,
        gate=None if request.gates is None else gate_of(request.gates, options),
        notes=notes_of(read, baseline),
        every_result=request.gates is not None and request.gates.results == "all",
        changed_items=ChangedItemsPage.of(request.changed_items, read, baseline),
    )


def notes_of(*sides: Evidence | None) -> tuple[Warning, ...]:
    """Return how the evidence of both sides was read, each note once."""
    return tuple(dict.fromkeys(note for side in sides if side for note in side.warnings))


def baseline_side_of(
    read: Evidence | None, rest: BaselineRest | None, candidate: "Side", options: Options
) -> "BaselineSide | None":
    """Return a baseline that needs no store: evidence or a constant classifier; None without."""
    from rprime.application import assessment  # noqa: PLC0415 (few compare)

    if rest is not None and rest.constant is not None:
        return assessment.constant_baseline(rest.constant, candidate, options.population)
    if read is None or rest is None:
        return None
    return assessment.BaselineSide(
        side=assessment.side_of(read, rest.test_set),
        requested={"evidence": read.kind},
        resolved=None,
        why="It came with the request.",
        evidence=read,
    )


def gate_of(gates: Gates, options: Options) -> Gate:
    """Return the gate of a request for the core; 422 if a rule does not fit the catalog."""
    gate = gates.core()
    raise_violations(
        Violation(pointer("gates", *mistake.place), mistake.code, str(mistake))
        for mistake in mistakes(gate, options)
    )
    return gate


def _refuse_large_page(page: Paging, options: Options, read: Evidence) -> None:
    indices = select(options, scored=read.scores is not None).reported
    if min(page.limit, read.table.k) * indices > LARGEST_PAGE_VALUES:
        detail = (
            f"A report has at most {LARGEST_PAGE_VALUES:,} values of classes, and each class has "
            f"{indices}: ask for fewer classes at a time, or for fewer `indices`."
        )
        raise refuse("/classes/limit", "too_many_values", detail)
