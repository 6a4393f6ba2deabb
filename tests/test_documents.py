"""The documentation tells the truth: links lead on, commands run, tables follow from the code."""

import ast
import re
import runpy
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest
import typer

from rprime.cli import app
from rprime.commands.exit_status import Status
from rprime.commands.mappings import read_mapping
from rprime.core.catalog import INDICES
from rprime.core.comparison.difference import METHODS
from rprime.core.gates.kinds import EFFECT_CHOICES, POLICIES, RULE_KINDS, VERDICTS
from rprime.core.gates.rules import mistakes
from rprime.core.index import REASONS
from rprime.core.intervals.methods import METHODS as INTERVAL_METHODS
from rprime.core.intervals.methods import interval_plan
from rprime.core.intervals.plan import Bounds, Setting
from rprime.core.options import Options
from rprime.core.selection import select
from rprime.core.warnings import CHECKS, SCORE_CHECKS
from rprime.dashboard.documentation import DOCUMENTS, rendered
from rprime.routes.operations import FixedLimits
from rprime.schemas.gate import Gates
from rprime.schemas.request import MatrixOptions
from rprime.settings import Limits, Settings
from tests.examples.recipes import EXAMPLES, run
from tests.test_guides import GUIDES

ROOT = EXAMPLES.parent
SERVICE = "http://127.0.0.1:8000"
PAGES = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")}
README = (ROOT / "README.md").read_text(encoding="utf-8")
DEVELOPMENT = {
    name: (ROOT / name).read_text(encoding="utf-8")
    for name in ("ARCHITECTURE.md", "CONTRIBUTING.md")
}
TEXTS = {"README.md": README} | DEVELOPMENT | {f"docs/{name}": text for name, text in PAGES.items()}
SOURCE = re.compile(r"\bdocs/[\w-]+\.md(?:#[\w-]+)?")


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def code(text: str) -> list[str]:
    """Commands, in blocks and within a line."""
    commands = [block for language in ("sh", "console") for block in blocks(text, language)]
    rest = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    lines = "\n".join(commands).replace("\\\n", " ").splitlines()
    return lines + re.findall(r"`([^`\n]+)`", rest)


def anchors(text: str) -> set[str]:
    return set(re.findall(r'id="([^"]+)"', rendered(text)))


# Links and sources


@pytest.mark.parametrize("place", TEXTS)
def test_every_link_leads_to_a_file_and_an_anchor(place: str) -> None:
    for link in re.findall(r"\]\(([^)]+)\)", TEXTS[place]):
        name, _, anchor = link.partition("#")
        target = (ROOT / place).parent / name if name else ROOT / place
        assert target.is_file(), link
        # The service shows these pages alone.
        assert "/" not in place or target.parent == ROOT / "docs", link
        assert not anchor or anchor in anchors(target.read_text(encoding="utf-8")), link


def test_every_page_is_in_the_contents_and_in_the_readme() -> None:
    for name in PAGES.keys() - {"index.md"}:
        assert f"]({name})" in PAGES["index.md"]
        assert f"](docs/{name})" in README


def sources() -> set[str]:
    """Every page of the documentation that the code names, with its anchor."""
    files = (ROOT / "service" / "rprime").rglob("*.py")
    return {s for path in files for s in SOURCE.findall(path.read_text(encoding="utf-8"))}


def test_every_source_in_the_code_is_a_page_with_this_anchor() -> None:
    assert len(sources()) > 10
    for source in sources():
        name, _, anchor = source.partition("#")
        assert not anchor or anchor in anchors(TEXTS[name]), source


def test_every_warning_names_a_page_and_stands_in_its_table() -> None:
    for entry in (*CHECKS, *SCORE_CHECKS):
        assert SOURCE.fullmatch(entry.docs), entry.code
        assert f"| `{entry.code}` |" in TEXTS["docs/indices.md"]


# The pages in the service and in the package


