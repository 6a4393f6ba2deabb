"""An evaluation as the pages show it."""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import orjson
from markupsafe import Markup

from rprime import __version__
from rprime.application.reproduction import printed_table
from rprime.application.request import read_request
from rprime.core.arrays import Array
from rprime.core.comparison.attribution import HEADLINES, costs
from rprime.core.evaluate import Evaluation, evaluate
from rprime.core.options import Options
from rprime.dashboard.class_query import ClassQuery, slice_text
from rprime.dashboard.templates_environment import render
from rprime.evidence.pasted import oriented, read_pasted, reading
from rprime.problems.problem import refuse
from rprime.report.formats import Format
from rprime.report.heat_map import ConfusionChart
from rprime.report.styles import rounded
from rprime.report.subject import ReportSubject
from rprime.report.text import isolated, shown
from rprime.report.view import view_of
from rprime.settings import Limits

WHOLE = ClassQuery()
MNIST = "table4_mnist_lenet5"
"""What a newcomer sees: the table of the R' paper."""
COST_DIGITS = 7
"""Significant ones: what a page adds up has more than the four decimals that it shows."""


def render_report_view(
    subject: ReportSubject, root: str = "../", query: ClassQuery = WHOLE, **more: object
) -> Markup:
    """Render the part of a page that shows an evaluation.

    The root is the way there from the page; the query says which classes the table and the charts
    beside it show. More: `reading`, a sentence on how the evidence was read, `verdict`, the
    `Headline` in place of that of the subject, and `families`, links to other indices.
    """
    # Whoever looks at a page waits for the curves, too.
    content = view_of(replace(subject, kept_scores=subject.scores), query.selection)
    content |= {
        "costs": _cells(subject, content["heat"]),
        "query": query,
        "stored": subject.id,
        "slice_text": slice_text,
    }
    content |= {"resolved": subject.comparison and subject.comparison.baseline.resolved, **more}
    return Markup(render("pages/report.html", root, **content))  # noqa: S704 (a template)


def _cells(subject: ReportSubject, chart: ConfusionChart) -> dict[str, Any]:
    """Return what the script says of a cell of the heat map, and what its items cost."""
    return {
        "labels": [isolated(shown(label)) for label in chart.labels],
        "support": rounded(chart.support),
        "predicted": rounded(chart.predicted),
        "counts": [rounded(row) for row in chart.counts],
        "unclassified": chart.unclassified,
        "weighted": chart.weighted,
        "costs": _costs(subject.evaluation, chart.places),
    }


def _costs(evaluation: Evaluation, places: Array) -> dict[str, Any]:
    totals = costs(evaluation.table, HEADLINES)
    of_all = {"right": totals.right, "wrong": totals.wrong, "silent": totals.silent}
    of_class = {"missed": totals.missed, "taken": totals.taken}

    def precise(part: Array) -> list[float]:
        """Round to significant digits: one item among millions costs little."""
        return [float(f"{n:.{COST_DIGITS}g}") for n in part[places].tolist()]

    scopes = (("overall", totals.overall, of_all), ("per_class", totals.per_class, of_class))
    return {
        scope: [
            {"name": index.name, **{name: precise(rows[i]) for name, rows in parts.items()}}
            for i, index in enumerate(indices)
        ]
        for scope, indices, parts in scopes
    }


@dataclass(frozen=True, slots=True)
class View(Format):
    """The same as a rendering, for bodies that are answered elsewhere."""

    query: ClassQuery = WHOLE
    reading: str = ""

    def render(self, subject: ReportSubject) -> bytes:
        """Render as UTF-8."""
        return render_report_view(subject, query=self.query, reading=self.reading).encode()


def render_pasted(text: bytes, options: bytes, limits: Limits, query: ClassQuery) -> Markup:
    """Evaluate what somebody pasted, and render the part of a page that shows it.

    The text is a matrix or a whole request in UTF-8, the options a JSON object of further members
    of the request, b"" for none. A mistake is 400 or 422.
    """
    members = read_pasted(text.decode("utf-8", "replace"))
    more = orjson.loads(options) if options else {}
    oriented(members, more.get("axis"))
    evaluation_request = read_request(orjson.dumps({**more, **members}), limits)
    if evaluation_request.store_request is not None:
        raise NOT_KEPT
    subject = evaluation_request.subject(evaluation_request.evaluate())
    return render_report_view(subject, query=query, reading=_reading(text, members, more))


def _reading(text: bytes, members: dict[str, Any], more: dict[str, Any]) -> str:
    if text.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"{"):
        return "Read as a request in JSON."
    return reading(members, more.get("axis"))


NOT_KEPT = refuse(
    "/project",
    "not_kept",
    "The evaluator keeps nothing: leave `project` out, or send this to POST /evaluate.",
)


@cache
def sample() -> tuple[str, ReportSubject]:
    """Return a matrix as text to change, and what it is about."""
    labels, table = printed_table(MNIST)
    evaluation = evaluate(table, labels, Options())
    rows = "\n".join("\t".join(str(int(n)) for n in row) for row in table.cells.counts)
    return rows, ReportSubject(evaluation=evaluation, engine_version=__version__)
