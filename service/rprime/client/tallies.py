"""Count confusion tables of data frames with the library that holds them."""

from collections.abc import Mapping, Sequence
from typing import cast

from rprime.client.request import RequestFields, SideFields
from rprime.tally import tally


def tallied(
    frame: object,
    *,
    labels: Sequence[str] | None = None,
    reject_below: float | None = None,
    slices: Sequence[str] = (),
    slice_cuts: Mapping[str, Sequence[float]] | None = None,
    slice_crossings: Sequence[Sequence[str]] = (),
) -> RequestFields:
    """Count the predictions of a frame, as evidence to evaluate here or by a service.

    The table is enough unless items are compared in pairs: a frame of billions of items becomes
    some kilobytes.

    Parameters
    ----------
    frame
        A frame of pandas, Polars (also lazy), Arrow, DuckDB, Dask or Spark, counted by that
        library. Its columns are `y_true` and `y_pred`, optionally `sample_weight` and
        `y_pred_baseline`, which becomes the baseline; without `y_pred`, columns `score:<label>`, of
        which the highest is predicted, the first of equal ones. Other columns are not read.
    labels
        The classes in their order; default: those of the scores, else all that occur.
    reject_below
        Items whose highest score is below it are unclassified.
    slices
        Columns whose values are slices, besides columns `slice:<name>`.
    slice_cuts
        Of columns of numbers, the numbers at which slices begin, ascending.
    slice_crossings
        Names of slices whose values are combined.

    Raises
    ------
    ValueError
        If columns are missing or their values cannot be counted.

    Examples
    --------
    >>> rprime.evaluate(**rprime.tallied(polars.scan_parquet("*.parquet")))  # doctest: +SKIP
    """
    found = tally(
        frame,
        labels=labels,
        reject_below=reject_below,
        slices={name: name for name in slices},
        cuts=slice_cuts,
        crossings=slice_crossings,
    )
    request = cast("RequestFields", found.candidate.evidence())
    if found.baseline is not None:
        request["baseline"] = cast("SideFields", found.baseline.evidence())
    return request