@pytest.mark.parametrize("name", PAGES)
def test_the_service_shows_every_page_with_its_anchors(client: httpx.Client, name: str) -> None:
    answer = client.get(f"/docs/{name}")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    assert "script-src 'self';" in answer.headers["content-security-policy"]
    assert anchors(PAGES[name]) <= set(re.findall(r'id="([^"]+)"', answer.text))
    assert "<script" not in answer.text.partition("<main")[2]


def test_the_docs_of_a_warning_are_a_path_of_the_service(client: httpx.Client) -> None:
    body = {"confusion_matrix": [[40, 0], [0, 0]], "labels": ["cat", "dog"]}
    found = client.post("/evaluate", json=body).json()["warnings"]
    assert found
    for warning in found:
        path, anchor = warning["docs"].split("#")
        assert f'id="{anchor}"' in client.get(f"/{path}").text


def test_a_page_of_the_service_links_to_the_source_of_a_warning(client: httpx.Client) -> None:
    table = {"confusion_matrix": [[40, 0], [0, 0]], "labels": ["cat", "dog"]}
    kept = client.post("/evaluate", json=table | {"project": "documents"}).json()["id"]
    page = client.get(f"/ui/evaluations/{kept}")
    links = set(re.findall(r'href="([^"]*docs/[^"]+\.md[^"]*)"', page.text))
    assert links
    for link in links:
        assert client.get(str(page.url.join(link))).status_code == 200


@pytest.mark.parametrize("path", ["none.md", "..%2FREADME.md", "%2e%2e%2FREADME.md", "index"])
def test_the_service_shows_no_other_file(client: httpx.Client, path: str) -> None:
    assert client.get(f"/docs/{path}").status_code == 404


@pytest.mark.slow
def test_a_wheel_has_every_page(tmp_path: Path) -> None:
    built = run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path, cwd=ROOT)
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert {f"rprime/docs/{name}" for name in PAGES} <= set(archive.namelist())
    assert DOCUMENTS == ROOT / "docs"


# What the tables say


