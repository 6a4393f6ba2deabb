"""Tables of frames, counted by the library that holds them."""

from collections.abc import Sequence

from rprime.client.request import EvidenceFields, RequestFields, SideFields
from rprime.tally import Tally, tally


def tallied(
    frame: object,
    *,
    labels: Sequence[str] | None = None,
    reject_below: float | None = None,
) -> RequestFields:
    """Count the predictions of a frame, as evidence to evaluate here or by a service.

    Its table is all that is needed where no items are to be paired: a frame of billions of items
    becomes some kilobytes.

    Parameters
    ----------
    frame
        Of pandas, Polars (a lazy one, too), Arrow, DuckDB, Dask or Spark, which counts where it
        computes. Its columns are `y_true` and `y_pred`, optionally `sample_weight` and
        `y_pred_baseline`, which becomes the baseline; without `y_pred`, columns
        `score:<label>`, of which the highest is predicted. Others are not read.
    labels
        The classes in their order; default: those of the scores, else those that occur.
    reject_below
        Items whose highest score is below it are unclassified.

    Raises
    ------
    ValueError
        If there are no such columns, or what they hold cannot be counted.

    Examples
    --------
    >>> rprime.evaluate(**rprime.tallied(polars.scan_parquet("*.parquet")))  # doctest: +SKIP
    """
    found = tally(frame, labels=labels, reject_below=reject_below)
    request = RequestFields()
    _fill(request, found.candidate)
    if found.baseline is not None:
        request["baseline"] = side = SideFields()
        _fill(side, found.baseline)
    return request


def _fill(side: EvidenceFields, found: Tally) -> None:
    side["labels"], side["cells"] = list(found.labels), found.cells
    side["unclassified"], side["weighted"] = found.unclassified, found.weighted
