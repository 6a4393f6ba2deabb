"""The pages in a real browser: all can use them, nothing leaves the host, no name is code."""

import hashlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import httpx
import numpy as np
import orjson
import pytest
from playwright.sync_api import Page, Route, expect

from rprime.application.reproduction import printed_table
from rprime.core.catalog import INDICES
from rprime.core.intervals.methods import INTERVALS
from rprime.report.view import formula
from tests.dashboard.browser import WIDTHS, Visitor
from tests.forked_command import program

CLASSES = ("<script>alert(1)</script>", "שלום", "=cmd()")
MATRIX = "\n".join(
    ("\t".join(("", *CLASSES)), *(f"{name}\t5\t{i}\t{1 + i}" for i, name in enumerate(CLASSES)))
)
EVALUATOR = "/ui/evaluate"
PAGES = {
    "evaluator": EVALUATOR,
    "evaluation": "/ui/evaluations/{kept}",
    "indices": "/ui/indices",
    "index": "/ui/indices/r_prime",
    "reproduced": "/ui/reproduced",
    "problem": "/ui/evaluations/none",
    "unknown": "/nope",
    "document": "/docs/gates.md",
    "problems": "/docs/problems",
}
OPEN = "(all) => all.forEach((one) => { one.open = true; one.hidden = false; })"
MISSING = "Failed to load resource: the server responded with a status of 404"
EXPECTED = {"problem": MISSING, "unknown": MISSING}


@pytest.fixture(scope="module")
def kept(server: str) -> str:
    """Keep the worse of two models of the paper, judged against the better one."""
    labels, worse = printed_table("table8_cifar10_before")
    _, better = printed_table("table8_cifar10_after")
    gates = {"rules": [{"index": "recall", "classes": "all", "max_drop": 0.02}]}
    body = {
        "labels": labels,
        "confusion_matrix": worse.cells.counts.tolist(),
        "baseline": {"labels": labels, "confusion_matrix": better.cells.counts.tolist()},
        "gates": gates,
        "project": "pages",
        "model": "cifar",
        "version": "1",
    }
    answer = httpx.post(f"{server}/v1/evaluate", content=orjson.dumps(body), headers=JSON)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize("name", PAGES)
def test_everybody_can_use_a_page(server: str, visit: Visitor, kept: str, name: str) -> None:
    seen = visit(server + PAGES[name].format(kept=kept))
    for width in WIDTHS:
        seen.page.set_viewport_size({"width": width, "height": 900})
        assert seen.overflow() == 0
        # In every state: also with all that can be opened.
        seen.page.locator("details").evaluate_all(OPEN)
        assert seen.overflow() == 0
    seen.page.set_viewport_size({"width": WIDTHS[0], "height": 900})
    seen.shoot(name)
    # axe looks at every element, also at those that it leaves out.
    seen.page.evaluate(
        "document.querySelectorAll('.entry:nth-child(n+9)').forEach((one) => one.remove())"
    )
    assert seen.violations(forced=name == "evaluation") == []
    # The browser says so itself wherever a page answers 404.
    seen.complaints[:] = [c for c in seen.complaints if not c.startswith(EXPECTED.get(name, "-"))]


@pytest.mark.parametrize(
    ("path", "kilobytes"), [(EVALUATOR, 60), ("/ui/indices", 40), ("/nope", 20)]
)
def test_a_page_with_all_that_it_loads_is_light(
    server: str, visit: Visitor, path: str, kilobytes: int
) -> None:
    seen = visit(server + path)
    sizes = seen.page.evaluate(
        "performance.getEntries().map((entry) => entry.transferSize || 0).reduce((a, b) => a + b)"
    )
    assert 1000 < sizes <= 1000 * kilobytes
    seen.complaints[:] = [c for c in seen.complaints if not c.startswith(MISSING)]


