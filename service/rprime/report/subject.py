"""Subject: what a rendering is of, the evaluation with all that is known around it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import orjson

from rprime.core.evaluate import Evaluation
from rprime.core.index_names import listed
from rprime.core.population import Population
from rprime.core.quantities import plural
from rprime.core.scores.curves import ScoreSummary
from rprime.report.text import count
from rprime.schemas.comparison import Comparison
from rprime.schemas.gate import Gate
from rprime.schemas.provenance import ORIGIN, OriginShown

_WHAT = {
    "true": "a population with this prevalence of the classes",
    "predicted": "a population with these shares of the predicted classes",
    "own": "a population with these shares of the strata",
}


def averages_text(evaluation: Evaluation) -> str:
    """Say which classes averages are over; nothing where it is all of them."""
    over, labels = evaluation.options.average_over, evaluation.labels
    if over is None or len(over) == len(labels):
        return ""
    if 2 * len(over) > len(labels):
        left_out = sorted(set(range(len(labels))) - set(over))
        return f"over all classes but {listed([labels[i] for i in left_out])}"
    return f"over {listed([labels[i] for i in over])}"


def population_text(evaluation: Evaluation) -> str:
    """Say in one line what the numbers are about; nothing where it is the items themselves."""
    population = evaluation.options.population
    return "" if population is None else shares_text(population, evaluation.labels)


def shares_text(population: Population, labels: Sequence[str]) -> str:
    """Say in one line what numbers at a population are about."""
    shares = _shares(population, labels)
    source = (
        "" if population.evaluation is None else f" (that of evaluation {population.evaluation})"
    )
    left_out = [name for name, share in shares.items() if not share]
    if population.strata == "true" and len({share for share in shares.values() if share}) == 1:
        but = f" but {listed(left_out)}" if left_out else ""
        return f"about a population with equal shares of all classes{but}{source}"
    text = listed([f"{name} {share:.4g}" for name, share in shares.items()])
    return f"about {_WHAT[population.strata]}{source}: {text}"


def population_member(population: Population, evaluation: Evaluation) -> dict[str, bytes]:
    """Render the member of the document."""
    content = {
        "detail": f"The numbers are {population_text(evaluation)}.",
        "strata": population.strata,
        "shares": _shares(population, evaluation.labels),
        **({} if population.evaluation is None else {"evaluation": population.evaluation}),
        "effective_items": population.effective_items(evaluation.table),
    }
    return {"population": orjson.dumps(content)}


def _shares(population: Population, labels: Sequence[str]) -> dict[str, float]:
    return dict(zip(population.names or labels, population.shares.tolist(), strict=True))


@dataclass(frozen=True, kw_only=True, eq=False)
class ReportSubject:
    """An evaluation, what it was compared with and judged by, and where it comes from.

    Parameters
    ----------
    evaluation
        Of one table; its warnings are those of the comparison and the gate, too.
    baseline
        What it was compared with, in words.
    origin
        What the request says of where it comes from.
    id, created_at, kept_scores
        Of the stored evaluation.
    link, source
        Where the stored report is, and the run that it comes from.
    slice
        The name of the slice that alone is shown; empty for all items.
    """

    evaluation: Evaluation
    engine_version: str
    comparison: Comparison | None = None
    gate: Gate | None = None
    baseline: str | None = None
    origin: OriginShown = field(default_factory=OriginShown)
    id: str | None = None
    created_at: datetime | None = None
    link: str | None = None
    source: str | None = None
    input_digest: str | None = None
    kept_scores: ScoreSummary | None = None
    slice: str = ""

    @property
    def scores(self) -> ScoreSummary | None:
        """What is drawn of the scores; None without any."""
        scores = self.evaluation.values.scores
        return (
            self.kept_scores
            if scores is None
            else ScoreSummary.of(scores, self.evaluation.options.calibration)
        )

    @property
    def provenance(self) -> dict[str, str]:
        """What is known about its origin, by name, in the order in which it is shown."""
        details = {
            **{name: getattr(self.origin, name) for name in ORIGIN},
            "time": self.created_at and f"{self.created_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC",
            "evaluation": self.id,
            "slice": self.slice,
            "averages": averages_text(self.evaluation),
            "population": population_text(self.evaluation),
        }
        return {name: value for name, value in details.items() if value}

    @property
    def items(self) -> float:
        """Number of real items; the sum of their weights where it is not known."""
        return float(self.evaluation.table.number)

    @property
    def size(self) -> str:
        """How many items it is about, in words."""
        if self.evaluation.table.is_numbered:
            return plural(self.items, "item")
        return f"items of a total weight of {count(self.items)}"

    @property
    def title(self) -> str:
        """What it is called: model, else project, else nothing but its kind; and the version."""
        name = self.origin.model or self.origin.project or "Evaluation"
        name = f"{name} {self.origin.version}" if self.origin.version else name
        return ", ".join(filter(None, (name, self.slice, population_text(self.evaluation))))


def read_comparison(document: bytes | None) -> Comparison | None:
    """Read the comparison of a report; None if there is none, or no baseline was found."""
    return None if document in {None, b"null"} else Comparison.model_validate_json(document or b"")


def read_gate(document: bytes | None) -> Gate | None:
    """Read the verdict of a report; None if there is none."""
    return None if document is None else Gate.model_validate_json(document)


def evaluation_name(model: str | None, version: str | None, created_at: datetime) -> str:
    """Name an evaluation by its model and version; by its time where it has no version."""
    moment = f"{created_at.astimezone(UTC):%Y-%m-%d %H:%M}"
    return f"{model} {version or moment}" if model else version or moment


def constant_name(kind: str) -> str:
    """Name a constant classifier."""
    return f"{kind} classifier"


def baseline_name(
    comparison: Comparison | None, name: str | None = None, aliases: Sequence[str] = ()
) -> str | None:
    """Return the name of a baseline as "svc 8, champion"; None for evidence in the request.

    `name` is that of the evaluation; None: it is not known, so that the request names it. Aliases
    are those that point at it today; the one that the request named comes before them.
    """
    if comparison is None:
        return None
    requested = comparison.baseline.requested
    if "constant" in requested:
        return constant_name(requested["constant"])
    if comparison.baseline.resolved is None:
        return None
    if name is None:
        way, text = next(iter(requested.items()))
        return way if text is True else str(text)
    alias, branch = requested.get("alias"), requested.get("branch")
    titles = dict.fromkeys([alias] if alias else aliases)
    newest = [f"newest of {branch}"] if branch else []
    return ", ".join([name, *map(str, titles), *newest])
