"""Class query: which classes a page shows, as its address says."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

import orjson
from fastapi import Request
from pydantic import Field

from rprime.core.catalog import FAMILIES
from rprime.core.index import Families
from rprime.core.options import Options
from rprime.core.slices.slices import Slice
from rprime.problems.problem import validated
from rprime.report.class_selection import ClassSelection
from rprime.schemas.history import Narrowed, Query
from rprime.schemas.population import Prevalence, SliceWanted

ROWS = 12
"""Classes of a page."""
FAMILY_NAMES: dict[str, str] = {
    "summary": "Summary",
    "all": "All indices",
    **{family: family.capitalize() for family in FAMILIES},
}
"""Families as a page offers them."""


class ClassQuery(Query):
    """The indices, the order of the classes, a part of their names, and the page of the table.

    `cells`, `cell` and `index` say what the charts show: the script reads them from the address.
    """

    family: Families | None = None
    order: Annotated[str, Field(pattern="^-?[a-z0-9_]+$", max_length=64)] = ""
    name: Annotated[str, Field(max_length=255)] = ""
    page: Annotated[int, Field(ge=1)] = 1
    cells: Literal["", "row", "column"] = ""
    cell: Annotated[str, Field(pattern=r"^(\d+,\d+)?$", max_length=16)] = ""
    index: Annotated[str, Field(pattern="^[a-z0-9_]*$", max_length=64)] = ""
    slice: SliceWanted = ()
    prevalence: Prevalence = None

    @property
    def sliced(self) -> str:
        """The slice as a query names it; empty for all items."""
        return slice_text(self.slice)

    @property
    def families(self) -> tuple[Families, ...]:
        """The families whose indices are shown; none: those that the request asked for."""
        return (self.family,) if self.family else ()

    @property
    def subset(self) -> dict[str, str]:
        """Which items, and which population, as a query names them."""
        members = {"slice": self.sliced, "prevalence": self.prevalence}
        return {name: value for name, value in members.items() if value}

    @property
    def given(self) -> dict[str, str]:
        """What a form hands on, besides the classes: the subset and the family."""
        return self.subset | ({"family": self.family} if self.family else {})

    @property
    def selection(self) -> ClassSelection:
        """What is asked for."""
        return ClassSelection(self.order, self.name, self.page, ROWS)

    def link(self, **changed: object) -> str:
        """Return the query of the same page with other members."""
        return f"?{urlencode(said_of(self.model_copy(update={'page': 1, **changed})))}"

    def address(self, **changed: object) -> str:
        """Return `link` to the table of classes."""
        return f"{self.link(**changed)}#classes"

    def family_links(self, options: Options) -> list[tuple[str, str]]:
        """Return the names of the families, each with its query; "" for the one that is shown.

        The options are those of the evaluation, which may have asked for other indices.
        """
        default = options.indices is None and not options.families
        names = FAMILY_NAMES if default else {"": "As requested", **FAMILY_NAMES}
        shown = self.family or ("summary" if default else "")
        return [
            (name, "" if family == shown else self.link(family=family))
            for family, name in names.items()
        ]


def class_query(request: Request) -> ClassQuery:
    """Read it from an address that says other things, too."""
    members = given_of(request).items()
    return validated(ClassQuery, {k: v for k, v in members if k in ClassQuery.model_fields})


def given_of(request: Request) -> dict[str, Any]:
    """Return the query of a form: a field that was left empty asks for nothing."""
    query = request.query_params
    members: dict[str, Any] = {name: value for name, value in query.items() if value}
    # The columns of a crossing are given one by one.
    return members | ({"slice": query.getlist("slice")} if "slice" in members else {})


def said_of(query: Narrowed | ClassQuery) -> dict[str, Any]:
    """Return what an address says of a query: what differs from its defaults."""
    members = query.model_dump(exclude_defaults=True, by_alias=True, exclude={"slice"})
    return members | ({"slice": slice_text(query.slice)} if query.slice else {})


def slice_text(columns: Mapping[str, str] | Slice) -> str:
    """Write the name of a slice for a query: as `region=EU`, else as JSON; empty for all items."""
    name = dict(columns)
    if not name:
        return ""
    column, value = next(iter(name.items()))
    plain = len(name) == 1 and "=" not in column and not column.startswith("{")
    return f"{column}={value}" if plain else orjson.dumps(name).decode()