@pytest.mark.parametrize(
    ("path", "section"),
    [
        ("/docs", "[aria-labelledby=catalog]"),
        pytest.param("/docs/schemas", "[aria-labelledby=AliasEntry]", marks=pytest.mark.slow),
    ],
    ids=["operations", "schemas"],
)
def test_everybody_can_use_the_reference_of_the_api(
    server: str, visit: Visitor, path: str, section: str
) -> None:
    seen = visit(f"{server}{path}")
    assert seen.overflow() == 0
    seen.page.locator("details").evaluate_all(OPEN)
    for width in WIDTHS:
        seen.page.set_viewport_size({"width": width, "height": 900})
        assert seen.overflow() == 0
    # One section of each is like the others, and axe takes a minute for all.
    assert seen.violations(section) == []


def test_an_operation_is_found_with_and_without_a_script(
    client: httpx.Client, server: str, visit: Visitor
) -> None:
    page = visit(f"{server}/docs?q=nowhere").page
    shown = page.locator(".operation:visible")
    expect(shown).to_have_count(0)
    page.get_by_role("searchbox").fill("lint post")
    expect(shown).to_have_count(1)
    expect(shown).to_contain_text("/v1/gates/lint")
    shown.locator("summary").first.click()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    shown.get_by_role("button", name="Copy").first.click()
    expect(shown.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith(f"curl {server}/v1/gates/lint \\\n")
    listed = client.get("/docs", params={"q": "LINT post"}).text
    of_shown = r'<details class="operation" data-entry="[^"]*"><summary>.*?<code>([^<]+)'
    assert re.findall(of_shown, listed) == ["/v1/gates/lint"]


def test_a_link_to_an_operation_opens_it(server: str, visit: Visitor) -> None:
    page = visit(f"{server}/docs#putAlias").page
    expect(page.get_by_text("which state of the alias it expects")).to_be_in_viewport()


@pytest.mark.parametrize("path", ["/docs", "/docs/problems", "/docs/gates.md"])
def test_a_page_of_the_api_says_where_the_reader_is(client: httpx.Client, path: str) -> None:
    page = client.get(path, headers={"Accept": "text/html"}).text
    assert re.search(r'docs" aria-current="page">API<', page)
    assert "`" not in re.sub(r"<pre.*?</pre>", "", page, flags=re.DOTALL)


def test_an_address_of_the_api_is_not_answered_with_a_page(client: httpx.Client) -> None:
    for path, accept in (("/nope", "*/*"), ("/v1/indices/overall/nope", "text/html")):
        answer = client.get(path, headers={"Accept": accept})
        assert answer.headers["content-type"] == "application/problem+json", path


def test_what_is_pasted_becomes_a_report_and_its_names_stay_text(
    server: str, visit: Visitor
) -> None:
    page = visit(server + EVALUATOR).page
    page.get_by_label("Confusion matrix").fill(MATRIX)
    report = page.locator("[data-report]")
    expect(report.locator(".classes tbody th")).to_have_text(list(CLASSES))
    expect(report.locator("script:not([type='application/json'])")).to_have_count(0)
    expect(page.locator(".cost h3")).to_contain_text("\u2192")


def test_a_report_follows_the_options(server: str, visit: Visitor) -> None:
    page = visit(server + EVALUATOR).page
    first = page.locator(".tile .value").first
    expect(first).to_have_text("0.9806")
    page.get_by_label("Confidence").select_option("0.99")
    expect(page.locator("[data-report]")).to_contain_text("99 % interval")
    page.get_by_label("Rows are").select_option("rows_are_predicted")
    expect(page.locator(".classes tbody tr").first.locator("td").first).to_have_text("977")


def test_the_evaluator_shows_the_indices_that_are_chosen(server: str, visit: Visitor) -> None:
    page = visit(server + EVALUATOR).page
    expect(page.locator("#all")).to_have_count(0)
    page.get_by_label("Indices", exact=True).select_option("All indices")
    expect(page.locator("[data-report] #all")).to_be_visible()
    expect(page).to_have_url(f"{server}{EVALUATOR}?family=all")
    shared = visit(page.url).page
    expect(shared.locator("[data-report] #all")).to_be_visible()


def test_every_index_of_a_stored_evaluation_is_one_link_away(
    server: str, visit: Visitor, kept: str
) -> None:
    page = visit(f"{server}/ui/evaluations/{kept}?order=recall").page
    families = page.get_by_role("navigation", name="Families of indices")
    expect(families.locator("b")).to_have_text("Summary")
    families.get_by_role("link", name="All indices").click()
    expect(page).to_have_url(f"{server}/ui/evaluations/{kept}?family=all&order=recall#overall")
    expect(families.locator("b")).to_have_text("All indices")
    report = httpx.get(f"{server}/v1/evaluations/{kept}?family=all").json()
    expect(page.locator("#all + details tbody tr")).to_have_count(len(report["overall"]))
    indices = next(iter(report["per_class"].values()))["indices"]
    # The name, the items and a column for each index.
    expect(page.locator("table.classes thead th")).to_have_count(2 + len(indices))
    export = page.locator("details.export")
    export.locator("summary").click()
    markdown = export.get_by_role("link", name="Markdown", exact=True).get_attribute("href")
    assert markdown is not None
    assert markdown.endswith("report.md?family=all")
    families.get_by_role("link", name="Agreement").click()
    expect(page.locator(".tiles")).to_contain_text("Aickin")


def test_no_page_shows_an_unknown_family(client: httpx.Client, kept: str) -> None:
    answer = client.get(f"/ui/evaluations/{kept}?family=alll")
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/family"


def test_a_mistake_is_told_with_its_place(server: str, visit: Visitor) -> None:
    seen = visit(server + EVALUATOR)
    text = seen.page.get_by_label("Confusion matrix")
    text.fill("1\t2\n3\tx")
    alert = seen.page.get_by_role("alert")
    expect(alert).to_contain_text("Matrix, row 2, column 2: ")
    expect(text).to_have_attribute("aria-invalid", "true")
    assert seen.violations() == []
    text.fill("1\t2\n3\t4")
    expect(alert).to_be_hidden()
    # The browser notes every answer that is a problem.
    seen.complaints[:] = [c for c in seen.complaints if "status of 422" not in c]


def test_a_file_of_predictions_is_evaluated(server: str, visit: Visitor) -> None:
    page = visit(server + EVALUATOR).page
    content = b"y_true,y_pred\ncat,cat\ncat,dog\ndog,dog\n"
    upload = {"name": "predictions.csv", "mimeType": "text/csv", "buffer": content}
    page.get_by_label("Predictions or a matrix").set_input_files(upload)  # type: ignore[arg-type] # a FilePayload
    classes = page.locator(".classes tbody th")
    expect(classes).to_have_text(["cat", "dog"])
    page.get_by_label("Confidence").select_option("0.99")
    expect(page.locator("[data-report]")).to_contain_text("99 % interval")
    expect(classes).to_have_text(["cat", "dog"])


def drop(page: Page, name: str, content: bytes) -> None:
    upload = {"name": name, "mimeType": "application/octet-stream", "buffer": content}
    page.get_by_label("Predictions or a matrix").set_input_files(upload)  # type: ignore[arg-type] # a FilePayload


def test_text_and_report_are_of_the_same_evidence(server: str, visit: Visitor) -> None:
    page = visit(server + EVALUATOR).page
    text = page.get_by_label("Confusion matrix")
    drop(page, "scores.csv", b"y_true,y_pred\ncat,cat\ncat,dog\ndog,dog\n")
    expect(page.locator(".classes tbody th")).to_have_text(["cat", "dog"])
    expect(text).to_have_value("")
    expect(text).to_have_attribute("placeholder", "The report below is about scores.csv.")


def test_the_reader_says_which_columns_hold_the_classes(server: str, visit: Visitor) -> None:
    seen = visit(server + EVALUATOR)
    text = b'id;guess;truth\n1;"a, cat";"a, cat"\n2;dog;"a, cat"\n3;dog;dog\n'
    drop(seen.page, "guesses.csv", text)
    alert = seen.page.get_by_role("alert")
    expect(alert).to_contain_text("Which columns of guesses.csv hold the classes?")
    expect(alert.get_by_label("True class")).to_have_value("truth")
    expect(alert.get_by_label("Predicted class")).to_have_value("guess")
    # Nothing else is new in the page.
    assert seen.violations("#problem") == []
    seen.page.get_by_role("button", name="Use these columns").click()
    expect(seen.page.locator(".classes tbody th")).to_have_text(["a, cat", "dog"])
    # One of the two cats was called a dog.
    expect(seen.page.locator(".classes tbody tr").first.locator("td").first).to_have_text("2")
    expect(alert).to_be_hidden()


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("map.png", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "This is an image"),
        ("model.bin", b"abc\x00\x01\x02", "This is a binary file"),
        (
            "report.txt",
            b"              precision    recall  f1-score   support\n\n  a  1.0  1.0  1.0  3\n",
            "This is a classification report",
        ),
    ],
)
def test_what_is_no_matrix_is_recognised(
    server: str, visit: Visitor, name: str, content: bytes, told: str
) -> None:
    page = visit(server + EVALUATOR).page
    text = page.get_by_label("Confusion matrix")
    before = text.input_value()
    drop(page, name, content)
    expect(page.get_by_role("alert")).to_contain_text(told)
    expect(text).to_have_value(before)


