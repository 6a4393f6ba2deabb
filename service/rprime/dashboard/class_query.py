"""Class query: which classes a page shows, as its address says."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

import orjson
from fastapi import Request
from pydantic import Field

from rprime.core.slices.slices import Slice
from rprime.problems.problem import validated
from rprime.report.class_selection import ClassSelection
from rprime.schemas.history import Narrowed, Query
from rprime.schemas.population import Prevalence, SliceWanted

ROWS = 25
"""Classes of a page."""


class ClassQuery(Query):
    """The order of the classes, a part of their names, and the page of the table.

    `cells`, `cell` and `index` say what the charts show: the script reads them from the address.
    """

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
    def given(self) -> dict[str, str]:
        """What a form hands on, besides the classes: which items, and which population."""
        members = {"slice": self.sliced, "prevalence": self.prevalence}
        return {name: value for name, value in members.items() if value}

    @property
    def selection(self) -> ClassSelection:
        """What is asked for."""
        return ClassSelection(self.order, self.name, self.page, ROWS)

    def address(self, **changed: str | int) -> str:
        """Return the query of the same page with another selection, as its links have it."""
        return f"?{urlencode(said_of(self.model_copy(update={'page': 1, **changed})))}#classes"


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
