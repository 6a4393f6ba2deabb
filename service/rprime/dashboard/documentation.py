"""Documentation pages, served from files in the package without any other host."""

import gzip
import os
import re
from functools import cache, lru_cache
from http import HTTPStatus
from itertools import pairwise
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response
from markdown_it import MarkdownIt
from markupsafe import Markup, escape
from starlette.datastructures import Headers
from starlette.responses import FileResponse, RedirectResponse
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from rprime.dashboard.contract_view import ORIGIN, matching, operations_of, schemas_of
from rprime.dashboard.page import POLICY, root_of, show
from rprime.dashboard.templates_environment import macros
from rprime.problems.kinds import KINDS, PAGE
from rprime.problems.problem import Problem, rooted
from rprime.routes.negotiation import COMPRESSIBLE, CompressedRoute, accepted_codings
from rprime.routes.services import get_services
from rprime.server.cost import costs

MOST_SEARCHED = 255
"""Characters of a search."""
PACKAGE = Path(__file__).parent.parent
STATIC = PACKAGE / "static"
# A wheel has its own copy; in a checkout the files are in the top folder, where GitHub shows them.
DOCUMENTS = next(
    (path for path in (PACKAGE / "docs", PACKAGE.parents[1] / "docs") if path.is_dir()), PACKAGE
)

router = APIRouter(route_class=CompressedRoute, include_in_schema=False)

_GUIDE_POLICY = POLICY.replace("form-action 'self'", "form-action 'none'; worker-src 'self'")


@router.get("/docs")
@costs("render")
def contract(request: Request) -> Response:
    """Show the operations, each with commands to try it; of a search, those that fit."""
    document, keys = request.app.contract(), get_services(request).keyring is not None
    origin = escape(str(request.base_url).rstrip("/"))
    entries = {
        name: entry.replace(ORIGIN, origin)
        for name, entry in _entries(document, root_of(request), keys=keys).items()
    }
    wanted = request.query_params.get("q", "")[:MOST_SEARCHED]
    tags = operations_of(document, keys=keys)
    content: dict[str, Any] = {"tags": tags, "entries": entries, "wanted": wanted}
    return show(request, "contract.html", "API", fitting=matching(tags, wanted), **content)


@lru_cache(maxsize=4)
def _entries(contract: bytes, root: str, *, keys: bool) -> dict[tuple[str, bool], Markup]:
    """Return each operation as the page shows it, and as it hides it, by its name."""
    operation = macros("contract_parts.html").operation
    tags = operations_of(contract, keys=keys)
    return {
        (o["id"], hidden): operation(o, root, rendered, hidden)
        for tag in tags
        for o in tag["operations"]
        for hidden in (False, True)
    }


@router.get("/docs/schemas")
@costs("render")
def schemas(request: Request) -> Response:
    """Show what bodies and answers are made of."""
    cards = _cards(request.app.contract(), root_of(request))
    return show(request, "contract.html", "Schemas", schemas=cards)


@lru_cache(maxsize=2)
def _cards(contract: bytes, root: str) -> Markup:
    schema = macros("contract_parts.html").schema
    return Markup("").join(schema(one, root) for one in schemas_of(contract))


@router.get("/openapi.json")
@costs("render")
def openapi(request: Request) -> Response:
    """Return the OpenAPI document."""
    return Response(request.app.contract(), media_type="application/json")


class CompressedFiles(StaticFiles):
    """Files that are compressed once, not for each request."""

    def file_response(
        self,
        full_path: str | os.PathLike[str],
        stat_result: os.stat_result,
        scope: Scope,
        status_code: int = 200,
    ) -> Response:
        """Answer with a file, compressed if the request accepts that."""
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers.add_vary_header("Accept-Encoding")
        kind = response.media_type or ""
        fits = kind.startswith(COMPRESSIBLE) or kind.endswith("javascript")
        if not fits or "gzip" not in accepted_codings(Headers(scope=scope)):
            return response
        headers = {name: response.headers[name] for name in ("last-modified", "vary")}
        # A strong tag is of one sequence of bytes, and these are others (RFC 9110, 8.8.1).
        headers |= {"etag": f"W/{response.headers['etag']}", "content-encoding": "gzip"}
        content = _compressed(os.fspath(full_path), stat_result.st_mtime_ns)
        return Response(content, status_code, headers, response.media_type)


@cache
def _compressed(path: str, _changed: int) -> bytes:
    return gzip.compress(Path(path).read_bytes(), mtime=0)


class Guide(CompressedFiles):
    """The built documentation site."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:  # noqa: ANN401 - handed on
        """Answer with a file of the site, which may run only its own scripts."""
        response = super().file_response(*args, **kwargs)
        response.headers["Content-Security-Policy"] = _GUIDE_POLICY
        return response


@router.get("/guide")
@router.get("/guide/")
@costs("cheap")
async def guide(request: Request) -> RedirectResponse:
    """Lead to the first page of the documentation site, where it is built."""
    if get_services(request).guide is None:
        raise Problem("not_found", "The documentation site is not built; read /docs/index.md.")
    return RedirectResponse(rooted("/guide/index.html"), HTTPStatus.SEE_OTHER)


@router.get(PAGE)
@costs("cheap")
async def problems(request: Request) -> Response:
    """Explain every kind of problem; the ``type`` of a problem refers to this page."""
    return show(request, "problems.html", "Problems", kinds=KINDS)


@router.get("/docs/{name}.md")
@costs("render")
def document(request: Request, name: str) -> Response:
    """Show a page of the documentation; the ``source`` of a warning refers to these pages."""
    text = documents().get(name)
    if text is None:
        raise Problem("not_found")
    # The first line of each page is its title.
    title = text.partition("\n")[0].removeprefix("# ")
    return show(request, "document.html", title, content=rendered(text))


@cache
def documents() -> dict[str, str]:
    """Return the Markdown of every page by its name, so that no request names a file."""
    return {path.stem: path.read_text(encoding="utf-8") for path in DOCUMENTS.glob("*.md")}


@cache
def rendered(text: str) -> Markup:
    """Return Markdown as HTML, its headings with the same anchors as on GitHub."""
    markdown = MarkdownIt("commonmark").enable("table")
    tokens = markdown.parse(text)
    for heading, inline in pairwise(tokens):
        if heading.type == "heading_open":
            heading.attrSet("id", re.sub(r"[^\w -]", "", inline.content.lower()).replace(" ", "-"))
    content = markdown.renderer.render(tokens, markdown.options, {})
    # What is wider than the page is scrolled, by the keyboard, too.
    return Markup(re.sub("<(pre|table)>", r'<\1 tabindex="0">', content))  # noqa: S704 (our own)


@router.get("/favicon.ico")
@costs("cheap")
async def favicon() -> FileResponse:
    """Return the icon that browsers request on their own."""
    return FileResponse(STATIC / "favicon.svg", media_type="image/svg+xml")