def test_a_new_file_takes_back_what_was_said_of_the_one_before(server: str, visit: Visitor) -> None:
    page = visit(server + EVALUATOR).page
    held: list[Route] = []
    page.route("**/ui/evaluate?*", lambda route: held.append(route))  # noqa: PLW0108 (it sets an attribute of it)
    alert, status = page.get_by_role("alert"), page.get_by_role("status")
    drop(page, "map.png", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
    expect(alert).to_contain_text("This is an image")
    # At once, before the service answers.
    drop(page, "pairs.csv", b"y_true,y_pred\ncat,cat\ncat,dog\ndog,dog\n")
    expect(status).to_have_text("Evaluating…")
    expect(alert).to_be_hidden()
    # No later answer for the file before takes back what is said of this one.
    drop(page, "map.png", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
    expect(alert).to_contain_text("This is an image")
    expect(status).to_have_text("")
    page.unroute("**/ui/evaluate?*")
    drop(page, "pairs.csv", b"y_true,y_pred\ncat,cat\ncat,dog\ndog,dog\n")
    expect(alert).to_be_hidden()
    expect(page.locator(".classes tbody th")).to_have_text(["cat", "dog"])
    assert len(held) == 1


def test_an_empty_field_is_no_error(server: str, visit: Visitor) -> None:
    seen = visit(server + EVALUATOR)
    page = seen.page
    page.get_by_label("Confusion matrix").fill("")
    expect(page.get_by_role("status")).to_have_text("Paste a matrix to evaluate it.")
    expect(page.get_by_placeholder("Paste a matrix to evaluate it.")).to_be_visible()
    expect(page.get_by_role("alert")).to_be_hidden()
    # No report of another text stays below.
    expect(page.locator(".classes")).to_have_count(0)
    page.get_by_label("Confusion matrix").fill("1 x")
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_role("alert")).not_to_contain_text("below")
    seen.complaints.clear()  # the answer is 422
    page.get_by_label("Confusion matrix").fill("5 1\n2 7")
    expect(page.locator(".classes tbody tr")).to_have_count(2)


def test_the_address_has_the_options(server: str, visit: Visitor) -> None:
    page = visit(server + EVALUATOR).page
    page.get_by_label("Confidence").select_option("0.99")
    page.get_by_label("Rows are").select_option("rows_are_predicted")
    expect(page).to_have_url(f"{server}{EVALUATOR}?confidence=0.99&axis=rows_are_predicted")
    shared = visit(page.url).page
    expect(shared.get_by_label("Confidence")).to_have_value("0.99")
    expect(shared.locator("[data-report]")).to_contain_text("99 % interval")
    page.get_by_label("Confidence").select_option("0.95")
    page.get_by_label("Rows are").select_option("rows_are_true")
    expect(page).to_have_url(f"{server}{EVALUATOR}")


def test_the_lines_for_a_terminal_and_a_program_give_the_report(
    server: str, visit: Visitor, tmp_path: Path
) -> None:
    page = visit(server + EVALUATOR).page
    page.get_by_label("Confusion matrix").fill("\tcat's\tdog\ncat's\t5\t1\ndog\t2\t7")
    expect(page.locator(".classes tbody th")).to_have_text(["cat's", "dog"])
    page.get_by_text("Use this in a terminal").click()
    lines = {
        name: page.get_by_role("group", name=name, exact=True).inner_text()
        for name in ("curl", "Command", "Python")
    }
    programs = program(os.environ).parent
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    for name in ("curl", "Command"):
        done = subprocess.run(
            ["/bin/sh", "-c", lines[name]],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            check=True,
        )
        report = orjson.loads(done.stdout)
        assert report["overall"]["accuracy"]["value"] == 0.8, name
        assert list(report["per_class"]) == ["cat's", "dog"], name
    done = subprocess.run(
        [sys.executable, "-c", lines["Python"]], capture_output=True, check=True, cwd=tmp_path
    )
    assert b"0.8" in done.stdout


def test_hundreds_of_pasted_classes_are_sorted_searched_and_paged(
    server: str, visit: Visitor
) -> None:
    page = visit(server + EVALUATOR).page
    draw = np.random.default_rng(3)
    right = draw.permutation(300) + 100
    rows = np.diag(right) + np.eye(300, k=1, dtype=int)
    lines = [f"c{i}\t" + "\t".join(map(str, row)) for i, row in enumerate(rows.tolist())]
    names = "\t".join(f"c{i}" for i in range(300))
    pasted = "\n".join([f"\t{names}", *lines])
    # By `fill` the browser takes long for many cells.
    page.get_by_label("Confusion matrix").evaluate(
        "(field, text) => { field.value = text; field.dispatchEvent(new Event('input')); }", pasted
    )
    headings = page.locator(".classes tbody th")
    expect(page.locator(".reading")).to_contain_text("with the names of the classes")
    expect(page.locator(".pages")).to_contain_text("Page 1 of 25")
    page.get_by_role("link", name="Items", exact=False).first.press("Enter")
    most = [f"c{i}" for i in np.argsort(-rows.sum(axis=1), kind="stable")[:12]]
    expect(headings).to_have_text(most)
    expect(page.locator("[aria-sort] .sort")).to_be_focused()
    assert page.url.endswith("?order=support")
    page.get_by_role("link", name="Next").click()
    expect(page.locator(".pages")).to_contain_text("Page 2 of 25")
    page.get_by_label("Class name contains").fill("C29")
    page.get_by_role("button", name="Search").click()
    expect(headings).to_have_count(11)
    assert page.evaluate("document.querySelectorAll('*').length") < 3_000


def test_what_the_charts_show_is_in_the_address(server: str, visit: Visitor, kept: str) -> None:
    page = visit(f"{server}/ui/evaluations/{kept}").page
    page.get_by_role("link", name="Share of row").click()
    heat = page.get_by_role("application")
    heat.focus()
    page.keyboard.press("ArrowRight")
    told = page.locator(".cost h3").inner_text()
    shared = visit(page.url).page
    expect(shared.get_by_role("link", name="Share of row")).to_have_attribute(
        "aria-current", "true"
    )
    expect(shared.locator(".cost h3")).to_have_text(told)


def test_the_evaluator_keeps_nothing(client: httpx.Client) -> None:
    body = orjson.dumps({"confusion_matrix": [[1, 2], [3, 4]], "project": "secret"})
    answer = client.post("/ui/evaluate", content=body, headers={"Content-Type": "text/plain"})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/project"
    assert "secret" not in client.get("/v1/projects").text


def test_the_evaluator_says_what_the_rows_are_and_refuses_a_contradiction(
    client: httpx.Client,
) -> None:
    text, headers = (
        "Predicted,a,b,All\na,50,10,60\nb,3,46,49\nAll,53,56,109",
        {"Content-Type": "text/plain"},
    )
    answer = client.post("/ui/evaluate", content=text, headers=headers)
    assert "rows are predicted classes, as the names of the axes say." in answer.text
    assert "hold totals and were left out." in answer.text
    query = {"request": '{"axis": "rows_are_true"}'}
    refused = client.post("/ui/evaluate", content=text, headers=headers, params=query)
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "/axis"


def test_the_keyboard_reaches_everything(server: str, visit: Visitor) -> None:
    page = visit(server + EVALUATOR).page
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    heat = page.get_by_role("application")
    heat.focus()
    expect(page.locator(".cost h3")).to_have_text("4 \u2192 9")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".cost h3")).to_have_text("4 \u2192 8")
    expect(page.locator(".cost")).to_contain_text("2 items")
    term = page.locator(".tile a").first
    term.focus()
    definition = page.get_by_role("tooltip")
    expect(definition).to_contain_text("1 minus (wrong + spurious predictions)")
    covered, form = definition.bounding_box(), page.locator("form.evaluator").bounding_box()
    assert covered is not None
    assert form is not None
    assert covered["y"] > form["y"] + form["height"]
    page.keyboard.press("Escape")
    expect(definition).to_be_hidden()


