"""Charts: the numbers that the script of the pages draws, to be embedded beside the words."""

from collections.abc import Sequence
from typing import Any

from rprime.core.arrays import Array
from rprime.core.comparison.attribution import HEADLINES
from rprime.core.comparison.costs import costs
from rprime.core.evaluate import Evaluation
from rprime.report.class_charts import ClassChart, RadarChart, default_indices
from rprime.report.heat_map import POWERS, TINTS, ConfusionChart
from rprime.report.measures import Measures
from rprime.report.names import isolated, shown
from rprime.report.styles import rounded
from rprime.report.subject import ReportSubject

COST_DIGITS = 7
"""Significant ones: what a page adds up has more than the four decimals that it shows."""


def charts_of(subject: ReportSubject, shown_first: Sequence[str], by: str) -> dict[str, Any]:
    """Return the data of all charts of an evaluation; NaN stays.

    `shown_first` has the names of the classes of the table in its order, in which the chart beside
    it has them; `by` is the key of the index that orders them, if any.
    """
    measures, evaluation = Measures(subject), subject.evaluation
    chart = ConfusionChart.of(evaluation)
    indices = measures.class_headlines
    radar = default_indices("radar", compared=measures.compared)
    around = tuple(index for index in indices if index.key in radar) or indices
    return {
        "labels": [isolated(shown(label)) for label in chart.labels],
        "support": rounded(chart.support),
        "predicted": rounded(chart.predicted),
        "counts": [rounded(row) for row in chart.counts],
        "unclassified": chart.unclassified,
        "note": chart.left_out,
        "powers": POWERS,
        "tints": TINTS,
        "table": ClassChart.of(measures, indices).named(shown_first).data() | {"by": by},
        "radar": RadarChart.of(subject, around).data() if around else None,
        "costs": _costs(evaluation, chart.places),
    }


def _costs(evaluation: Evaluation, places: Array) -> dict[str, Any]:
    found = costs(evaluation.table, HEADLINES)
    of_all = {"right": found.right, "wrong": found.wrong, "silent": found.silent}
    of_class = {"missed": found.missed, "taken": found.taken}

    def precise(part: Array) -> list[float]:
        """Round to significant digits: one item among millions costs little."""
        return [float(f"{n:.{COST_DIGITS}g}") for n in part[places].tolist()]

    return {
        scope: [
            {"name": index.name, **{name: precise(rows[i]) for name, rows in parts.items()}}
            for i, index in enumerate(indices)
        ]
        for scope, indices, parts in (
            ("overall", found.overall, of_all),
            ("per_class", found.per_class, of_class),
        )
    }