def test_the_table_of_indices_follows_from_the_catalog(
    rprime: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    made = rprime("indices", "--markdown").stdout
    assert f"<!-- indices:begin -->\n{made}<!-- indices:end -->" in PAGES["indices.md"]


def test_the_number_of_indices_is_that_of_the_catalog() -> None:
    assert f"rprime has {len(INDICES)} of them" in PAGES["indices.md"]
    assert f"{len(INDICES)} indices" in README


def test_every_warning_and_every_reason_is_explained() -> None:
    for name in [entry.code for entry in (*CHECKS, *SCORE_CHECKS)] + [r for r in REASONS if r]:
        assert re.search(rf"^\|.*`{name}`.*\|$", PAGES["indices.md"], re.MULTILINE), name


def warnings_of_the_code() -> Iterator[str]:
    """Yield the codes of warnings outside the core, which are written where they arise."""
    for path in (ROOT / "service" / "rprime").rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and call.args:
                name, first = ast.unparse(call.func), call.args[0]
                if name in {"Warning", "_warning"} and isinstance(first, ast.Constant):
                    yield str(first.value)


def test_every_warning_outside_the_core_is_on_a_page() -> None:
    codes = set(warnings_of_the_code())
    assert len(codes) > 30
    assert not [code for code in codes if not any(f"`{code}`" in page for page in PAGES.values())]


def test_every_name_in_the_column_interval_is_explained() -> None:
    for name in {entry.interval for entry in INDICES} - {None}:
        assert re.search(rf"^\|.*`{name}`.*\|", PAGES["indices.md"], re.MULTILINE), name


def test_every_method_is_explained() -> None:
    reported = {name for method in INTERVAL_METHODS for name in method.reported}
    for name in (reported | set(METHODS)) - {""}:
        assert re.search(rf"^\|.*`{name}`.*\|$", PAGES["statistics.md"], re.MULTILINE), name


def test_every_index_without_an_interval_is_listed() -> None:
    text = PAGES["statistics.md"]
    listed = text[text.index('<a id="no-interval">') :].partition("There is no interval")[0]
    named = set(re.findall(r"`(\w+)`", listed))
    options = Options(families=("all",))
    selection, setting = select(options, scored=True), Setting()
    methods = interval_plan(selection, setting, Bounds(2))
    parts = ((methods.per_class, selection.computed), (methods.overall, selection.overall))
    for part, entries in parts:
        for name, entry in zip(part.names, entries, strict=True):
            if not name:
                base = re.sub(r"^(macro|weighted|micro)_", "", entry.key)
                assert {entry.key, base} & named, entry.key


def test_every_limit_policy_verdict_and_effect_of_a_rule_is_explained() -> None:
    verdicts = [verdict.name for verdict in VERDICTS.values()]
    for name in (*RULE_KINDS, *POLICIES, *verdicts, *EFFECT_CHOICES):
        assert re.search(rf"^\|.*`{name}`.*\|$", PAGES["gates.md"], re.MULTILINE), name
    for kind in RULE_KINDS:
        row = rf"^\| `(each|average)` \|.*`{kind}`"
        assert re.search(row, PAGES["gates.md"], re.MULTILINE), f"{kind}: in the table of policies"


def test_the_gate_of_the_gates_page_is_one(tmp_path: Path) -> None:
    parts = blocks(PAGES["gates.md"], "yaml")
    assert len(parts) == 3
    file = tmp_path / "gates.yaml"
    file.write_text("\n".join(parts), encoding="utf-8")
    gates = Gates.model_validate(read_mapping(file, "gates")).core()
    assert not list(mistakes(gates))


def test_every_setting_is_documented() -> None:
    for name in Settings.model_fields:
        if name != "limits":
            assert f"RPRIME_{name.upper()}" in PAGES["operations.md"], name


@pytest.mark.parametrize("name", ["http-api.md", "operations.md"])
def test_the_tables_of_routes_and_limits_follow_from_the_code(name: str) -> None:
    written = runpy.run_path(str(ROOT / "docs" / "site" / "tables.py"))["written"]
    assert ":begin -->" in PAGES[name]
    assert written(PAGES[name]) == PAGES[name], "run: sh .ci/venv python docs/site/tables.py"


def test_every_limit_is_documented() -> None:
    for name in Limits.model_fields | FixedLimits.model_fields:
        assert f"| `{name}` |" in PAGES["operations.md"]


def test_every_option_of_a_request_is_documented() -> None:
    for name in MatrixOptions.model_fields:
        assert re.search(rf"^\|.*`{name}`.*\|$", PAGES["http-api.md"], re.MULTILINE), name


def test_every_route_is_named(client: httpx.Client) -> None:
    for path in client.get("/openapi.json").json()["paths"]:
        assert path in PAGES["http-api.md"], path


def test_every_exit_status_is_documented() -> None:
    for status in Status:
        assert f"\n| {status.value} | " in PAGES["cli.md"]


# Commands


def options_of(command: Any) -> set[str]:
    return {name for parameter in command.params for name in (*parameter.opts, "--help")}


def uses(text: str) -> Iterator[list[str]]:
    """Every use of the command, as words from its name to the end of the command."""
    for line in code(text):
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|;&()")
        lexer.whitespace_split = True
        words = list(lexer)
        for place, word in enumerate(words):
            if word == "rprime":
                rest = words[place + 1 :]
                ends = [i for i, w in enumerate(rest) if set(w) <= set("|;&()")]
                yield rest[: ends[0]] if ends else rest


@pytest.mark.parametrize("place", TEXTS)
def test_every_command_and_option_exists(place: str) -> None:
    for words in uses(TEXTS[place]):
        command: Any = typer.main.get_command(app)
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        assert not hasattr(command, "commands") or not words or words[0][0] in "-C", words
        options = {word for word in words if re.match(r"--?[a-z]", word)}
        assert options <= options_of(command), words


@pytest.mark.parametrize(
    "place", ["docs/coverage.md", "docs/performance.md", "docs/reliability.md"]
)
def test_every_figure_names_a_program_that_is_there(place: str) -> None:
    named = [line for line in code(TEXTS[place]) if re.search(r"\btests/", line)]
    assert named
    for line in named:
        (path,) = re.findall(r"tests/[\w/]+\.py", line)
        program = (ROOT / path).read_text(encoding="utf-8")
        for option in re.findall(r"(?<= )--[\w-]+", line):
            assert f'"{option}"' in program, line
        for variable in re.findall(r"RPRIME_TEST_\w+", line):
            assert variable in program, line


# English

REFUSED = re.compile(
    r"\b(albeit|aforementioned|amongst|betwixt|dearer|dearest|forthwith|foregoing|hence|"
    r"henceforth|hereby|herein|heretofore|hitherto|kin|lest|mend(?:s|ed|ing)?|notwithstanding|"
    r"ought|shall|thence|thereby|therefrom|therein|thereof|thereupon|thrice|upon|utmost|viz|"
    r"whence|whereas|whereby|wherefore|wherein|whereof|whereupon|whilst|whoever|whomever|"
    r"whosoever|whatsoever|withal)\b",
    re.IGNORECASE,
)
"""Words that a reader of English at level B2 seldom meets, or that stand for a simpler word."""


def refused(text: str) -> list[str]:
    """Return the refused words of a text; none is allowed, since no title of a paper has one."""
    return REFUSED.findall(text)


def described(document: Any) -> Iterator[str]:
    """Yield the texts of the OpenAPI document that people read."""
    if isinstance(document, dict):
        for name, value in document.items():
            if name in {"description", "summary", "title"} and isinstance(value, str):
                yield value
            yield from described(value)
    elif isinstance(document, list):
        for value in document:
            yield from described(value)


DECISIONS = {
    f"docs/decisions/{path.name}": path.read_text(encoding="utf-8")
    for path in (ROOT / "docs" / "decisions").glob("*.md")
}
SECURITY = (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def test_every_page_uses_common_words() -> None:
    pages = TEXTS | DECISIONS | {"SECURITY.md": SECURITY}
    found = {place: refused(text) for place, text in pages.items()}
    assert not {place: words for place, words in found.items() if words}


def test_every_description_of_the_contract_uses_common_words(client: httpx.Client) -> None:
    texts = described(client.get("/openapi.json").json())
    assert not [text for text in texts if refused(text)]


def strings() -> Iterator[tuple[str, str]]:
    """Yield every text of the code, messages of problems and warnings among them."""
    package = ROOT / "service" / "rprime"
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield f"{path.name}:{node.lineno}", node.value
    for path in package.rglob("*.html"):
        yield path.name, path.read_text(encoding="utf-8")


def test_every_message_and_docstring_uses_common_words() -> None:
    assert not [(place, text) for place, text in strings() if refused(text)]


def words(text: str) -> int:
    """Count the words of a text: no generated table, no block of code, nothing without a letter."""
    made = r"<!-- ([\w-]+):begin -->.*?<!-- \1:end -->|^```.*?^```"
    written = re.sub(made, "", text, flags=re.DOTALL | re.MULTILINE)
    return sum(any(letter.isalpha() for letter in word) for word in written.split())


def test_all_pages_together_have_at_most_35000_words() -> None:
    assert sum(map(words, PAGES.values())) <= 35_000


# What developers read


@pytest.mark.parametrize("place", DEVELOPMENT)
def test_every_file_and_folder_exists(place: str) -> None:
    paths = re.findall(r"`((?:[\w.-]+/)+[\w.-]*|[\w-]+\.(?:py|md|toml))`", DEVELOPMENT[place])
    paths += re.findall(r"\b(?:tests|\.ci)/[\w./-]*\w", DEVELOPMENT[place])
    assert len(paths) > 10
    package = ROOT / "service" / "rprime"
    for path in paths:
        roots = (ROOT, package, package / "dashboard" / "templates")
        assert any((root / path).exists() for root in roots), path


def test_every_name_of_contributing_is_in_its_file() -> None:
    named = r"((?:`@?\w+`(?: or | and |, )?)+)(?: and a `\w+`)?(?: to `\w+`)? in `([\w/]+\.py)`"
    mentions = re.findall(named, DEVELOPMENT["CONTRIBUTING.md"])
    assert len(mentions) > 5
    for names, path in mentions:
        file = next(f for f in (ROOT / path, ROOT / "service" / "rprime" / path) if f.exists())
        for name in re.findall(r"\w+", names):
            assert re.search(rf"\b{name}\b", file.read_text(encoding="utf-8")), (name, path)


def test_every_program_of_contributing_can_be_run() -> None:
    lines = code(DEVELOPMENT["CONTRIBUTING.md"])
    programs = {line.split()[2] for line in lines if line.startswith("sh .ci/venv ")} - {"NAME"}
    assert {"pytest", "ruff", "mypy", "lint-imports", "rprime"} <= programs
    for name in programs:
        assert Path(sys.executable).with_name(name).is_file(), name
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for marker in re.findall(r"not (\w+)", " ".join(line for line in lines if " -m " in line)):
        assert f'"{marker}: ' in project, marker
    assert "--full" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_every_test_of_contributing_exists() -> None:
    files = {path: path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")}
    for name in re.findall(r"`(test_\w+)`", DEVELOPMENT["CONTRIBUTING.md"]):
        assert any(f"def {name}(" in text for text in files.values()), name


@pytest.fixture(scope="module")
def service(serve: Callable[..., AbstractContextManager[httpx.Client]]) -> Iterator[str]:
    with serve() as client:
        yield str(client.base_url).rstrip("/")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder like a checkout, with the files of predictions."""
    folder = tmp_path_factory.mktemp("checkout")
    (folder / "examples").symlink_to(EXAMPLES)
    done = run("python", "examples/train_digits.py", "--write", ".", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_block_of_the_performance_page_runs(tmp_path: Path) -> None:
    (block,) = blocks(PAGES["performance.md"], "sh")
    done = run("sh", "-ec", block.replace("sh .ci/venv ", ""), cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "place",
    [
        place
        for place, text in TEXTS.items()
        # tests/test_guides.py runs the guides, whose blocks build on each other.
        if "```sh" in text and Path(place).stem not in {*GUIDES, "performance"}
    ],
)
def test_every_block_of_commands_runs(place: str, service: str, folder: Path) -> None:
    for block in blocks(TEXTS[place], "sh"):
        # The service runs already, and so do the tests.
        if block in ("sh .ci/venv rprime serve\n", "sh .ci/venv pytest\n"):
            continue
        # .ci/venv runs a program of the environment, whose programs are in PATH here.
        script = block.replace(SERVICE, service).replace("sh .ci/venv ", "")
        done = run("sh", "-ec", script, cwd=folder)
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
        assert '"request_id"' not in done.stdout  # curl ends with 0 for a problem, too


def test_every_command_of_the_table_of_statuses_ends_as_told(service: str, folder: Path) -> None:
    (part,) = re.findall(r"^\| ends with \|(.*?)\n\n", PAGES["cli.md"], re.DOTALL | re.MULTILINE)
    rows = re.findall(r"^\| (\d+) \| `([^`]+)` \|", part, re.MULTILINE)
    assert {int(status) for status, _ in rows} == set(Status) - {Status.DEFECT, Status.UNREAD}
    for status, command in rows:
        done = run("sh", "-c", command.replace(SERVICE, service), cwd=folder)
        assert done.returncode == int(status), f"{command}\n{done.stdout}\n{done.stderr}"


def test_the_gate_of_the_http_page_fails_as_told(client: httpx.Client) -> None:
    headers = {"Content-Type": "application/json"}
    body = (EXAMPLES / "gate.json").read_bytes()
    answer = client.post("/evaluate", content=body, headers=headers)
    assert answer.headers["Evaluation-Verdict"] == "fail"
    failed = [r["class"] for r in answer.json()["gate"]["results"] if r["verdict"] == "fail"]
    assert f"which classes ({', '.join(failed)})" in PAGES["http-api.md"]


def test_the_python_of_the_python_page_runs(
    service: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RPRIME_SERVER", service)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in blocks(PAGES["python.md"], "python"):
        exec(block, names)  # noqa: S102 (the text of the page is what is tested)
    assert names["catalog"].model_dump()["items"]