def test_the_reader_chooses_the_colours_for_good(server: str, visit: Visitor) -> None:
    page = visit(server + EVALUATOR).page
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.get_by_role("button", name="Switch to dark colours").press("Enter")
    dark = page.evaluate(ground)
    assert dark != light
    page.goto(f"{server}/ui/indices")
    assert page.evaluate(ground) == dark


def test_paper_is_light_whatever_the_reader_chose(server: str, visit: Visitor, kept: str) -> None:
    page = visit(f"{server}/ui/evaluations/{kept}", scheme="dark").page
    empty = page.locator("svg.figure path[data-name=empty]").first
    page.emulate_media(media="print")
    assert page.pdf(format="A4").startswith(b"%PDF")
    # Most cells have no items: they are nearly white on paper, and nearly black on the screen.
    channels = re.findall(r"[\d.]+", empty.evaluate("one => getComputedStyle(one).fill"))
    assert min(float(channel) for channel in channels[:3]) > 0.8
    assert page.evaluate("document.documentElement.dataset.theme ?? null") is None


def test_the_page_of_an_index_begins_on_the_first_sheet(server: str, visit: Visitor) -> None:
    paper = visit(f"{server}/ui/indices/kappa").page.pdf(format="A4")
    assert len(re.findall(rb"/Type\s*/Page\b", paper)) == 2


