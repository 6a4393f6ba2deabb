"""The documentation as pages, from files in the package: nothing comes from another host."""

from html import escape
from pathlib import Path

from fastapi import APIRouter
from starlette.responses import FileResponse, HTMLResponse

from rprime.problems.kinds import KINDS, PAGE, Kind

STATIC = Path(__file__).parent.parent / "static"

router = APIRouter(include_in_schema=False)

# Swagger UI and Redoc write styles into the page; Redoc searches in a worker made from a blob.
_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self' data:; connect-src 'self'; worker-src blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {"Content-Security-Policy": _CSP}


@router.get("/docs")
async def swagger_ui() -> FileResponse:
    """Show the operations with forms to try them."""
    return FileResponse(STATIC / "docs.html", headers=_HEADERS)


@router.get("/redoc")
async def redoc() -> FileResponse:
    """Show the operations as a text to read."""
    return FileResponse(STATIC / "redoc.html", headers=_HEADERS)


@router.get(PAGE)
async def problems() -> HTMLResponse:
    """Explain every kind of problem; the ``type`` of a problem refers to this page."""
    entries = "\n".join(map(_entry, KINDS.values()))
    return HTMLResponse(_PROBLEMS.format(entries=entries), headers=_HEADERS)


@router.get("/favicon.ico")
async def favicon() -> FileResponse:
    """Give the icon to browsers that ask for it on their own."""
    return FileResponse(STATIC / "favicon.svg", media_type="image/svg+xml")


def _entry(kind: Kind) -> str:
    return (
        f'<section id="{kind.code}"><h2><code>{kind.code}</code> {escape(kind.title)} '
        f"<small>{kind.status}</small></h2><p>{escape(kind.meaning)}</p>"
        f"<p><strong>What to do:</strong> {escape(kind.mend)}</p></section>"
    )


_PROBLEMS = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Problems - rprime</title>
<link rel="icon" href="../static/favicon.svg">
<link rel="stylesheet" href="../static/page.css">
</head>
<body>
<main>
<h1>Problems</h1>
<p>An answer that is an error has the media type <code>application/problem+json</code>
(<cite>RFC 9457</cite>). Its <code>code</code> is one of these. A failed gate is no error: it is
data in an answer with status 200 or 201.</p>
{entries}
</main>
</body>
</html>
"""
