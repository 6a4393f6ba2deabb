"""What a request to keep an evaluation takes from the history, and what it adds to it."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import orjson

from rprime import __version__
from rprime.core.comparison.alignment import Side
from rprime.core.evaluate import Evaluation
from rprime.core.warnings import Warning  # noqa: A004 (its name)
from rprime.inquiry.origin import Origin
from rprime.inquiry.reading import Inquiry
from rprime.inquiry.review import Opponent, Review
from rprime.store import BaselineQuery, KeptItems, NewEvaluation, Store, ids
from rprime.store import Evaluation as Kept

SCORES_NOT_KEPT = Warning(
    "scores_not_kept",
    "",
    "Scores are not kept, only the table is. What reads them stands in the first answer and in "
    "its verdict, but in no later report, trend, leaderboard or comparison.",
    "docs/operations.md#what-the-store-keeps",
)


def reads_history(inquiry: Inquiry) -> bool:
    """Whether `resolved` has to read anything."""
    review, origin = inquiry.review, inquiry.origin
    if review is None or origin is None:
        return False
    return origin.reference is not None or _counts(review)


def resolved(inquiry: Inquiry, store: Store) -> Inquiry:
    """Look up the baseline and count the looks, as far as they are asked for. It blocks."""
    review, origin = inquiry.review, inquiry.origin
    if review is None or origin is None:
        return inquiry
    if origin.reference is not None:
        review = opposed(review, store, origin.project, origin.reference)
    if _counts(review):
        fingerprint = review.candidate.fingerprint or ""
        review = replace(review, look=store.looks(origin.project, fingerprint) + 1)
    return replace(inquiry, review=review)


def at_look(inquiry: Inquiry, look: int) -> Inquiry:
    """Give the same request as another look at its test set."""
    review = inquiry.review
    return inquiry if review is None else replace(inquiry, review=replace(review, look=look))


def _counts(review: Review) -> bool:
    return review.spends and review.candidate.fingerprint is not None


def opposed(review: Review, store: Store, project: str, query: BaselineQuery) -> Review:
    """Give a candidate the stored baseline that a request names, or say why there is none."""
    found = store.baseline(project, query)
    if found.evaluation is None:
        return replace(review, missing=found.why)
    kept = found.evaluation
    opponent = Opponent(
        side=side_of_kept(kept, store, with_items=review.candidate.items is not None),
        requested={query.by: query.name},
        resolved=kept.id,
        why=found.why,
        identity=kept.id,
    )
    return replace(review, opponent=opponent)


def side_of_kept(kept: Kept, store: Store, *, with_items: bool = True) -> Side:
    """Give a stored evaluation as a side of a comparison.

    Parameters
    ----------
    kept, store
        The evaluation and where it is.
    with_items
        Whether its items are of use.
    """
    items = store.items(kept.id) if with_items and kept.keeps_items else None
    return Side(
        labels=kept.labels,
        table=kept.table,
        items=None if items is None else items.items,
        fingerprint=kept.fingerprint,
        test_set=kept.test_set,
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class Draft:
    """An evaluation that is about to be stored.

    Parameters
    ----------
    inquiry
        Its baseline and its look are `resolved`.
    origin
        Of the inquiry.
    evaluation
        Of its evidence.
    id
        Under which it will be found.
    """

    inquiry: Inquiry
    origin: Origin
    evaluation: Evaluation
    id: str

    @cached_property
    def record(self) -> NewEvaluation:
        """What is stored of it."""
        inquiry, given, review = self.inquiry, self.origin.given, self.inquiry.review
        declared, members = given.test_set, review.members if review else {}
        verdict = review.verdict if review else None
        return NewEvaluation(
            id=self.id,
            project=self.origin.project,
            model=given.model,
            version=given.version,
            branch=given.branch,
            commit=given.commit,
            tags=tuple(given.tags or ()),
            test_set=declared.id if declared else None,
            fingerprint=inquiry.evidence.fingerprint
            or (declared.fingerprint if declared else None),
            labels=inquiry.evidence.labels,
            table=inquiry.evidence.table,
            items=self._items,
            input_digest=inquiry.evidence.input_digest,
            engine_version=__version__,
            options=self.origin.asked,
            source=None if given.source is None else orjson.dumps(given.source),
            gate=members.get("gate"),
            comparison=members.get("comparison"),
            extras=self._extras,
            verdict=inquiry.verdict,
            waived=verdict is not None and any(r.verdict == "waived" for r in verdict.results),
            submission=self._submission,
            look=review.look if review else None,
        )

    def report(self, *, with_table: bool = False) -> bytes:
        """Render it as it will be found."""
        return self.inquiry.report(
            self.evaluation, with_table=with_table, members=members_of(self.record)
        )

    @property
    def _items(self) -> KeptItems | None:
        items = self.inquiry.evidence.items
        wanted = self.origin.given.keep_items in {None, True}
        return KeptItems(items) if items is not None and wanted else None

    @property
    def _extras(self) -> bytes | None:
        """What a report is made from, beside the evidence."""
        review, items = self.inquiry.review, self.inquiry.evidence.items
        extras: dict[str, Any] = {}
        if review is not None and review.warnings:
            extras["warnings"] = review.warnings
        if items is not None and items.groups is not None:
            extras["grouped"] = True
        if self.inquiry.evidence.scores is not None:
            extras["scored"] = True
        return orjson.dumps(extras) if extras else None

    @property
    def _submission(self) -> bytes:
        """The digest by which a repetition is known: who, on what, held against what."""
        given, review = self.origin.given, self.inquiry.review
        opponent = review.opponent if review else None
        declared = given.test_set
        identity = (
            given.model,
            given.version,
            declared and (declared.id, declared.fingerprint),
            self.inquiry.evidence.input_digest,
            None if opponent is None else opponent.identity,
        )
        digest = hashlib.blake2b(orjson.dumps(identity), digest_size=32)
        digest.update(self.origin.asked)
        return digest.digest()


def members_of(found: NewEvaluation | Kept) -> dict[str, bytes]:
    """Give what the report on a stored evaluation has beside its values, as JSON by name."""
    members: dict[str, Any] = {
        "id": found.id,
        "created_at": ids.created_at(found.id),
        "links": links_of(found.id, judged=found.verdict is not None),
        "project": found.project,
        "model": found.model,
        "version": found.version,
        "branch": found.branch,
        "commit": found.commit,
        "tags": found.tags or None,
        "test_set": _test_set(found),
    }
    known = {name: orjson.dumps(value) for name, value in members.items() if value is not None}
    return known if found.source is None else {**known, "source": found.source}


def links_of(identifier: str, *, judged: bool) -> Mapping[str, str]:
    """Give the paths of what there is of an evaluation."""
    place = f"/v1/evaluations/{identifier}"
    reports = {name: f"{place}/report.{suffix}" for name, suffix in _REPORTS.items()}
    verdict = {"verdict": f"{place}/verdict"} if judged else {}
    return {"self": place, **verdict, **reports}


_REPORTS = {
    "markdown": "md",
    "html": "html",
    "csv": "csv",
    "junit": "junit.xml",
    "openmetrics": "openmetrics.txt",
}


def _test_set(found: NewEvaluation | Kept) -> dict[str, str] | None:
    given = {"id": found.test_set, "fingerprint": found.fingerprint}
    return {name: value for name, value in given.items() if value is not None} or None
