"""Write the tables of pages that follow from the code: `sh .ci/venv python docs/site/tables.py`."""

import json
from pathlib import Path

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from rprime.routes.operations import FixedLimits
from rprime.settings import MIB, Limits, Settings

DOCUMENTS = Path(__file__).parent.parent
CONTRACT = DOCUMENTS.parent / "openapi" / "openapi.json"
PAGES = ("http-api.md", "operations.md")
_SIZES = ((MIB, "MiB"), (1024, "KiB"))


def sized(name: str, value: float | None) -> str:
    """Return a default as people write it: a number of bytes in its largest unit."""
    if not isinstance(value, int):
        return "null" if value is None else f"{value:g}"
    for size, unit in _SIZES:
        if "bytes" in name and value % size == 0:
            return f"{value // size:,} {unit}".replace(",", " ")
    return f"{value:,}".replace(",", " ")


def limits(model: type[BaseModel], head: str) -> str:
    """Return the table of limits, with the descriptions that the contract has."""
    rows = [
        f"| `{name}` | {sized(name, field.default)} | {field.description} |"
        for name, field in model.model_fields.items()
    ]
    return "\n".join((f"| limit | {head} | is |", "|---|---|---|", *rows, ""))


def settings() -> str:
    """Return the table of settings; a default that a description explains is left out."""
    rows = []
    for name, field in Settings.model_fields.items():
        computed = field.default in (None, PydanticUndefined, (), "") or name in {"guide", "limits"}
        value = int(field.default) if isinstance(field.default, bool) else field.default
        default = "" if computed else f"`{value}`"
        if name != "limits":
            rows.append(f"| `RPRIME_{name.upper()}` | {default} | {field.description} |")
    return "\n".join(("| variable | default | meaning |", "|---|---|---|", *rows, ""))


def routes() -> str:
    """Return the table of routes, with the summaries that the contract has."""
    paths = json.loads(CONTRACT.read_text(encoding="utf-8"))["paths"]
    rows = [
        f"| `{method.upper()} {path}` | {operation['summary']} |"
        for path, operations in paths.items()
        for method, operation in operations.items()
        if isinstance(operation, dict)
    ]
    return "\n".join(("| route | is |", "|---|---|", *rows, ""))


def written(page: str) -> str:
    """Return a page with its tables made anew, each between two comments with its name."""
    tables = {
        "limits": limits(Limits, "default"),
        "fixed-limits": limits(FixedLimits, "value"),
        "routes": routes(),
        "settings": settings(),
    }
    for name, table in tables.items():
        begin, end = f"<!-- {name}:begin -->\n", f"<!-- {name}:end -->"
        if begin in page:
            before, _, rest = page.partition(begin)
            page = before + begin + table + end + rest.partition(end)[2]
    return page


if __name__ == "__main__":
    for name in PAGES:
        page = DOCUMENTS / name
        page.write_text(written(page.read_text(encoding="utf-8")), encoding="utf-8")
