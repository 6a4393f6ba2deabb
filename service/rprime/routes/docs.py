"""Documentation pages, served from files in the package without any other host."""

import re
from functools import cache
from html import escape
from http import HTTPStatus
from itertools import pairwise
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from markdown_it import MarkdownIt
from markdown_it.token import Token
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from rprime.problems.kinds import KINDS, PAGE, Kind
from rprime.problems.problem import Problem
from rprime.problems.root_path import rooted
from rprime.routes.compressed_route import CompressedRoute
from rprime.routes.services import get_services

PACKAGE = Path(__file__).parent.parent
STATIC = PACKAGE / "static"
# A wheel has its own copy; in a checkout the files are in the top folder, where GitHub shows them.
DOCUMENTS = next(
    (path for path in (PACKAGE / "docs", PACKAGE.parents[1] / "docs") if path.is_dir()), PACKAGE
)

router = APIRouter(route_class=CompressedRoute, include_in_schema=False)

# Swagger UI and Redoc write styles into the page; Redoc searches in a worker made from a blob.
_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self' data:; connect-src 'self'; worker-src blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_GUIDE_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_HEADERS = {"Content-Security-Policy": _CSP}


@router.get("/docs")
async def swagger_ui() -> FileResponse:
    """Show the operations with forms to try them."""
    return FileResponse(STATIC / "docs.html", headers=_HEADERS)


@router.get("/redoc")
async def redoc() -> FileResponse:
    """Show the operations as a reference text."""
    return FileResponse(STATIC / "redoc.html", headers=_HEADERS)


class Guide(StaticFiles):
    """The built documentation site."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:  # noqa: ANN401 - handed on
        """Answer with a file of the site, which may run only its own scripts."""
        response = super().file_response(*args, **kwargs)
        response.headers["Content-Security-Policy"] = _GUIDE_CSP
        return response


@router.get("/guide")
@router.get("/guide/")
async def guide(request: Request) -> RedirectResponse:
    """Lead to the first page of the documentation site, where it is built."""
    if get_services(request).guide is None:
        raise Problem("not_found", "The documentation site is not built; read /docs/index.md.")
    return RedirectResponse(rooted("/guide/index.html"), HTTPStatus.SEE_OTHER)


@router.get(PAGE)
async def problems() -> HTMLResponse:
    """Explain every kind of problem; the ``type`` of a problem refers to this page."""
    entries = "\n".join(map(_entry, KINDS.values()))
    content = _PROBLEMS.format(entries=entries)
    return HTMLResponse(_PAGE.format(title="Problems", content=content), headers=_HEADERS)


@router.get("/docs/{name}.md")
def document(name: str) -> HTMLResponse:
    """Show a page of the documentation; the ``source`` of a warning refers to these pages."""
    text = documents().get(name)
    if text is None:
        raise Problem("not_found")
    return HTMLResponse(_PAGE.format(title=name, content=rendered(text)), headers=_HEADERS)


@cache
def documents() -> dict[str, str]:
    """Return the Markdown of every page by its name, so that no request names a file."""
    return {path.stem: path.read_text(encoding="utf-8") for path in DOCUMENTS.glob("*.md")}


@cache
def rendered(text: str) -> str:
    """Return Markdown as HTML, its headings with the same anchors as on GitHub."""
    markdown = MarkdownIt("commonmark").enable("table")
    tokens = markdown.parse(text)
    for heading, inline in pairwise(tokens):
        if heading.type == "heading_open":
            heading.attrSet("id", _anchor(inline))
    return str(markdown.renderer.render(tokens, markdown.options, {}))


def _anchor(heading: Token) -> str:
    return re.sub(r"[^\w -]", "", heading.content.lower()).replace(" ", "-")


@router.get("/favicon.ico")
async def favicon() -> FileResponse:
    """Return the icon that browsers request on their own."""
    return FileResponse(STATIC / "favicon.svg", media_type="image/svg+xml")


def _entry(kind: Kind) -> str:
    return (
        f'<section id="{kind.code}"><h2><code>{kind.code}</code> {escape(kind.title)} '
        f"<small>{kind.status}</small></h2><p>{escape(kind.meaning)}</p>"
        f"<p><strong>What to do:</strong> {escape(kind.mend)}</p></section>"
    )


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} - rprime</title>
<link rel="icon" href="../static/favicon.svg">
<link rel="stylesheet" href="../static/page.css">
</head>
<body>
<main>
<nav><a href="../">rprime</a> <a href="index.md">Documentation</a></nav>
{content}
</main>
</body>
</html>
"""
_PROBLEMS = """<h1>Problems</h1>
<p>An answer that is an error has the media type <code>application/problem+json</code>
(<cite>RFC 9457</cite>). Its <code>code</code> is one of these. A failed gate is no error: it is
data in an answer with status 200 or 201.</p>
{entries}
"""