def test_the_catalog_is_searched_while_typing(server: str, visit: Visitor) -> None:
    page = visit(f"{server}/ui/indices").page
    names = page.locator("[data-entry]:visible h2")
    # No entry has the word "averaged": it is left out, as nothing fits otherwise.
    page.get_by_role("searchbox").fill("micro-averaged F1 score")
    expect(names.filter(has_text="Micro F1")).to_have_count(1)
    page.get_by_role("searchbox").fill("nonsense score")
    expect(page.locator("[data-found]")).to_have_text("Nothing fits: try fewer words.")
    page.get_by_role("searchbox").fill("cohen 1960")
    expect(names).to_have_text(["Cohen's kappa", "Largest attainable kappa"])
    names.first.get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Cohen's kappa")
    expect(page.get_by_text("Wilson on the effective number of items")).to_be_visible()


def test_an_index_is_shown_on_a_small_table(server: str, visit: Visitor) -> None:
    page = visit(f"{server}/ui/indices/f1").page
    # 2 x 45 / (50 + 51), 2 x 22 / (30 + 31), 2 x 15 / (20 + 18)
    for value in ("0.8911", "0.7213", "0.7895"):
        assert value in page.locator(".example").first.inner_text()
    descriptions = page.get_by_role("img").evaluate_all("all => all.map(one => one.ariaLabel)")
    assert [text for text in descriptions if "predicted as B. A from 0.8911 to 0.0000" in text]
    fraction, words = (page.locator(f".index {what}").first for what in ("math", ".formula + *"))
    above, below = fraction.bounding_box(), words.bounding_box()
    assert above
    assert below
    assert above["y"] + above["height"] <= below["y"]
    assert "Informedness: F1 moves with" in page.inner_text("main")
    page.get_by_role("link", name="Informedness", exact=True).click()
    assert "F1: F1 moves with" in page.inner_text("main")


