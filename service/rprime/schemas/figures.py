"""Query parameters of figures."""

from typing import Annotated, Literal

from pydantic import Field

from rprime.schemas.fields import IndexKey
from rprime.schemas.history import ClassWanted, Narrowed, SliceQuery

_WIDTH = Field(
    default=800, ge=320, le=1600, description="In CSS pixels: 96 are an inch, 363 are 96 mm."
)
_SCALE = Field(
    default=2.0, ge=0.5, le=4, description="PNG pixels for each CSS pixel; 3.125 means 300 dpi."
)
_MOST_INDICES = 6


class FigureQuery(SliceQuery):
    """A figure of one evaluation."""

    index: Annotated[
        tuple[IndexKey, ...],
        Field(
            max_length=_MOST_INDICES,
            description="Keys of per-class indices, of `radar` and `per_class`, and for `radar` of "
            "overall ones beside them; can be repeated.",
        ),
    ] = ()
    width: int = _WIDTH
    scale: float = _SCALE


class HistoryFigureQuery(Narrowed):
    """A figure of a history."""

    index: Annotated[
        tuple[IndexKey, ...],
        Field(
            min_length=1,
            max_length=_MOST_INDICES,
            description="Keys of overall indices for `trend`, with `class` of per-class ones, too; "
            "of per-class ones for `lines` and `boxes`, and of overall ones beside them; can be "
            "repeated.",
        ),
    ] = ("r_prime",)
    class_: ClassWanted = None
    by: Literal["class", "evaluation"] = Field(
        default="evaluation",
        description="With `class`, `boxes` has a box for each class over the evaluations, and "
        "`lines` a panel for each class with all indices.",
    )
    limit: int = Field(default=100, ge=1, le=1000, description="Most evaluations, from the newest.")
    width: int = _WIDTH
    scale: float = _SCALE
