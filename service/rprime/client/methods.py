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
    HistoryFilters,
    ModelFields,
    OptionFields,
    RequestFields,
    SearchFields,
    SideFields,
    SliceField,
    body,
    document,
    encode,
)
from rprime.report.charts.sheet import MEDIA_TYPES, Form
from rprime.report.formats import BY_SUFFIX
from rprime.schemas.history import (
    AliasHistory,
    AliasList,
    BadgeEndpoint,
    EvaluationPage,
    Leaderboard,
    ProjectList,
    PurgeReport,
    Trend,
)
from rprime.schemas.report import Catalog, IndexEntry
from rprime.schemas.studies import AgreementReport, DiscriminationReport

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
    positions = [
        name
        for name, parameter in inspect.signature(make).parameters.items()
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ][1:]

    @wraps(make)
    def asked(self: "Client", *arguments: Given.args, **named: Given.kwargs) -> Result:
        if len(arguments) > len(positions):
            raise TypeError(
                f"{make.__name__}() takes {', '.join(positions) or 'nothing'} by position: give "
                "the others by name, as baseline={...}"
            )
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
            Whether the report has the table and, compared, the cells that changed most.
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
        content = document({"y_true": y_true, "y_pred": y_pred, **request})
        return calls.evaluation(
            content, include=calls.included(table), idempotency_key=idempotency_key
        )

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
        path = calls.path_of(
            "evaluate", "batch", query={"include": ",".join(calls.included(table)) or None}
        )
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
        prevalence: Literal["uniform"] | None = None,
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
        prevalence
            `uniform`: at equal shares of the classes that have items.
        **of
            `slice`, the value of each column of a slice that both sides have.
        """
        sides: Any = {"candidate": candidate, "baseline": baseline}
        members = {"options": options, "gates": gates, "changed_items": changed_items}
        content = document({**sides, **members, "prevalence": prevalence, **of})
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
        population: Mapping[str, Any] | None = None,
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
        population
            What the rules are about, by its `prevalence`.
        **model
            Evidence about the unchanged model, such as `confusion_matrix`.
        """
        simulation = {"discordance": discordance, "replicates": replicates, "seed": seed}
        about = {"gates": gates, "pairing": pairing, "population": population}
        content = document({**about, **simulation, **model})
        return calls.post("/v1/gates/lint", content, GateLintReport.of)

    @method
    def plan(
        self,
        gates: Mapping[str, Any] | BaseModel,
        *,
        pairing: Literal["paired", "unpaired"] | None = None,
        discordance: float | None = None,
        drop: float | None = None,
        width: float | None = None,
        seed: int | None = None,
        population: Mapping[str, Any] | None = None,
        **model: Unpack[ModelFields],
    ) -> Call[GatePlanReport]:
        """Compute how many items gates need to pass an unchanged model and to find a drop.

        Parameters
        ----------
        gates, pairing, discordance, seed, population, **model
            As in `lint`.
        drop
            The drop to find; default: twice the limit of each rule.
        width
            The largest distance of the limits of each result.
        """
        simulation = {"discordance": discordance, "drop": drop, "width": width, "seed": seed}
        about = {"gates": gates, "pairing": pairing, "population": population}
        content = document({**about, **simulation, **model})
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
        return calls.slice_search(document({"slices": slices, **members, **more}))

    @method
    def evaluations(
        self,
        project: str,
        *,
        index: str | Sequence[str] | None = None,
        limit: int = 50,
        cursor: str | None = None,
        **filters: Unpack[HistoryFilters],
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
            Whether the report has the table and, compared, the cells that changed most.
        index, family
            Keys of indices, and families, that the report has; default: those that the
            evaluation was asked for.
        """
        query = {"include": "table" if table else None, "index": index, "family": family, **of}
        return Call("GET", calls.path_of("evaluations", evaluation, query=query), Report.of)

    @method
    def verdict(self, evaluation: str) -> Call[str]:
        """Return the verdict of a stored evaluation, one word; `not_found` without a gate."""
        path = calls.path_of("evaluations", evaluation, "verdict")
        return Call("GET", path, calls.text, headers={"Accept": "text/plain"})

    @method
    def rendering(
        self,
        evaluation: str,
        suffix: Literal["md", "html", "csv", "junit.xml", "openmetrics.txt"] = "md",
        *,
        index: str | Sequence[str] | None = None,
        family: str | Sequence[str] | None = None,
        **of: Unpack[SliceField],
    ) -> Call[str]:
        """Return a rendering of a stored evaluation as text.

        Parameters
        ----------
        suffix
            The format, as a file name ends.
        index, family, **of
            As in `evaluation`.
        """
        query = {"index": index, "family": family, **of}
        path = calls.path_of("evaluations", evaluation, f"report.{suffix}", query=query)
        media_type = BY_SUFFIX[suffix].media_type.partition(";")[0]
        return Call("GET", path, calls.text, headers={"Accept": media_type})

    @method
    def figure(
        self,
        evaluation: str,
        name: str = "confusion",
        *,
        form: Form = "svg",
        index: str | Sequence[str] | None = None,
        width: int | None = None,
        scale: float | None = None,
        **of: Unpack[SliceField],
    ) -> Call[bytes]:
        """Return a figure of a stored evaluation: the bytes of a file.

        Parameters
        ----------
        name
            `confusion`, `radar`, `per_class`, or of an evaluation with `curves` one of scores.
        index
            Keys of the per-class indices of `radar` and `per_class`.
        width, scale
            In pixels of CSS, and pixels of a PNG for each of these.
        """
        query = {"index": index, "width": width, "scale": scale, **of}
        path = calls.path_of("evaluations", evaluation, "figures", f"{name}.{form}", query=query)
        return Call("GET", path, calls.raw, headers={"Accept": MEDIA_TYPES[form]})

    @method
    def delete_evaluation(self, evaluation: str) -> Call[None]:
        """Delete a stored evaluation; `evaluation_aliased` while an alias points at it."""
        return Call("DELETE", calls.path_of("evaluations", evaluation), calls.nothing)

    @method
    def trend(
        self,
        project: str,
        index: str = "r_prime",
        *,
        class_: str | None = None,
        prevalence: Literal["uniform"] | None = None,
        limit: int = 1000,
        **filters: Unpack[HistoryFilters],
    ) -> Call[Trend]:
        """Return one index over the evaluations of a project, oldest first.

        Parameters
        ----------
        index, class_
            The key of an overall index, or of a per-class one and the class.
        prevalence
            `uniform`: at equal shares of the classes that have items.
        limit
            Most evaluations, from the newest.
        **filters
            As in `evaluations`; and `slice`, the value of each column of a slice.
        """
        about = {"index": index, "class": class_, "prevalence": prevalence}
        query = {**filters, **about, "limit": limit}
        return calls.document(Trend, "projects", project, "trend", query=query)

    @method
    def leaderboard(
        self,
        project: str,
        index: str = "r_prime",
        *,
        class_: str | None = None,
        prevalence: Literal["uniform"] | None = None,
        test_set: str | None = None,
        model: str | None = None,
        branch: str | None = None,
        limit: int = 20,
        **of: Unpack[SliceField],
    ) -> Call[Leaderboard]:
        """Rank the versions of a project in tiers that a test tells apart.

        Parameters
        ----------
        index, class_, prevalence, **of
            As in `trend`.
        test_set
            Its id or fingerprint; default: that of the newest evaluation.
        model, branch
            Only versions of them.
        limit
            Most versions, from the best.
        """
        narrowed = {"test_set": test_set, "model": model, "branch": branch}
        about = {"index": index, "class": class_, "prevalence": prevalence}
        query = {**narrowed, **of, **about, "limit": limit}
        return calls.document(Leaderboard, "projects", project, "leaderboard", query=query)

    @method
    def alias(self, project: str, alias: str) -> Call[CurrentAlias]:
        """Return the evaluation that an alias points at; `not_found` without such an alias."""
        path = calls.path_of("projects", project, "aliases", alias)
        return Call("GET", path, calls.current_alias)

    @method
    def aliases(
        self, project: str, *, limit: int = 1000, cursor: str | None = None
    ) -> Call[AliasList]:
        """List the aliases of a project, sorted by name, in pages as `evaluations`."""
        query = {"limit": limit, "cursor": cursor}
        return calls.document(AliasList, "projects", project, "aliases", query=query)

    @method
    def alias_history(self, project: str, alias: str) -> Call[AliasHistory]:
        """Return what an alias pointed at, newest first."""
        return calls.document(AliasHistory, "projects", project, "aliases", alias, "history")

    @method
    def delete_alias(self, project: str, alias: str, *, current: CurrentAlias) -> Call[None]:
        """Delete an alias, unless somebody else has moved it from what `alias` returned."""
        path = calls.path_of("projects", project, "aliases", alias)
        return Call("DELETE", path, calls.nothing, headers={"If-Match": current.etag})

    @method
    def projects(self, *, limit: int = 1000, cursor: str | None = None) -> Call[ProjectList]:
        """List the projects that the key may read, sorted by name, in pages as `evaluations`."""
        return calls.document(ProjectList, "projects", query={"limit": limit, "cursor": cursor})

    @method
    def set_project(
        self, project: str, *, badge_public: bool | None = None, keeps_slices: bool | None = None
    ) -> Call[None]:
        """Set a project up; what is left out gets its default.

        Parameters
        ----------
        badge_public
            Whether the badge is visible without a key; default: false.
        keeps_slices
            Whether the slices of new evaluations are stored; default: true.
        """
        content = body(badge_public=badge_public, keeps_slices=keeps_slices)
        path, headers = calls.path_of("projects", project), {"Content-Type": calls.JSON}
        return Call("PUT", path, calls.nothing, content, headers)

    @method
    def delete_project(self, project: str) -> Call[None]:
        """Delete a project with all of its evaluations and aliases."""
        return Call("DELETE", calls.path_of("projects", project), calls.nothing)

    @method
    def project_figure(
        self,
        project: str,
        name: Literal["trend", "lines", "boxes"] = "trend",
        *,
        form: Form = "svg",
        index: str | Sequence[str] | None = None,
        class_: str | None = None,
        by: Literal["class", "evaluation"] | None = None,
        limit: int | None = None,
        width: int | None = None,
        scale: float | None = None,
        **filters: Unpack[HistoryFilters],
    ) -> Call[bytes]:
        """Return a figure of the history of a project: the bytes of a file.

        Parameters
        ----------
        index, class_, limit, **filters
            As in `trend`, with several indices.
        by
            Whether `lines` and `boxes` are drawn for each class or for each evaluation.
        width, scale
            As in `figure`.
        """
        query = {"index": index, "class": class_, "by": by, "limit": limit, **filters}
        query |= {"width": width, "scale": scale}
        path = calls.path_of("projects", project, "figures", f"{name}.{form}", query=query)
        return Call("GET", path, calls.raw, headers={"Accept": MEDIA_TYPES[form]})

    @method
    def badge(
        self,
        project: str,
        *,
        index: str | None = None,
        class_: str | None = None,
        model: str | None = None,
        branch: str | None = None,
        **of: Unpack[SliceField],
    ) -> Call[BadgeEndpoint]:
        """Return what the badge of a project says: the newest verdict, or the value of an index."""
        query = {"index": index, "class": class_, "model": model, "branch": branch, **of}
        return calls.document(BadgeEndpoint, "projects", project, "badge.json", query=query)

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
    def discrimination(
        self,
        indices: Sequence[str | Mapping[str, object]],
        *,
        k: int | Sequence[int] | None = None,
        p: float | Sequence[float] | None = None,
        resolution: int | None = None,
    ) -> Call[DiscriminationReport]:
        """Compute where an index cannot tell two kinds of classifier apart.

        Parameters
        ----------
        indices
            Keys of overall indices, or `{"index": key, "class": number}`.
        k, p
            Numbers of classes, and their imbalances from 0 to 1.
        resolution
            Grid values of each rate.
        """
        study = {"indices": indices, "k": k, "p": p, "resolution": resolution}
        content = encode({name: value for name, value in study.items() if value is not None})
        path = calls.path_of("studies", "discrimination")
        return calls.post(path, content, calls.validated(DiscriminationReport))

    @method
    def agreement(
        self,
        *,
        values: Mapping[str, Sequence[float | None]],
        per_class: Mapping[str, Mapping[str, Sequence[float | None]]] | None = None,
    ) -> Call[AgreementReport]:
        """Compute how far indices agree over many models.

        Parameters
        ----------
        values
            By index a value for each model, in one order.
        per_class
            By class and index a value for each model, only for the boxes.
        """
        members = {"values": values, "per_class": per_class}
        content = encode({name: value for name, value in members.items() if value is not None})
        path = calls.path_of("studies", "agreement")
        return calls.post(path, content, calls.validated(AgreementReport))

    @method
    def indices(
        self,
        *,
        scope: Literal["overall", "class"] | None = None,
        family: str | None = None,
        q: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Call[Catalog]:
        """List the indices that a report can have.

        Parameters
        ----------
        scope, family, q
            Only those of a scope or a family, or with a text in their names.
        limit, cursor
            A page of them, as in `evaluations`.
        """
        query = {"scope": scope, "family": family, "q": q, "limit": limit, "cursor": cursor}
        return calls.document(Catalog, "indices", query=query)

    @method
    def index(self, scope: Literal["overall", "class"], key: str) -> Call[IndexEntry]:
        """Describe one index."""
        return calls.document(IndexEntry, "indices", scope, key)

    @method
    def version(self) -> Call[Version]:
        """Return the version and the limits of the service."""
        return Call("GET", "/version", calls.validated(Version))