def test_every_index_has_a_page(client: httpx.Client) -> None:
    keys = sorted({index.key for index in INDICES})
    for key in keys:
        page = client.get(f"/ui/indices/{key}")
        assert page.status_code == 200, key
        drawn = re.findall(r'data-name="curve" d="([^"]*)"', page.text)
        assert bool(drawn) == ('class="example"' in page.text), key
        assert all(re.fullmatch(r"M[-\d. L]+", path) for path in drawn), key


def test_a_thousand_classes_stay_usable(client: httpx.Client, server: str, visit: Visitor) -> None:
    rng = np.random.default_rng(0)
    cells = [[i, i, 50] for i in range(1000)]
    cells += [[int(i), int(j), 1] for i, j in rng.integers(0, 1000, (9000, 2)) if i != j]
    body = {"labels": [f"c{i}" for i in range(1000)], "cells": cells, "project": "pages"}
    content = orjson.dumps(body)
    kept = client.post("/v1/evaluate", content=content, headers=JSON).json()["id"]
    start = time.monotonic()
    page = visit(f"{server}/ui/evaluations/{kept}").page
    lead = page.locator("[aria-labelledby=confusion] .lead")
    expect(lead).to_contain_text("the 40 of 1,000 classes")
    # It takes one second; other work on the machine must not fail it.
    assert time.monotonic() - start < 10
    rows = page.locator(".classes tbody tr")
    expect(rows).to_have_count(12)
    nodes = page.evaluate("document.querySelectorAll('*').length")
    size = len(client.get(f"/ui/evaluations/{kept}").content)
    assert 500 < nodes < 3_000
    assert 10_000 < size < 200_000
    # The map has no table of numbers beside it, but a legend.
    legend = page.locator("[aria-labelledby=confusion] .keys")
    expect(legend).to_contain_text("wrong: the largest share is darkest")
    page.get_by_label("Class name contains").fill("C99")
    page.get_by_role("button", name="Search").click()
    expect(rows).to_have_count(11)


