"""Hooks of MkDocs: what the documentation site has beside the pages of `docs`."""

import hashlib
import re
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any

import reference
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from rprime.dashboard.documentation import STATIC
from rprime.settings import GUIDE

DOCUMENTS = Path(__file__).parent.parent
SCRIPTS = "assets/javascripts/inline"
_INLINE = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_PLOTS = re.compile(r"<!-- plots (class|overall): ([\w ]+) -->")
_LINK = re.compile(r"\]\(([\w-]+\.md)\)")

scripts: dict[str, str] = {}
"""The scripts that stood in pages, by the names of their files."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Write the site to where the service looks for it, unless the command names a folder."""
    if Path(config.site_dir) == DOCUMENTS.parent / "service" / "rprime" / "guide":
        config.site_dir = str(GUIDE)  # elsewhere, where the package is installed
    config.nav = navigation((DOCUMENTS / "index.md").read_text(encoding="utf-8"))
    return config


def navigation(contents: str) -> list[Any]:
    """Return the sections of the contents, each with the pages that its table links to."""
    _, *sections = re.split(r"^## ", contents, flags=re.MULTILINE)
    nav: list[Any] = ["index.md"]
    seen = {"index.md"}
    for section in sections:
        title, _, rest = section.partition("\n")
        pages = [name for name in dict.fromkeys(_LINK.findall(rest)) if name not in seen]
        seen.update(pages)
        if pages:
            nav.append({title: pages})
    nav[-1]["Reference"] += reference.pages()
    return nav


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that follow from the code, the style of the service and its logo."""
    made = reference.pages() | reference.index_pages() | {"assets/guide.css": style()}
    for path, content in made.items():
        files.append(File.generated(config, path, content=content))
    logo = STATIC / "favicon.svg"
    files.append(File.generated(config, "assets/logo.svg", abs_src_path=str(logo)))
    return files


def style() -> str:
    """Return the style of the service, for what looks the same here."""
    report = package_files("rprime.report").joinpath("templates")
    pages = package_files("rprime.dashboard").joinpath("static", "pages.css")
    parts = (report.joinpath("components.css"), pages)
    rules = "\n".join(part.read_text(encoding="utf-8") for part in parts)
    tokens = report.joinpath("tokens.css").read_text(encoding="utf-8")
    own = Path(__file__).with_name("guide.css").read_text(encoding="utf-8")
    return f"{tokens}\n.rprime {{\n{rules}\n}}\n{own}"


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Link the tables of indices, and draw what a comment asks for."""
    if page.file.src_path == "indices.md":
        markdown = reference.with_links(markdown)
    return _PLOTS.sub(lambda found: reference.plots(found[1], found[2].split()), markdown)


def on_post_page(output: str, page: Page, **_: object) -> str:
    """Move scripts out of the page: the service forbids browsers to run them there."""
    root = "../" * page.url.count("/")
    return moved(output, root)


def on_post_template(output_content: str, template_name: str, **_: object) -> str:
    """Do the same with the page for what is not there."""
    return moved(output_content, "") if template_name.endswith(".html") else output_content


def moved(html: str, root: str) -> str:
    """Return a page whose scripts are files of their own, and remember these."""

    def move(found: re.Match[str]) -> str:
        name = f"{hashlib.sha256(found[1].encode()).hexdigest()[:16]}.js"
        scripts[name] = found[1]
        return f'<script src="{root}{SCRIPTS}/{name}"></script>'

    # The search of the theme is a dialog without a name.
    return _INLINE.sub(move, html).replace('role="dialog"', 'role="dialog" aria-label="Search"')


def on_post_build(config: MkDocsConfig) -> None:
    """Write the scripts that were moved."""
    folder = Path(config.site_dir, SCRIPTS)
    folder.mkdir(parents=True, exist_ok=True)
    for name, script in scripts.items():
        (folder / name).write_text(script, encoding="utf-8")
