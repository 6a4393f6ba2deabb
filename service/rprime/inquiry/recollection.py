"""A stored evaluation as it was, computed again from its table."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import orjson

from rprime import __version__
from rprime.core.evaluate import Evaluation, evaluate
from rprime.core.options import Options
from rprime.core.warnings import Warning  # noqa: A004 (its name)
from rprime.inquiry.history import SCORES_NOT_KEPT, members_of
from rprime.inquiry.origin import read_options
from rprime.inquiry.reading import Inquiry
from rprime.inquiry.recorded import baseline_name, read_comparison, read_gate
from rprime.report.document import render
from rprime.report.subject import Subject
from rprime.store import Evaluation as Kept
from rprime.store import KeptItems, Store, ids

NOTHING = b"null"
ITEMS_GONE = Warning(
    "items_not_kept",
    "",
    "The items came in groups but were not kept, so that intervals cannot be computed again.",
    "docs/statistics.md#groups",
)


@dataclass(frozen=True, eq=False)
class Recollection:
    """A stored evaluation.

    Parameters
    ----------
    kept
        What is stored of it.
    items
        Only where items came in groups: intervals take them into account.
    top_confusions
        How many confusions a report lists.
    indices
        Keys of what is computed; None: what it was asked for.
    """

    kept: Kept
    items: KeptItems | None
    top_confusions: int
    indices: tuple[str, ...] | None = None

    @cached_property
    def evaluation(self) -> Evaluation:
        """Its values, with what is known of its comparison and its gate."""
        kept = self.kept
        items = None if self.items is None else self.items.items
        found = evaluate(kept.table, kept.labels, self.options, items)
        return replace(found, warnings=found.warnings + self.warnings)

    @property
    def options(self) -> Options:
        """How it was asked for."""
        options = read_options(self.kept.options, self.top_confusions)
        if self.indices is not None:
            options = replace(options, indices=self.indices)
        return replace(options, intervals=False) if self._lacks_groups else options

    @property
    def warnings(self) -> tuple[Warning, ...]:
        """What weakened its comparison or its verdict."""
        given = tuple(Warning(**one) for one in self._extras.get("warnings", ()))
        scored = (SCORES_NOT_KEPT,) if "scored" in self._extras else ()
        return (*scored, *given, *((ITEMS_GONE,) if self._lacks_groups else ()))

    def report(self, *, with_table: bool = False) -> bytes:
        """Render it as the JSON document of the contract."""
        kept = self.kept
        given = {"comparison": kept.comparison, "gate": kept.gate}
        judged = {name: content for name, content in given.items() if content is not None}
        return render(
            self.evaluation,
            engine_version=__version__,
            input_digest=kept.input_digest,
            members=members_of(kept) | judged,
            with_table=with_table,
        )

    @property
    def subject(self) -> Subject:
        """What a rendering shows of it."""
        kept = self.kept
        compared = kept.comparison if kept.comparison not in {None, NOTHING} else None
        return Subject(
            evaluation=self.evaluation,
            engine_version=__version__,
            comparison=None if compared is None else read_comparison(compared),
            gate=None if kept.gate is None else read_gate(kept.gate),
            baseline=None if compared is None else baseline_name(compared),
            project=kept.project,
            model=kept.model,
            version=kept.version,
            branch=kept.branch,
            commit=kept.commit,
            id=kept.id,
            created_at=kept.created_at,
            source=None if kept.source is None else orjson.loads(kept.source),
            input_digest=kept.input_digest,
        )

    @property
    def _lacks_groups(self) -> bool:
        return "grouped" in self._extras and self.items is None

    @cached_property
    def _extras(self) -> dict[str, Any]:
        return extras_of(self.kept)


def extras_of(kept: Kept) -> dict[str, Any]:
    """Give what was kept beside the evidence, the verdict and the comparison."""
    return {} if kept.extras is None else orjson.loads(kept.extras)


def recollect(kept: Kept, store: Store, top_confusions: int) -> Recollection:
    """Gather what it takes to compute a stored evaluation again. It blocks."""
    grouped = kept.keeps_items and "grouped" in extras_of(kept)
    return Recollection(kept, store.items(kept.id) if grouped else None, top_confusions)


def subject_of(inquiry: Inquiry, evaluation: Evaluation, identifier: str | None = None) -> Subject:
    """Give what a rendering shows of an evaluation; identifier: under which it is kept."""
    given, review = inquiry.given, inquiry.review
    notices = review.notices if review else ()
    opponent = review.opponent if review else None
    stored = opponent is not None and opponent.resolved is not None
    return Subject(
        evaluation=replace(evaluation, warnings=evaluation.warnings + notices),
        engine_version=__version__,
        comparison=review.comparison if review else None,
        gate=review.verdict if review else None,
        baseline=next(iter(opponent.requested.values())) if opponent and stored else None,
        project=given.project,
        model=given.model,
        version=given.version,
        branch=given.branch,
        commit=given.commit,
        id=identifier,
        created_at=None if identifier is None else ids.created_at(identifier),
        source=given.source,
        input_digest=inquiry.evidence.input_digest,
    )
