"""Pages of the documentation site that follow from the code."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import typer
import typer.cli
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from rprime.app import create_app
from rprime.cli import app
from rprime.dashboard.catalog_view import CatalogEntry, catalog
from rprime.dashboard.contract_view import type_of
from rprime.dashboard.templates_environment import macros
from rprime.problems.kinds import KINDS
from rprime.routes.operations import FixedLimits
from rprime.settings import Limits, Settings

Json = Any
INDICES = "reference/indices"
_CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.DOTALL)

HTTP = """\
[HTTP API](../http-api.md) explains how they belong together, [schemas](schemas.md) lists the
members of what is sent and answered. Where the service asks for keys, every operation can also
answer 401, 403 and 429; [problems](problems.md) explains every error."""
SCHEMAS = """\
The members of requests and answers. `/openapi.json` of a service, in the repository
`openapi/openapi.json`, has the same for programs."""
SETTINGS = """\
Environment variables of `rprime serve`. [Operations](../operations.md#settings) explains how to
choose them."""
PROBLEMS = """\
An answer that is an error has the media type `application/problem+json` (RFC 9457). Its `code` is
one of these. A failed gate is no error: it is data in an answer with status 200 or 201."""
PYTHON = """\
# Python API

The functions `rprime.evaluate`, `compare`, `lint` and `plan` are the methods of the same names,
without a service. [Python](../python.md) shows their use.

::: rprime.client.clients.Client
    options:
      heading: rprime.Client
      members: [close, ready]

::: rprime.client.clients.AsyncClient
    options:
      heading: rprime.AsyncClient
      members: [close, ready]

::: rprime.client.methods.Methods
    options:
      heading: Methods of a client

::: rprime.client.report.Report
    options:
      heading: rprime.Report
      members: [overall, per_class, verdict, to_frame, to_dict, plot]
      inherited_members: true

::: rprime.client.in_process.tallied
    options:
      heading: rprime.tallied

::: rprime.client.errors.ProblemError
    options:
      heading: rprime.ProblemError

::: rprime.client.errors.ServiceUnavailableError
    options:
      heading: rprime.ServiceUnavailableError

::: rprime.sklearn.scorer

::: rprime.sklearn.report_from_estimator

::: rprime.sklearn.cross_validated
"""


@cache
def pages() -> dict[str, str]:
    """Return the generated pages that the navigation shows: the Markdown by the path."""
    document = create_app(Settings(store="none")).openapi()
    return {
        "reference/command.md": command(),
        "reference/http.md": operations(document),
        "reference/schemas.md": schemas(document),
        "reference/python.md": PYTHON,
        "reference/settings.md": settings(),
        "reference/problems.md": problems(),
    }


# Indices


def index_pages() -> dict[str, str]:
    """Return a page for each key: its formula, an example and what moves it."""
    found: dict[str, list[CatalogEntry]] = {}
    for entry in catalog():
        found.setdefault(entry.facts.key, []).append(entry)
    section = macros("index_section.html").index_section
    return {
        f"{INDICES}/{key}.md": "\n\n".join(
            (
                f"# {literal(entries[0].facts.name)}",
                "[All indices](../../indices.md#all-indices)",
                *(block(section(entry, "{}.html")) for entry in entries),
            )
        )
        for key, entries in found.items()
    }


def with_links(markdown: str) -> str:
    """Return a page whose tables of indices link to the page of each."""
    keys = {entry.facts.key for entry in catalog()}

    def link(found: re.Match[str]) -> str:
        key = found[1]
        return f"| [`{key}`]({INDICES}/{key}.md)" if key in keys else found[0]

    return re.sub(r"(?<=\n)\| `(\w+)`", link, markdown)


def plots(scope: str, keys: list[str]) -> str:
    """Draw how indices move, beside each other."""
    found = {entry.facts.key: entry for entry in catalog() if entry.facts.scope == scope}
    plotted = macros("index_section.html").plotted
    rows = []
    for key in keys:
        entry = found[key]
        moved = (entry.example or {"plots": ()})["plots"]
        drawn = "".join(plotted(plot) for plot in moved)
        rows.append(f'<div class="example"><p><strong>{entry.facts.name}</strong></p>{drawn}</div>')
    return block("".join(rows))


def block(html: str) -> str:
    """Return a part of a page of the service as a block that Markdown leaves as it is."""
    lines = (line for line in html.splitlines() if line.strip())
    return '<div class="rprime">' + "\n".join(lines) + "</div>"


# The command


def command() -> str:
    """Return the help of every command."""
    group: Any = typer.main.get_command(app)
    text = typer.cli.get_docs_for_click(
        obj=group, ctx=typer.Context(group), name="rprime", title="Command reference"
    )
    return literal(text).replace("\n# Command", "# Command", 1)


# The HTTP API


def operations(document: Json) -> str:
    """Return every operation by its tag."""
    parts = ["# HTTP operations", HTTP]
    for tag in document["tags"]:
        parts += [f"## {tag['name']}", tag["description"]]
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                if tag["name"] in operation["tags"]:
                    parts += _operation(f"{method.upper()} {path}", operation)
    return "\n\n".join(parts) + "\n"


def _operation(name: str, operation: Json) -> Iterator[str]:
    yield f"### `{name}`"
    yield literal(f"{operation['summary']}. {operation.get('description', '')}")
    parameters = [
        (f"`{p['name']}`", p["in"], typed(p.get("schema", {})), _text(p))
        for p in operation.get("parameters", [])
    ]
    yield table(("parameter", "in", "type", "meaning"), parameters)
    body = operation.get("requestBody", {}).get("content", {})
    yield table(("body", "type"), [(f"`{m}`", typed(c.get("schema", {}))) for m, c in body.items()])
    yield table(
        ("answer", "is", "type"),
        [
            (code, _text(answer), ", ".join(sorted(_answered(answer))))
            for code, answer in sorted(operation["responses"].items())
        ],
    )


def _answered(answer: Json) -> set[str]:
    contents = answer.get("content", {}).items()
    return {typed(c["schema"]) if "$ref" in c.get("schema", {}) else f"`{m}`" for m, c in contents}


def schemas(document: Json) -> str:
    """Return the members of every schema."""
    parts = ["# Schemas", SCHEMAS]
    for name, schema in sorted(document["components"]["schemas"].items()):
        needed = schema.get("required", ())
        members = [
            (f"`{member}`", typed(s), "yes" if member in needed else "", _text(s))
            for member, s in schema.get("properties", {}).items()
        ]
        parts += [
            f"## {name}",
            _text(schema),
            table(("member", "type", "required", "meaning"), members),
        ]
        if not members:
            parts.append(f"Type: {typed(schema)}")
    return "\n\n".join(parts) + "\n"


def typed(schema: Json) -> str:
    """Say the type of a JSON schema in a few words, named schemas as links."""
    forms = {"schema": "[{0}](schemas.md#{1})", "code": "`{0}`", "text": "{0}"}
    return "".join(forms[kind].format(text, text.lower()) for kind, text in type_of(schema))


def _text(described: Json) -> str:
    return literal(" ".join(str(described.get("description", "")).split()))


# Settings and problems


def settings() -> str:
    """Return every setting and limit."""
    own = {f"RPRIME_{name.upper()}": name for name in Settings.model_fields if name != "limits"}
    limits = {f"RPRIME_LIMITS_{name.upper()}": name for name in Limits.model_fields}
    return "\n\n".join(
        (
            "# Settings reference",
            SETTINGS,
            _fields(Settings, own),
            "## Limits",
            _fields(Limits, limits),
            "## Limits that cannot be changed",
            _fields(FixedLimits, {name: name for name in FixedLimits.model_fields}),
        )
    )


def _fields(model: type[BaseModel], names: dict[str, str]) -> str:
    fields = model.model_fields
    rows = [
        (f"`{shown}`", _default(fields[name].default), literal(fields[name].description or ""))
        for shown, name in names.items()
    ]
    return table(("variable" if "RPRIME" in rows[0][0] else "limit", "default", "meaning"), rows)


def _default(value: object) -> str:
    if value in (None, PydanticUndefined, "", ()) or isinstance(value, Path):
        return ""
    return f"`{int(value) if isinstance(value, bool) else value}`"


def problems() -> str:
    """Return every kind of problem."""
    parts = ["# Problems", PROBLEMS]
    for code, kind in KINDS.items():
        parts += [
            f"## {code}",
            f"**{kind.status} {literal(kind.title)}.** {literal(kind.meaning)}",
            f"What to do: {literal(kind.cure)}",
            f"> {literal(kind.example or f'{kind.title}.')}",
        ]
    return "\n\n".join(parts) + "\n"


# Markdown


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a table, or nothing without rows."""
    if not rows:
        return ""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "&#124;") for cell in line) + " |" for line in lines
    )


def literal(text: str) -> str:
    """Return text in which only backticks mean something to Markdown."""
    parts = _CODE.split(text)
    return "".join(
        part if i % 2 else re.sub(r"[<\[*_]", r"\\\g<0>", part) for i, part in enumerate(parts)
    )