def test_a_comparison_of_a_thousand_classes_is_light(
    client: httpx.Client, server: str, visit: Visitor
) -> None:
    rng = np.random.default_rng(1)
    kept: list[str] = []
    rules = [{"index": "recall", "classes": "all", "max_drop": 0.3}]
    for gates in (None, {"rules": rules}):
        right = rng.binomial(20, 0.9, 1000).tolist()
        cells = [[i, i, n] for i, n in enumerate(right)]
        cells += [[i, (7 * i + 3) % 999, 20 - n] for i, n in enumerate(right) if n < 20]
        body = {"labels": [f"c{i}" for i in range(1000)], "cells": cells, "project": "pages"}
        if gates:
            body |= {"gates": gates, "baseline": {"evaluation": kept[0]}}
        kept.append(
            client.post("/v1/evaluate", content=orjson.dumps(body), headers=JSON).json()["id"]
        )
    where = f"{server}/ui/compare?candidate={kept[1]}&baseline={kept[0]}"
    page = visit(where).page
    expect(page.locator(".changes tbody tr")).to_have_count(12)
    assert 500 < page.evaluate("document.querySelectorAll('*').length") < 3_000
    assert 10_000 < len(client.get(where).content) < 200_000


def test_the_table_of_classes_is_sorted_searched_and_paged_without_a_script(
    client: httpx.Client,
) -> None:
    draw = np.random.default_rng(1)
    matrix = np.diag(draw.integers(20, 90, 100)) + draw.integers(0, 3, (100, 100))
    body = {
        "labels": [f"c{i}" for i in range(100)],
        "confusion_matrix": matrix.tolist(),
        "project": "pages",
    }
    report = client.post("/v1/evaluate", content=orjson.dumps(body), headers=JSON).json()
    recall = {
        name: indices["indices"]["recall"]["value"] for name, indices in report["per_class"].items()
    }
    where = f"/ui/evaluations/{report['id']}"

    def names(query: str) -> list[str]:
        page = client.get(f"{where}?{query}").text
        return re.findall(r'<th scope="row"><bdi>(c\d+)</bdi>', page)

    worst = sorted(recall, key=lambda name: recall[name])
    assert [recall[name] for name in names("order=recall")] == [recall[name] for name in worst[:12]]
    best = [recall[name] for name in names("order=-recall&page=1")]
    assert best == [recall[name] for name in worst[:-13:-1]]
    pages = [name for page in range(1, 10) for name in names(f"order=labels&page={page}")]
    assert pages == body["labels"]
    assert names("order=labels&name=C1") == ["c1", *(f"c{i}" for i in range(10, 20))]
    assert names("name=none") == []
    assert 'aria-sort="ascending"' in client.get(f"{where}?order=recall").text
    assert client.get(f"{where}?page=0").status_code == 422


