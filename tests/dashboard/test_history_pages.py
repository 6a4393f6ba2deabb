"""The pages of the history in a real browser: all can use them, no name is code, all is kept."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from playwright.sync_api import Browser, expect

from rprime.dashboard import project_pages
from rprime.report.text import decimal, signed
from rprime.store import open_store
from tests.dashboard.browser import HEIGHT, PAPER, WIDTHS, Visitor
from tests.history_service import ServeApp, keep, keeping, labels, matrix, stored

OPEN = "(all) => all.forEach((one) => { one.open = true; })"
HOSTILE = "<img src=x onerror=alert(1)>\"'&amp;"
PASSING = [{"index": "accuracy", "min_value": 0.5}]
FAILING = [{"index": "recall", "classes": "all", "max_drop": 0.001}]


@pytest.fixture(scope="module")
def history(
    serve_app: ServeApp, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    """Serve a history with everything that can be shown."""
    with keeping(serve_app, tmp_path_factory.mktemp("pages")) as client:
        for number in range(8):
            request = labels(number, 0.15 - 0.012 * number, version=f"1.{number}", model="lenet")
            del request["indices"]
            keep(client, request | {"branch": "main", "project": "digits"})
        members = {"project": "digits", "model": "org/mlp", "indices": None, "branch": HOSTILE}
        for number in (6, 9, 4):
            keep(
                client,
                matrix(
                    number,
                    **members,
                    version=f"v{number}",
                    tags=[HOSTILE, "nightly"],
                    labels=["cat", HOSTILE, "eel"],
                    gates={"rules": PASSING},
                ),
            )
        keep(
            client,
            labels(
                3,
                0.3,
                version="2.0",
                model="lenet",
                project="digits",
                indices=None,
                baseline={"version": "1.7"},
                gates={"rules": FAILING},
            ),
        )
        scores = np.random.default_rng(1).dirichlet(np.ones(3), 400).tolist()
        scored = labels(project="scored", y_pred=None, indices=None, curves=True)
        keep(client, scored | {"labels": ["cat", "dog", "eel"], "y_score": scores})
        keep(client, matrix(2, project="pets"))
        keep(client, matrix(1, project="zoo", version="7", gates={"rules": PASSING}))
        newest = client.get("/v1/projects/digits/evaluations?version=1.6").json()["items"][0]["id"]
        answer = client.put(
            "/v1/projects/digits/aliases/champion",
            json={"evaluation": newest},
            headers={"If-None-Match": "*"},
        )
        assert answer.status_code == 201
        yield client


PAGES = {
    "projects": "/ui/projects",
    "project": "/ui/projects/digits",
    "model": "/ui/projects/digits/models/lenet",
    "class": "/ui/projects/digits/classes?model=lenet&class=cat",
    "model-with-slash": "/ui/projects/digits/models/org/mlp?index=recall&overall=kappa",
    "scores": "/ui/evaluations/{scored}",
    "compare": "/ui/compare?candidate={failing}&baseline={champion}",
    "compare-tables": "/ui/compare?candidate={better}&baseline={worse}",
}
NAMED = {
    "failing": "digits/evaluations?version=2.0",
    "champion": "digits/evaluations?version=1.6",
    "better": "digits/evaluations?version=v4",
    "worse": "digits/evaluations?version=v9",
    "scored": "scored/evaluations",
}


def address(history: httpx.Client, page: str) -> str:
    """Return the address of a page, with the ids that stand in it."""

    def newest(query: str) -> str:
        answer = history.get(f"/v1/projects/{query}").json()
        identifier: str = answer["items"][0]["id"]
        return identifier

    return f"{history.base_url}{PAGES[page].format(**{k: newest(q) for k, q in NAMED.items()})}"


@pytest.mark.parametrize("name", PAGES)
def test_everybody_can_use_a_page(history: httpx.Client, visit: Visitor, name: str) -> None:
    seen = visit(address(history, name))
    assert seen.violations() == []
    seen.shoot(name)
    for width in WIDTHS:
        seen.page.set_viewport_size({"width": width, "height": 900})
        assert seen.overflow() == 0
        seen.page.locator("details").evaluate_all(OPEN)
        assert seen.overflow() == 0


@pytest.mark.parametrize("width", WIDTHS)
def test_the_bars_hide_no_heading(history: httpx.Client, visit: Visitor, width: int) -> None:
    page = visit(address(history, "compare"), width=width).page
    for name in ("changes", "overall", "classes"):
        page.locator(f".sections a[href='#{name}']").click()
        heading, bar = (
            page.locator(f"#{name}").bounding_box(),
            page.locator(".sections").bounding_box(),
        )
        assert heading
        assert bar
        assert bar["y"] + bar["height"] <= heading["y"] < bar["y"] + 3 * bar["height"]


WIDER = """
[...document.querySelectorAll('main .card *')].filter((one) => {
  const { right, width } = one.getBoundingClientRect();
  const card = one.closest('.card').getBoundingClientRect();
  return width > 0 && !one.closest('.hidden') && right > card.right + 1;
}).map((one) => one.outerHTML.slice(0, 200))
"""


def test_long_names_fit_a_phone_and_a_sheet(
    serve_app: ServeApp, tmp_path: Path, visit: Visitor
) -> None:
    long: dict[str, Any] = {
        "project": "products-with-the-long-name-of-a-catalogue",
        "model": "org/team/efficientnet-b4-finetuned-with-a-long-name",
        "branch": "feature/with-the-long-name-of-what-it-is-about",
        "labels": [f"appliance/kitchen/Dunstabzugshaubenfilterabdeckung-{i}" for i in range(3)],
    }
    with keeping(serve_app, tmp_path) as client:
        worse: dict[str, Any] = {
            "baseline": {"version": "2024.1.0-rc.1+build.202401"},
            "gates": {"rules": FAILING},
        }
        sides = [
            keep(
                client,
                matrix(errors, **long, **more, version=f"2024.{at}.0-rc.{at}+build.20240{at}"),
            )
            for at, (errors, more) in enumerate([(2, dict[str, Any]()), (9, worse)], 1)
        ]
        baseline, candidate = (side["id"] for side in sides)
        project = f"/ui/projects/{long['project']}"
        for path in (
            project,
            f"{project}/models/{long['model']}",
            f"/ui/evaluations/{candidate}",
            f"/ui/compare?candidate={candidate}&baseline={baseline}",
        ):
            seen = visit(f"{client.base_url}{path}", width=WIDTHS[1])
            assert seen.overflow() == 0
            seen.page.set_viewport_size({"width": PAPER, "height": HEIGHT})
            seen.page.emulate_media(media="print")
            assert seen.page.evaluate(WIDER) == []
            assert not seen.page.locator(".choose").first.is_visible()
        compared = visit(f"{client.base_url}/ui/compare?candidate={candidate}&baseline={baseline}")
        loss = compared.page.locator(".changes .zero.worse").first
        assert loss.evaluate("one => getComputedStyle(one, '::first-line').fontWeight") == "600"


# Lists


def versions(page: httpx.Response) -> list[str]:
    """Read the versions of a list, in its order."""
    assert page.status_code == 200, page.text
    link = r'scope="row"><a href="[^"]*/ui/evaluations/\w+">'
    model = r'(?:<bdi class="of-model">[^<]*</bdi> )?'
    return re.findall(f"{link}{model}<bdi>([^<]*)<", page.text)


def test_a_list_is_filtered_and_ordered_without_a_script(history: httpx.Client) -> None:
    where = "/ui/projects/digits"
    mlp = history.get(where, params={"model": "org/mlp", "branch": "", "verdict": "pass"})
    assert versions(mlp) == ["v4", "v9", "v6"]
    best = history.get(where, params={"order": "-r_prime", "model": "org/mlp"})
    assert versions(best) == ["v4", "v6", "v9"]
    assert 'aria-sort="descending"' in best.text
    assert versions(history.get(where, params={"tag": HOSTILE})) == ["v4", "v9", "v6"]
    assert versions(history.get(where, params={"since": "2999-01-01"})) == []
    oldest = versions(history.get(where, params={"order": "date"}))
    assert oldest == versions(history.get(where))[::-1]


@pytest.mark.parametrize("order", ["-date", "kappa"])
def test_the_parts_of_a_list_are_linked(
    history: httpx.Client, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    where = f"/ui/projects/digits?order={order}"
    whole = versions(history.get(where))
    monkeypatch.setattr(project_pages, "PAGE_SIZE", 5)
    page, listed = history.get(where), list[str]()
    while True:
        listed += versions(page)
        link = re.search(r'rel="next" href="([^"]+)"', page.text)
        if link is None:
            break
        page = history.get(str(page.url.join(unescape(link[1]))))
    assert listed == whole
    assert len(listed) == 12


def test_a_project_and_a_model_lead_on(history: httpx.Client, visit: Visitor) -> None:
    seen = visit(f"{history.base_url}/ui/projects").page
    seen.get_by_role("link", name="digits").first.click()
    seen.get_by_label("Model", exact=True).select_option("org/mlp")
    seen.get_by_role("button", name="Apply").click()
    assert seen.locator("tbody tr").count() == 3
    seen.get_by_label("Candidate: org/mlp v6").check()
    seen.get_by_label("Baseline: org/mlp v9").check()
    seen.get_by_role("button", name="Compare the chosen two").click()
    assert seen.get_by_role("heading", level=1).inner_text() == "Candidate against baseline"
    assert seen.locator(".sides .which").all_inner_texts() == ["org/mlp v6", "org/mlp v9"]
    assert HOSTILE in seen.locator(".changes").inner_text()
    seen.get_by_role("button", name="Swap").click()
    assert seen.locator(".sides .which").all_inner_texts() == ["org/mlp v9", "org/mlp v6"]


def test_a_list_compares_the_newest_of_a_model_with_its_champion(
    history: httpx.Client, visit: Visitor
) -> None:
    """Not its two newest rows, which may be of two models."""
    page = visit(f"{history.base_url}/ui/projects/digits").page
    page.get_by_role("button", name="Compare the chosen two").click()
    assert page.locator(".sides .which").all_inner_texts() == ["lenet 2.0", "lenet 1.6"]
    assert "Compared with lenet 1.6, champion" in page.locator(".verdict").inner_text()


@pytest.mark.parametrize("by", ["evaluation", "version", "alias", "branch"])
def test_a_baseline_has_its_name_and_a_link(
    serve_app: ServeApp, tmp_path: Path, visit: Visitor, by: str
) -> None:
    """However it was named: neither an id nor a version alone says what it is."""
    commit = "0123456789abcdef0123456789abcdef01234567"
    with keeping(serve_app, tmp_path) as client:
        one = {"project": "digits", "model": "svc", "branch": "main", "indices": None}
        identifier = keep(client, matrix(3, **one, version="8"))["id"]
        where = "/v1/projects/digits/aliases/champion"
        client.put(where, json={"evaluation": identifier}, headers={"If-None-Match": "*"})
        names = {"evaluation": identifier, "version": "8", "alias": "champion", "branch": "main"}
        baseline = {by: names[by]}
        newer = matrix(9, **one, version="9", commit=commit, baseline=baseline)
        newest = keep(client, newer)["id"]
        page = visit(f"{client.base_url}/ui/evaluations/{newest}", width=390).page
        opening = page.locator(".verdict")
        link = opening.get_by_role("link", name="svc 8, champion")
        assert str(link.get_attribute("href")).endswith(f"/ui/evaluations/{identifier}")
        assert identifier not in opening.inner_text()
        assert "svc 8, champion" in client.get(f"/v1/evaluations/{newest}/report.md").text
        written = client.post("/v1/evaluate", json=newer, headers={"Accept": "text/markdown"})
        assert "svc 8" in written.text
        # Of the commit its beginning, as version control shows it, so that no page is too wide.
        assert opening.get_by_text(commit[:10], exact=True).get_attribute("title") == commit
        link.click()
        assert page.url.endswith(identifier)


def test_a_long_list_is_soon_there(serve_app: ServeApp, tmp_path: Path, visit: Visitor) -> None:
    """`tests/bench/pages.py` measures ten times as many; here is much slack."""
    store = open_store(f"sqlite:///{tmp_path}/rprime.db")
    store.put_many([store.pack(new) for new in stored(1_000)]).result()
    store.close()
    with keeping(serve_app, tmp_path) as client:
        for order in ("-date", "kappa"):
            page = visit(f"{client.base_url}/ui/projects/digits?order={order}").page
            assert page.locator("tbody tr").count() == 50
            ready = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"
            assert page.evaluate(ready) < 10_000


# Compare


def test_the_page_says_what_the_route_answers(history: httpx.Client) -> None:
    failing, champion = (
        history.get(f"/v1/projects/{NAMED[side]}").json()["items"][0]["id"]
        for side in ("failing", "champion")
    )
    sides = {"candidate": {"evaluation": failing}, "baseline": {"evaluation": champion}}
    answer = history.post("/v1/compare", json={**sides, "gates": {"rules": FAILING}}).json()
    page = history.get(f"/ui/compare?candidate={failing}&baseline={champion}").text
    for label, deltas in answer["comparison"]["per_class"].items():
        # What the rule is about stands first.
        shown = signed(deltas["recall"]["value"])
        assert re.search(
            rf"<bdi>{label}</bdi></a></th><td[^>]*><div>(<svg.*?</svg>)?<p>{re.escape(shown)}", page
        )
    flips = answer["comparison"]["flips"]
    assert f"<dt>From right to wrong</dt><dd>{flips['right_to_wrong']:.0f}</dd>" in page
    assert (answer["gate"]["verdict"], "Gate failed" in page) == ("fail", True)


def test_the_map_of_changes_has_the_items_of_weighted_classes(
    serve_app: ServeApp, tmp_path: Path
) -> None:
    body = {"y_true": ["a", "b", "c"] * 40, "sample_weight": [0.5, 1.5, 2] * 40, "project": "pets"}
    with keeping(serve_app, tmp_path) as client:
        old, new = (
            keep(client, {**body, "y_pred": ["a", "b", last] * 40})["id"] for last in ("c", "b")
        )
        page = client.get(f"/ui/compare?candidate={new}&baseline={old}").text
    items = re.findall(r"<text[^>]*>(40|20|60|80)</text>", page.split('id="confusion"')[1])
    assert items == ["40", "40"]


def test_both_sides_are_chosen_on_the_page(
    serve_app: ServeApp, tmp_path: Path, visit: Visitor
) -> None:
    with keeping(serve_app, tmp_path) as client:
        ids = [
            keep(client, matrix(errors, model="lenet", version=str(errors)))["id"]
            for errors in (1, 2, 3)
        ]
        page = visit(f"{client.base_url}/ui/compare?candidate={ids[2]}&baseline={ids[1]}").page
        baseline = page.get_by_label("Baseline", exact=True)
        assert baseline.locator("option").count() == len(ids)
        baseline.select_option(ids[0])
        page.get_by_role("button", name="Compare", exact=True).click()
        expect(page.locator(".sides")).to_contain_text("lenet 1")
        assert f"baseline={ids[0]}" in page.url


def test_the_classes_of_a_comparison_are_sorted_filtered_and_linked(
    serve_app: ServeApp, tmp_path: Path, visit: Visitor
) -> None:
    worse = [[90, 10, 0], [0, 100, 0], [40, 0, 60]]
    better = [[100, 0, 0], [0, 100, 0], [0, 20, 80]]
    with keeping(serve_app, tmp_path) as client:
        request: dict[str, Any] = {"labels": ["a b", "same", "c"], "project": "p", "indices": None}
        ids = [
            keep(client, matrix(**request, confusion_matrix=table, gates=gates))["id"]
            for table, gates in (
                (worse, {"rules": [{"index": "recall", "classes": "all", "max_drop": 0.05}]}),
                (better, None),
            )
        ]
        where = f"{client.base_url}/ui/compare?candidate={ids[0]}&baseline={ids[1]}"
        page = visit(where).page
        names = page.locator(".changes tbody th")
        # The rule is about recall, so the largest loss of it comes first, with the rule's limit.
        assert names.all_inner_texts() == ["c", "a b", "same"]
        heads = page.locator(".changes thead th")
        assert heads.nth(1).inner_text().startswith("Recall")
        assert heads.nth(1).get_attribute("aria-sort") == "ascending"
        first = page.locator(".changes tbody tr").first.locator("td").first
        assert first.locator(".limit").count() == 1
        label = first.get_by_role("img").get_attribute("aria-label")
        assert label is not None
        assert label.startswith("change \u22120.2000, interval")
        assert label.endswith("limit \u22120.0500")
        # The whole row of the second class is as it was, but its precision is not.
        page.get_by_role("link", name="Sort by Precision").click()
        assert names.all_inner_texts()[-1] == "same"
        page.get_by_role("link", name="Sort by Precision").click()
        assert names.all_inner_texts()[0] == "same"
        names.nth(1).get_by_role("link").click()
        row = page.locator("tr:target th")
        assert row.all_inner_texts() == names.all_inner_texts()
        # Shares of the true class: the map says where the items of `c` went.
        heat = page.locator("[aria-labelledby=confusion] svg.figure")
        written = heat.locator("text").all_text_contents()
        assert written[-6:-3] == ["+40.0", "\u221220.0", "\u221220.0"]
        assert written[-3:] == ["100", "100", "100"], "the items of each class"


def test_only_what_changed_is_shown(serve_app: ServeApp, tmp_path: Path) -> None:
    before = [[9, 1, 0, 0], [1, 9, 0, 0], [0, 0, 9, 1], [0, 0, 1, 9]]
    after = [[8, 2, 0, 0], [1, 9, 0, 0], [0, 0, 9, 1], [0, 0, 1, 9]]
    with keeping(serve_app, tmp_path) as client:
        request: dict[str, Any] = {"labels": ["a", "b", "c", "d"], "project": "p"}
        candidate, two, three = (
            keep(client, matrix(**request, version=str(at), confusion_matrix=table))["id"]
            for at, table in enumerate((after, before, before))
        )
        where = f"/ui/compare?candidate={candidate}&baseline={two}"
        classes = re.findall(r'<tr id="class-(\w)"', client.get(where).text)
        assert classes == ["a", "b"]
        assert "2 without any change are left out" in client.get(where).text
        every = re.findall(r'<tr id="class-(\w)"', client.get(f"{where}&all=true").text)
        assert sorted(every) == ["a", "b", "c", "d"]
        same = client.get(f"/ui/compare?candidate={two}&baseline={three}").text
        assert ('id="confusion"' in same, '<tr id="class-' in same) == (False, False)


def test_different_test_sets_are_not_compared_class_by_class(
    serve_app: ServeApp, tmp_path: Path
) -> None:
    with keeping(serve_app, tmp_path) as client:
        tables = {"digits": [[90, 10], [5, 95]], "wine": [[10, 20], [4, 26]]}
        request: dict[str, Any] = {"labels": ["1", "2"]}
        candidate, other = (
            keep(
                client,
                matrix(**request, project=name, confusion_matrix=table, test_set={"id": name}),
            )["id"]
            for name, table in tables.items()
        )
        page = client.get(f"/ui/compare?candidate={candidate}&baseline={other}").text
        assert "The test sets differ, so no class is compared." in page
        assert ("different test sets" in page, 'id="class-' in page) == (True, False)
        assert 'id="confusion"' not in page


def test_disjoint_classes_are_one_sentence(serve_app: ServeApp, tmp_path: Path) -> None:
    with keeping(serve_app, tmp_path) as client:
        kept = (
            matrix(project="digits", labels=["1", "2"], confusion_matrix=[[9, 1], [2, 8]]),
            matrix(project="wine", labels=["red", "white"], confusion_matrix=[[5, 1], [2, 4]]),
        )
        candidate, other = (keep(client, content)["id"] for content in kept)
        page = client.get(f"/ui/compare?candidate={candidate}&baseline={other}").text
        assert "no class has items on both sides" in page
        assert "The test sets differ, so no class is compared." in page
        assert ("Cells that changed most" in page, 'id="causes"' in page) == (False, False)
        assert ("white" in page, "spans the middle line" in page) == (False, False)


# A model


def test_a_model_has_the_values_of_the_trend(history: httpx.Client) -> None:
    query = {"index": "kappa", "model": "lenet"}
    trend = history.get("/v1/projects/digits/trend", params=query).json()["items"]
    page = history.get("/ui/projects/digits/models/lenet?overall=kappa").text
    rows = re.findall(
        r"<th role=\"rowheader\" scope=\"row\"><a href=\"[^\"]*/ui/evaluations/(\w+)\"><bdi>"
        r".*?value\"[^>]*><span>([^<]*)<",
        page,
        re.DOTALL,
    )
    assert rows == [(item["evaluation"], decimal(item["value"])) for item in reversed(trend)]
    of_cat = {**query, "index": "r_prime", "class": "cat"}
    of_class = history.get("/v1/projects/digits/trend", params=of_cat).json()["items"]
    assert f"<title>cat: {decimal(of_class[-1]['value'])} in " in page


def test_another_index_is_drawn(history: httpx.Client, visit: Visitor) -> None:
    page = visit(f"{history.base_url}/ui/projects/digits/models/lenet").page
    page.get_by_label("Overall index").select_option("mcc")
    page.get_by_role("button", name="Apply").click()
    assert page.url.endswith("?index=r_prime&overall=mcc&limit=40&spacing=versions")
    assert page.locator("#trend").inner_text().startswith("Matthews")


def target(client: httpx.Client, alias: str) -> str:
    identifier: str = client.get(f"/v1/projects/digits/aliases/{alias}").json()["evaluation"]
    return identifier


def test_a_version_is_promoted(history: httpx.Client, visit: Visitor) -> None:
    page = visit(f"{history.base_url}/ui/projects/digits/models/lenet").page
    page.get_by_label("Evaluation", exact=True).select_option(index=3)
    chosen = page.get_by_label("Evaluation", exact=True).input_value()
    before = target(history, "champion")
    assert page.get_by_label("Alias", exact=True).input_value() == ""
    for alias in ("stable", "champion"):
        page.get_by_label("Evaluation", exact=True).select_option(chosen)
        page.get_by_label("Alias", exact=True).fill(alias)
        page.get_by_role("button", name="Promote").click()
        if alias == "champion":
            # It points at something: the page asks first.
            assert "Point it to lenet" in page.get_by_role("alert").inner_text()
            assert target(history, alias) == before
            page.get_by_role("button", name="Move the alias").click()
        status = page.get_by_role("status")
        assert status.inner_text().startswith(f"{alias} now points to lenet")
        # The browser goes to the form again: the answer is there, not above the screen.
        expect(status).to_be_in_viewport()
        assert target(history, alias) == chosen
    row = page.locator(
        "section[aria-labelledby=versions] tr", has=page.locator(f'a[href$="{chosen}"]')
    )
    assert row.locator(".alias").all_inner_texts() == ["champion", "stable"]
    page.get_by_role("button", name="Undo").click()
    assert target(history, "champion") == before


def test_an_alias_is_set_back_later(history: httpx.Client, browser: Browser) -> None:
    path = "/v1/projects/digits/aliases/nightly"
    ids = [
        history.get(f"/v1/projects/digits/evaluations?version={version}").json()["items"][0]["id"]
        for version in ("1.0", "1.1")
    ]
    for headers, identifier in zip(({"If-None-Match": "*"}, {"If-Match": "*"}), ids, strict=True):
        assert history.put(path, json={"evaluation": identifier}, headers=headers).is_success
    # A form is enough: no script runs here.
    context = browser.new_context(java_script_enabled=False)
    page, stale = context.new_page(), context.new_page()
    page.goto(f"{history.base_url}/ui/projects/digits/models/lenet")
    rows = page.locator("section[aria-labelledby=aliases-over-time] tbody tr")
    of_alias = rows.filter(has=page.get_by_text("nightly", exact=True))
    [now, then] = [row.split("\n") for row in of_alias.all_inner_texts()]
    assert ("lenet 1.1" in " ".join(now), "lenet 1.0" in " ".join(then)) == (True, True)
    moment = history.get(path).json()["updated_at"][:10]
    assert " ".join(then).count(moment) == 2
    assert of_alias.get_by_role("button").all_inner_texts() == ["Set back to lenet 1.0"]
    stale.goto(page.url)
    for tab, status in (
        (page, "nightly now points to lenet 1.0 (before: lenet 1.1)."),
        (stale, ""),
    ):
        tab.get_by_role("button", name="Set back to lenet 1.0").click()
        assert target(history, "nightly") == ids[0]
        if status:
            assert tab.get_by_role("status").inner_text() == status
        else:
            assert "moved this alias meanwhile" in tab.get_by_role("alert").inner_text()
    context.close()


def test_without_a_script_the_charts_are_there(history: httpx.Client, browser: Browser) -> None:
    where = {"model": "lenet", "branch": "main"}
    newest = history.get("/v1/projects/digits/evaluations", params=where).json()["items"][0]
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    for path in (f"evaluations/{newest['id']}", "projects/digits/models/lenet?branch=main"):
        page.goto(f"{history.base_url}/ui/{path}", wait_until="networkidle")
        figures = page.locator("main svg.figure").filter(visible=True)
        assert figures.count() >= 1, path
        assert figures.evaluate_all(
            "all => all.every(one => one.getBoundingClientRect().width > 100)"
        ), path
    # A column that is empty in all rows is left out; no evaluation here names its test set.
    heads = page.locator("section[aria-labelledby=versions] th").all_inner_texts()
    assert "Branch" in heads
    assert "Test set" not in heads
    context.close()


def test_a_promotion_that_comes_too_late_is_refused(history: httpx.Client, visit: Visitor) -> None:
    seen = visit(f"{history.base_url}/ui/projects/digits/models/lenet")
    seen.page.get_by_label("Alias", exact=True).fill("champion")
    seen.page.get_by_role("button", name="Promote").click()
    assert "Point it to lenet" in seen.page.get_by_role("alert").inner_text()
    other = history.get("/v1/projects/digits/evaluations?version=1.0").json()["items"][0]["id"]
    answer = history.put(
        "/v1/projects/digits/aliases/champion",
        json={"evaluation": other},
        headers={"If-Match": "*"},
    )
    assert answer.status_code == 200
    seen.page.get_by_role("button", name="Move the alias").click()
    assert "moved this alias meanwhile" in seen.page.get_by_role("alert").inner_text()
    assert target(history, "champion") == other
    assert seen.violations() == []
    # The browser says so itself wherever a page answers 412.
    seen.complaints.clear()
    seen.page.get_by_role("button", name="Promote").click()
    seen.page.get_by_role("button", name="Move the alias").click()
    assert target(history, "champion") != other


def test_a_promotion_proves_where_it_comes_from(history: httpx.Client) -> None:
    where = "/ui/projects/digits/models/lenet"
    with httpx.Client(base_url=history.base_url) as browser:
        page = browser.get(where).text
        token = re.search(r'name="csrf_token" value="([^"]+)"', page)
        evaluation = re.search(r'<option value="([0-9a-z]{26})">', page)
        assert token is not None
        assert evaluation is not None
        form = {"alias": "proven", "evaluation": evaluation[1]}
        right = {**form, "csrf_token": token[1]}
        assert browser.post(where, data=form).status_code == 403
        evil = {"Origin": "https://evil.example"}
        assert browser.post(where, data=right, headers=evil).status_code == 403
        cookies = dict(browser.cookies)
        browser.cookies.clear()
        assert browser.post(where, data=right).status_code == 403
        assert history.get("/v1/projects/digits/aliases/proven").status_code == 404
        browser.cookies.update(cookies)
        assert browser.post(where, data={**right, "alias": "<b>"}).status_code == 422
        assert browser.post(where, data={**right, "evaluation": "x"}).status_code == 422
        assert browser.post(where, data=right).status_code == 303
        assert target(history, "proven") == evaluation[1]


def test_paper_cuts_neither_charts_nor_tables(history: httpx.Client, visit: Visitor) -> None:
    page = visit(f"{history.base_url}/ui/projects/digits/models/lenet").page
    page.emulate_media(media="print")
    page.set_viewport_size({"width": PAPER, "height": HEIGHT})
    over = (
        "all => all.map(one => one.getBoundingClientRect().right"
        " - one.closest('.card').getBoundingClientRect().right)"
    )
    assert max(page.locator("svg.figure, .stacked").evaluate_all(over)) <= 0
    # A row of the list is a row on paper, too, and nothing there is to be pressed.
    assert (
        page.locator(".stacked tbody tr").first.evaluate("one => getComputedStyle(one).display")
        == "table-row"
    )
    assert page.locator("button:visible, [aria-labelledby=promote]:visible").count() == 0


# Nothing there


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/ui/projects/nothing", 404),
        ("/ui/projects/digits?verdict=%3Cb%3Ebad", 422),
        ("/ui/projects/digits?cursor=x", 422),
        ("/ui/projects/digits?order=recall", 422),
        ("/ui/compare?candidate=x&baseline=y", 404),
        ("/ui/compare", 422),
        ("/ui/nothing", 404),
        ("/ui/projects/digits/models/nothing", 404),
        ("/ui/projects/digits/models/lenet?index=%3Cb%3Ebad", 422),
        ("/ui/projects/digits/models/lenet?limit=1", 422),
        ("/ui/evaluations/nothing?cell=x", 422),
    ],
)
def test_what_is_wrong_is_said_on_a_page(history: httpx.Client, path: str, status: int) -> None:
    page = history.get(path, headers={"Accept": "text/html,*/*;q=0.8"})
    assert page.status_code == status
    assert page.headers["content-type"].startswith("text/html")
    assert "<h1>" in page.text
    assert "<b>bad" not in page.text
    data = history.get(path)
    assert data.headers["content-type"] == "application/problem+json"


def test_a_page_speaks_of_pages_and_shows_the_way_back(history: httpx.Client) -> None:
    identifier = history.get(f"/v1/projects/{NAMED['failing']}").json()["items"][0]["id"]
    browser = {"Accept": "text/html"}
    for path in ("/nope", "/ui/evaluations/none", "/ui/projects/nothing"):
        page = history.get(path, headers=browser).text
        assert "<h1>Page not found</h1>" in page
        assert path.endswith("nothing") or "It may have been deleted, or your key" in page
        assert re.search(r'href="[^"]*ui/projects">Go to Projects</a>', page)
    same = f"/ui/compare?candidate={identifier}&baseline={identifier}"
    for path in ("/ui/compare", f"/ui/compare?candidate={identifier}", same):
        page = history.get(path, headers=browser).text
        assert "Choose a candidate and another evaluation as its baseline." in page
        assert "Field required" not in page
        assert "listed place" not in page
        assert "Go to Projects" in page


def test_a_part_or_another_population_says_which_items_the_gate_judged(
    serve_app: ServeApp, tmp_path: Path
) -> None:
    with keeping(serve_app, tmp_path) as client:
        request = labels(1, 0.1, gates={"rules": PASSING})
        length = len(request["y_true"])
        kept = keep(client, request | {"slices": {"half": ["a", "b"] * (length // 2)}})
        plain = keep(client, labels(2, 0.1))
        place = f"/ui/evaluations/{kept['id']}"
        stored_items = "about the items as stored, not about equal shares of the classes"
        for query, of_stored in (("?prevalence=uniform", True), ("?slice=half%3Da", False)):
            page = client.get(f"{place}{query}").text
            assert "The gate judged the items as stored" in page
            assert f'{place[1:]}">See the stored report</a>' in page
            assert ", not judged · rprime</title>" in page
            assert (stored_items in page) is of_stored
        assert "The gate judged" not in client.get(place).text
        ungated = client.get(f"/ui/evaluations/{plain['id']}?prevalence=uniform").text
        assert "No gate was set" in ungated
        assert "See the stored report" not in ungated


def test_an_evaluation_belongs_to_the_projects(history: httpx.Client) -> None:
    failing, champion = (
        history.get(f"/v1/projects/{NAMED[side]}").json()["items"][0]["id"]
        for side in ("failing", "champion")
    )
    compared = f"/ui/compare?candidate={failing}&baseline={champion}"
    for path in (f"/ui/evaluations/{failing}", compared, "/ui/projects"):
        current = re.findall(r'<a [^>]*aria-current="page">([^<]*)', history.get(path).text)
        assert current == ["Projects"]


def test_an_empty_history_says_how_to_fill_it(
    serve_app: ServeApp, tmp_path: Path, visit: Visitor
) -> None:
    with keeping(serve_app, tmp_path) as client:
        seen = visit(f"{client.base_url}/ui/projects")
        seen.shoot("projects-empty")
        assert "No evaluation is stored yet" in seen.page.inner_text("main")
        assert seen.violations() == []
    with keeping(serve_app, tmp_path, store="none") as client:
        page = client.get("/ui/projects", headers={"Accept": "text/html"})
        assert (page.status_code, "has no store" in page.text) == (409, True)
        start = client.get("/", follow_redirects=True)
        assert (start.url.path, "ui/projects" in start.text) == ("/ui/evaluate", False)


def test_the_example_project_has_a_version_that_fails(
    serve_app: ServeApp, tmp_path: Path, visit: Visitor
) -> None:
    with keeping(serve_app, tmp_path) as client:
        seen = visit(f"{client.base_url}/ui/projects")
        seen.page.get_by_role("button", name="Load an example project").click()
        expect(seen.page.get_by_role("link", name="digits 4")).to_be_visible()
        versions = client.get("/v1/projects/example/evaluations").json()["items"]
        assert [version["verdict"] for version in versions[:-1]] == ["fail", "pass", "pass"]


def test_the_start_shows_the_first_evaluation_by_itself(
    serve_app: ServeApp, tmp_path: Path, visit: Visitor
) -> None:
    with keeping(serve_app, tmp_path) as client:
        seen = visit(f"{client.base_url}/ui/projects")
        expect(seen.page.get_by_text("as soon as it is stored")).to_be_visible()
        keep(client, {"project": "birds", "confusion_matrix": [[50, 2], [3, 45]]})
        expect(seen.page.get_by_role("link", name="birds").first).to_be_visible(timeout=20_000)


# What happened lately


def test_the_start_shows_what_somebody_must_look_at_first(
    serve_app: ServeApp, tmp_path: Path, visit: Visitor
) -> None:
    strict = [{"index": "accuracy", "min_value": 0.99}]
    close = [{"index": "accuracy", "min_value": 0.9}]
    with keeping(serve_app, tmp_path) as client:
        assert client.get("/").headers["location"] == "ui/evaluate"
        worst = keep(client, matrix(20, project="a", model="old", gates={"rules": strict}))["id"]
        for number, errors in enumerate((2, 20, 2)):
            request = {"model": "up", "version": f"v{number}", "gates": {"rules": close}}
            keep(client, matrix(errors, project="b", indices=None, **request))
        unsure = keep(client, matrix(5, project="b", model="close", gates={"rules": close}))["id"]
        keep(client, matrix(2, project="c"))
        assert client.get("/").headers["location"] == "ui/projects"
        page = visit(f"{client.base_url}/").page
        rows = page.locator(".lately tbody tr")
        assert rows.locator("th a").all_inner_texts() == ["old", "close", "c", "up v2"]
        links = [link.get_attribute("href") for link in rows.locator("th a").all()[:2]]
        assert links == [f"../ui/evaluations/{identifier}" for identifier in (worst, unsure)]
        assert page.locator(".head .lead").inner_text() == "4 models: 1 failed, 1 inconclusive."
        line = rows.nth(3).get_by_role("img", name="R' of 3 evaluations")
        # One of the three failed, and the newest has a dot.
        paths = line.locator("path").evaluate_all("all => all.map(one => one.getAttribute('d'))")
        assert [path.count("M") for path in paths] == [1, 1, 1]
        assert paths[0].count("L") == 2
        rows.nth(3).locator(".spark a").click()
        page.locator("#trend").wait_for(state="visible")
        assert page.url.endswith("/ui/projects/b/models/up")


def test_each_heading_of_a_list_leads_both_ways(history: httpx.Client) -> None:
    page = history.get("/ui/projects/digits").text
    links = set(re.findall(r'href="(\?order=[^"]+)"', page))
    for way in list(links):
        again = history.get(f"/ui/projects/digits{unescape(way)}")
        links |= set(re.findall(r'href="(\?order=[^"]+)"', again.text))
    assert {"?order=-model", "?order=model", "?order=-verdict"} <= links
    for way in links:
        assert history.get(f"/ui/projects/digits{unescape(way)}").status_code == 200


def test_equal_shares_are_offered_only_where_they_exist(
    serve_app: ServeApp, tmp_path: Path
) -> None:
    with keeping(serve_app, tmp_path) as client:
        requests: list[dict[str, Any]] = [
            {},
            {"cell_weights": [[2] * 3] * 3},
            {"spurious": [1, 0, 1]},
        ]
        kept = [keep(client, matrix(**request))["id"] for request in requests]
        for identifier, offered in zip(kept, (True, False, False), strict=True):
            page = client.get(f"/ui/evaluations/{identifier}").text
            assert ("As if all classes were equally frequent" in page) is offered
            place = f"/ui/evaluations/{identifier}?prevalence=uniform"
            assert client.get(place).status_code == (200 if offered else 422)
            other = kept[0] if identifier != kept[0] else kept[1]
            page = client.get(f"/ui/compare?candidate={identifier}&baseline={other}").text
            assert ("all classes equally frequent" in page) is offered
            assert " · pets · rprime</title>" in page


def test_a_comparison_shows_the_same_indices_of_both(history: httpx.Client) -> None:
    summary = history.get(address(history, "compare"))
    everything = history.get(f"{address(history, 'compare')}&family=all")
    for answer in (summary, everything):
        assert answer.status_code == 200
    assert 'id="all"' not in summary.text
    table = everything.text.split('id="all"')[1].split("</table>")[0]
    rows = re.findall(r"<tr><th.*?</tr>", table.split("<tbody>")[1])
    assert len(rows) > 100
    # Every row has a change, or the reason why there is none.
    assert [row for row in rows if 'class="n change">' in row] == []
    assert "ui/indices/specificity" in everything.text


def test_a_list_shows_values_of_the_same_list_by_http(history: httpx.Client) -> None:
    newest = history.get("/v1/projects/digits/evaluations?limit=1").json()["items"][0]
    page = unescape(history.get("/ui/projects/digits").text)
    cells = re.findall(r'class="n value" data-label="[^"]*"><span>([^<†]+)', page)[:3]
    values = [newest["values"][key]["value"] for key in ("r_prime", "macro_f1", "kappa")]
    assert cells == [decimal(value) for value in values]
