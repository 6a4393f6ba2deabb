"""The methods of both clients and the functions in this process, each declared once."""

import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import wraps
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Literal,
    ParamSpec,
    Protocol,
    TypeVar,
    Unpack,
    get_args,
    overload,
)

from pydantic import BaseModel

from rprime.client import calls
from rprime.client.calls import Call, CurrentAlias, Version
from rprime.client.errors import ProblemError
from rprime.client.report import Comparison, GateLintReport, GatePlanReport, Report, SliceSearch
from rprime.client.request import (
    BatchRequest,
    ModelFields,
    OptionFields,
    RequestFields,
    SearchFields,
    SideFields,
    SliceField,
    TrendFilters,
    body,
    document,
    encode,
)
from rprime.schemas.history import (
    AliasList,
    EvaluationPage,
    Leaderboard,
    ProjectList,
    PurgeReport,
    Trend,
)
from rprime.schemas.report import Catalog, IndexEntry

if TYPE_CHECKING:
    from rprime.client.clients import AsyncClient, Client
    from rprime.client.in_process import InProcess

Given = ParamSpec("Given")
Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)


class Method(Protocol[Given, Result_co]):
    """A method that returns its result, or a coroutine in `AsyncClient`."""

    @overload
    def __get__(
        self, instance: "Client | InProcess", owner: type
    ) -> Callable[Given, Result_co]: ...
    @overload
    def __get__(
        self, instance: "AsyncClient", owner: type
    ) -> Callable[Given, Coroutine[Any, Any, Result_co]]: ...


def method(make: Callable[Concatenate[Any, Given], Call[Result]]) -> Method[Given, Result]:
    """Declare a method by the call that it makes."""

    @wraps(make)
    def asked(self: "Client", *arguments: Given.args, **named: Given.kwargs) -> Result:
        return self.ask(make(self, *arguments, **named))

    signature = inspect.signature(make)
    (result,) = get_args(signature.return_annotation)
    # What help() shows.
    asked.__signature__ = signature.replace(return_annotation=result)  # type: ignore[attr-defined] # inspect reads it
    return asked  # type: ignore[return-value] # a plain function, so that help() lists a method


