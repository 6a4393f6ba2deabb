"""Exhibit: an evaluation as the pages show it."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import orjson
from markupsafe import Markup

from rprime import __version__
from rprime.application.report_subject import report_subject
from rprime.application.reproduction import printed_table
from rprime.application.request import read_request
from rprime.core.evaluate import evaluate
from rprime.core.options import Options
from rprime.dashboard.templates_environment import fragment
from rprime.evidence import read_pasted
from rprime.problems.problem import refuse
from rprime.report.charts import charts_of
from rprime.report.class_selection import ClassSelection
from rprime.report.formats import Format
from rprime.report.subject import ReportSubject
from rprime.report.view import view_of
from rprime.settings import Limits

FIRST = ClassSelection(size=100)
"""Where a table of classes has no further pages."""
MNIST = "table4_mnist_lenet5"
"""What a newcomer sees: the table of the R' paper."""


def render_report_view(
    subject: ReportSubject,
    root: str = "../",
    selection: ClassSelection = FIRST,
    address: Callable[..., str] | None = None,
) -> Markup:
    """Render the part of a page that shows an evaluation.

    Parameters
    ----------
    subject
        What it is about.
    root
        The way from the page to the root of the service.
    selection
        Which classes the table shows, and the charts beside it.
    address
        Returns the address of the page with another selection; None where there is none.
    """
    # Whoever looks at a page waits for the curves, too.
    content = view_of(replace(subject, kept_scores=subject.scores), selection)
    charts = charts_of(subject, content["selected"].labels, selection.by)
    asked = {"charts": charts, "selection": selection, "address": address}
    return Markup(fragment("pages/report.html", root, **content, **asked))  # noqa: S704 (a template)


VIEW = Format(
    "view", "the page", "text/html", "view.html", "dashboard.report_view:render_report_view"
)
"""The same as a rendering, for bodies that are answered elsewhere."""


def render_pasted(text: bytes, options: bytes, limits: Limits) -> Markup:
    """Evaluate what somebody pasted, and render the part of a page that shows it.

    Parameters
    ----------
    text
        UTF-8; a matrix or a whole request.
    options
        A JSON object, further members of the request; b"" for none.
    limits
        What a request may cost.

    Raises
    ------
    Problem
        400 or 422.
    """
    given = read_pasted(text.decode("utf-8", "replace"))
    more = orjson.loads(options) if options else {}
    evaluation_request = read_request(orjson.dumps({**more, **given}), limits)
    if evaluation_request.store_request is not None:
        raise NOT_KEPT
    return render_report_view(report_subject(evaluation_request, evaluation_request.evaluate()))


NOT_KEPT = refuse(
    "/project",
    "not_kept",
    "The evaluator keeps nothing: leave `project` out, or send this to POST /evaluate.",
)


@cache
def sample() -> tuple[str, Markup]:
    """Return a matrix as text to change, and what the pages show of it."""
    labels, table = printed_table(MNIST)
    evaluation = evaluate(table, labels, Options())
    subject = ReportSubject(evaluation=evaluation, engine_version=__version__)
    rows = "\n".join("\t".join(str(int(n)) for n in row) for row in table.cells.counts)
    return rows, render_report_view(subject)