def test_nothing_in_a_page_may_run_but_the_script_of_the_package(client: httpx.Client) -> None:
    answer = client.get(EVALUATOR)
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "style-src 'self';" in policy
    assert "unsafe" not in policy
    assert " style=" not in answer.text


def test_files_are_kept_by_browsers_as_long_as_they_stay_the_same(client: httpx.Client) -> None:
    for link in _links(client.get(EVALUATOR).text):
        answer = client.get(link)
        assert answer.status_code == 200
        if "?v=" in link:
            assert "immutable" in answer.headers["cache-control"]
            assert "immutable" not in client.get(link.partition("?")[0]).headers["cache-control"]


def _links(text: str) -> Iterator[str]:
    for part in text.split("./")[1:]:
        link = part.partition('"')[0]
        if "static/" in link:
            yield f"/{link}"


def test_every_interval_of_the_catalog_has_words() -> None:
    declared = {index.interval for index in INDICES} - {None}
    # Those of indices that declare none are resampled on request.
    assert declared | {"bootstrap"} == INTERVALS.keys()


def test_every_formula_of_the_catalog_was_built() -> None:
    missing = [i.key for i in INDICES if not formula(i.tex).startswith("<math")]
    assert missing == [], "npm ci && npm run build in service/rprime/dashboard/script"


def test_the_script_was_built_from_its_sources() -> None:
    room = files("rprime.dashboard")
    sources = sorted(room.joinpath("script/src").iterdir(), key=lambda path: path.name)
    digest = hashlib.sha256()
    for path in (*sources, room.joinpath("script/package-lock.json")):
        digest.update(path.read_bytes())
    for script in ("dashboard.js", "theme.js"):
        head = room.joinpath("static", script).read_text()[:300]
        assert digest.hexdigest() in head, (
            "npm ci && npm run build in service/rprime/dashboard/script"
        )