class Methods:
    """What can be asked of a service, and in part in this process."""

    @method
    def evaluate(
        self,
        y_true: object = None,
        y_pred: object = None,
        *,
        table: bool = False,
        idempotency_key: str | None = None,
        **request: Unpack[RequestFields],
    ) -> Call[Report]:
        """Evaluate a classifier.

        Parameters
        ----------
        y_true, y_pred
            The true and the predicted label of every item, one kind of evidence: lists, arrays of
            numpy, series of pandas or polars, arrays of Arrow; missing in `y_pred` is unclassified.
        table
            Whether the report includes the table.
        idempotency_key
            Names this evaluation, so that a service does not store it again in another run.
        **request
            Other evidence, and options, as `rprime.client.request.RequestFields` lists them.

        Raises
        ------
        ProblemError
            If the request is wrong.

        Examples
        --------
        >>> rprime.evaluate(["cat", "dog"], ["cat", "cat"]).overall["accuracy"].value
        0.5
        """
        content = body(y_true=y_true, y_pred=y_pred, **request)
        return calls.evaluation(content, table=table, idempotency_key=idempotency_key)

    @method
    def evaluate_batch(
        self,
        requests: Sequence[BatchRequest],
        *,
        table: bool = False,
        idempotency_key: str | None = None,
    ) -> Call[list[Report | ProblemError]]:
        """Evaluate many classifiers in one call, up to the limit that the service has.

        Parameters
        ----------
        requests
            The arguments of `evaluate` for each, as mappings.

        Returns
        -------
        A report or, not raised, a problem for each.
        """
        content = encode({"requests": [document(request) for request in requests]})
        path = calls.path_of("evaluate", "batch", query={"include": "table" if table else None})
        return calls.post(path, content, calls.batch_results, idempotency_key)

    @method
    def compare(
        self,
        candidate: SideFields,
        baseline: SideFields,
        *,
        options: OptionFields | None = None,
        gates: Mapping[str, Any] | BaseModel | None = None,
        changed_items: bool | Mapping[str, int] | None = None,
        **of: Unpack[SliceField],
    ) -> Call[Comparison]:
        """Compare a candidate with a baseline.

        Parameters
        ----------
        candidate, baseline
            Evidence, or of a service a stored evaluation; the baseline may be other predictions for
            the same items, `{"y_pred": ...}`.
        changed_items
            Whether the items whose prediction changed are named, or the page of them, as
            `{"limit": 100, "offset": 100}`; both sides need `item_id`.
        **of
            `slice`, the value of each column of a slice that both sides have.
        """
        sides: Any = {"candidate": candidate, "baseline": baseline}
        content = body(**sides, options=options, gates=gates, changed_items=changed_items, **of)
        return calls.comparison(content)

    @method
    def lint(
        self,
        gates: Mapping[str, Any] | BaseModel,
        *,
        pairing: Literal["paired", "unpaired"] | None = None,
        discordance: float | None = None,
        replicates: int | None = None,
        seed: int | None = None,
        **model: Unpack[ModelFields],
    ) -> Call[GateLintReport]:
        """Compute how often gates would fail an unchanged model, and which drops they detect.

        Parameters
        ----------
        gates
            The gates of a request, as a mapping.
        pairing, discordance
            How candidates will be compared, and how often just one of two models is right.
        replicates, seed
            The number of simulated comparisons, and the seed.
        **model
            Evidence about the unchanged model, such as `confusion_matrix`.
        """
        simulation = {"discordance": discordance, "replicates": replicates, "seed": seed}
        content = body(gates=gates, pairing=pairing, **simulation, **model)
        return calls.post("/v1/gates/lint", content, GateLintReport.of)

    @method
    def plan(
        self,
        gates: Mapping[str, Any] | BaseModel,
        *,
        pairing: Literal["paired", "unpaired"] | None = None,
        discordance: float | None = None,
        drop: float | None = None,
        seed: int | None = None,
        **model: Unpack[ModelFields],
    ) -> Call[GatePlanReport]:
        """Compute how many items gates need to pass an unchanged model and to find a drop.

        Parameters
        ----------
        gates, pairing, discordance, seed, **model
            As in `lint`.
        drop
            The drop to find; default: twice the limit of each rule.
        """
        simulation = {"discordance": discordance, "drop": drop, "seed": seed}
        content = body(gates=gates, pairing=pairing, **simulation, **model)
        return calls.post("/v1/gates/plan", content, GatePlanReport.of)

    @method
    def weak_slices(
        self,
        y_true: object,
        y_pred: object = None,
        *,
        slices: Mapping[str, Any],
        index: str = "accuracy",
        class_: str | None = None,
        **more: Unpack[SearchFields],
    ) -> Call[SliceSearch]:
        """Search for slices in which a model is weak: one half of the items finds, one tests.

        Parameters
        ----------
        slices
            By name, a column with a value for each item; numbers are cut.
        index, class_
            A mean over items, or `recall` or `precision` of a class.
        **more
            Scores and options, as `rprime.client.request.SearchFields` lists them.
        """
        members = {"y_true": y_true, "y_pred": y_pred, "index": index, "class": class_}
        return calls.slice_search(body(slices=slices, **members, **more))

    @method
    def evaluations(
        self,
        project: str,
        *,
        index: str | Sequence[str] | None = None,
        limit: int = 50,
        cursor: str | None = None,
        **filters: Unpack[TrendFilters],
    ) -> Call[EvaluationPage]:
        """List the stored evaluations of a project, newest first, each with its values.

        Parameters
        ----------
        index
            Keys of the overall indices in `values`; default: a summary.
        limit, cursor
            The length of a page, and `next_cursor` of the previous one.
        **filters
            What an evaluation must match, such as `model`, `commit` or `branch`; with `slice` the
            values are those of the slice.
        """
        query = {**filters, "index": index, "limit": limit, "cursor": cursor}
        return calls.document(EvaluationPage, "projects", project, "evaluations", query=query)

    @method
    def evaluation(
        self,
        evaluation: str,
        *,
        table: bool = False,
        index: str | Sequence[str] | None = None,
        family: str | Sequence[str] | None = None,
        **of: Unpack[SliceField],
    ) -> Call[Report]:
        """Return the report on a stored evaluation, by its id, or on its `slice`, as in `trend`.

        Parameters
        ----------
        table
            Whether the report includes the table.
        index, family
            Keys of indices, and families, that the report has alone; default: those that the
            evaluation was asked for.
        """
        query = {"include": "table" if table else None, "index": index, "family": family, **of}
        return Call("GET", calls.path_of("evaluations", evaluation, query=query), Report.of)

    @method
    def trend(
        self,
        project: str,
        index: str = "r_prime",
        *,
        class_: str | None = None,
        limit: int = 1000,
        **filters: Unpack[TrendFilters],
    ) -> Call[Trend]:
        """Return one index over the evaluations of a project, oldest first.

        Parameters
        ----------
        index, class_
            The key of an overall index, or of a per-class one and the class.
        limit
            Most evaluations, from the newest.
        **filters
            As in `evaluations`; and `slice`, the value of each column of a slice.
        """
        query = {**filters, "index": index, "class": class_, "limit": limit}
        return calls.document(Trend, "projects", project, "trend", query=query)

    @method
    def leaderboard(
        self,
        project: str,
        index: str = "r_prime",
        *,
        class_: str | None = None,
        test_set: str | None = None,
        model: str | None = None,
        branch: str | None = None,
        limit: int = 20,
        **of: Unpack[SliceField],
    ) -> Call[Leaderboard]:
        """Rank the versions of a project in tiers that a test tells apart.

        Parameters
        ----------
        index, class_, **of
            As in `trend`.
        test_set
            Its id or fingerprint; default: that of the newest evaluation.
        model, branch
            Only versions of them.
        limit
            Most versions, from the best.
        """
        narrowed = {"test_set": test_set, "model": model, "branch": branch}
        query = {**narrowed, **of, "index": index, "class": class_, "limit": limit}
        return calls.document(Leaderboard, "projects", project, "leaderboard", query=query)

    @method
    def alias(self, project: str, alias: str) -> Call[CurrentAlias]:
        """Return the evaluation that an alias points at; `not_found` without such an alias."""
        path = calls.path_of("projects", project, "aliases", alias)
        return Call("GET", path, calls.current_alias)

    @method
    def aliases(self, project: str) -> Call[AliasList]:
        """List the aliases of a project, sorted by name."""
        return calls.document(AliasList, "projects", project, "aliases")

    @method
    def projects(self) -> Call[ProjectList]:
        """List the projects that the key may read, sorted by name."""
        return calls.document(ProjectList, "projects")

    @method
    def promote(
        self, project: str, alias: str, evaluation: str, *, replaces: CurrentAlias | None = None
    ) -> Call[CurrentAlias]:
        """Point an alias at an evaluation, unless somebody else has moved it.

        Parameters
        ----------
        alias, evaluation
            The name, such as `champion`, and the id that it is to point at.
        replaces
            The alias as `alias` or `promote` returned it; default: it must be new.

        Raises
        ------
        ProblemError
            With `precondition_failed` if the alias is not what it is expected to be.
        """
        guard = {"If-None-Match": "*"} if replaces is None else {"If-Match": replaces.etag}
        path = calls.path_of("projects", project, "aliases", alias)
        content, headers = body(evaluation=evaluation), {"Content-Type": calls.JSON, **guard}
        return Call("PUT", path, calls.current_alias, content, headers)

    @method
    def purge(
        self,
        project: str,
        *,
        keep_last: int | None = None,
        newer_than_days: float | None = None,
        dry_run: bool = False,
    ) -> Call[PurgeReport]:
        """Delete the evaluations of a project that nothing protects; an alias always does.

        Parameters
        ----------
        keep_last
            How many of each model to keep, from the newest.
        newer_than_days
            Keep those that are younger.
        dry_run
            Only count.
        """
        kept = body(keep_last=keep_last, newer_than_days=newer_than_days, dry_run=dry_run)
        path = calls.path_of("projects", project, "purge")
        return calls.post(path, kept, calls.validated(PurgeReport))

    @method
    def indices(self) -> Call[Catalog]:
        """List every index that a report can have."""
        return calls.document(Catalog, "indices")

    @method
    def index(self, scope: Literal["overall", "class"], key: str) -> Call[IndexEntry]:
        """Describe one index."""
        return calls.document(IndexEntry, "indices", scope, key)

    @method
    def version(self) -> Call[Version]:
        """Return the version and the limits of the service."""
        return Call("GET", "/version", calls.validated(Version))
