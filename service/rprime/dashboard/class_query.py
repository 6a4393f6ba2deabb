"""Class query: which classes a page shows, as its address says."""

from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import Request
from pydantic import Field

from rprime.report.class_selection import ClassSelection
from rprime.schemas.history import Query

PAGE_SIZE = 30


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

    @property
    def selection(self) -> ClassSelection:
        """What is asked for."""
        return ClassSelection(self.order, self.name, self.page, PAGE_SIZE)

    def address(self, **changed: str | int) -> str:
        """Return the query of the same page with another selection, as its links have it."""
        asked = self.model_copy(update={"page": 1, **changed}).model_dump(exclude_defaults=True)
        return f"?{urlencode(asked)}#classes"


def class_query(request: Request) -> ClassQuery:
    """Read it from an address that says other things, too."""
    given = given_of(request).items()
    return ClassQuery.model_validate({k: v for k, v in given if k in ClassQuery.model_fields})


def given_of(request: Request) -> dict[str, str]:
    """Return the query of a form: a field that was left empty asks for nothing."""
    return {name: value for name, value in request.query_params.items() if value}
