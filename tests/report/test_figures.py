"""Figures over HTTP: real images, of what is stored, always the same, with every name as text."""

import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from rprime.auth import keys
from rprime.report.charts.fonts import code_points, installed
from tests.history_service import LABELS, Json, ServeApp, keep, keeping, matrix
from tests.report.drawings import SVG, drawing, marks, paths, size, starts, texts
from tests.report.report_subjects import HOSTILE

BIRDS = ["owl", "tit", "jay", "emu"]
ODD = ["<b>x</b>", "$a_1$", "_hidden"]


@pytest.fixture(scope="module")
def stored(serve_app: ServeApp, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Serve a project with a comparison, verdicts and odd names."""
    with keeping(serve_app, tmp_path_factory.mktemp("figures")) as client:
        rules = {"rules": [{"index": "accuracy", "min_value": 0.9}]}
        for version in (3, 8, 2, 1):
            keep(client, matrix(version, version=f"1.{version}", model="net", gates=rules))
        baseline = {"version": "1.1"}
        keep(client, matrix(2, version="2.0", model="net", baseline=baseline, indices=["r_prime"]))
        keep(client, matrix(4, project="odd", labels=ODD))
        for name, wrong in (("1.1", 1), ("2.0", 2)):
            table = [
                [100 - 3 * wrong * i if i == j else wrong * i for j in range(4)] for i in range(4)
            ]
            body = {"confusion_matrix": table, "labels": BIRDS, "project": "birds", "model": "net"}
            against = {"baseline": {"version": "1.1"}, "indices": ["r_prime"]} if wrong > 1 else {}
            keep(client, {**body, "version": name, **against})
        yield client


@pytest.fixture(scope="module")
def newest(stored: httpx.Client) -> str:
    return newest_of(stored, "pets")


def newest_of(client: httpx.Client, project: str) -> str:
    page: Json = client.get(f"/v1/projects/{project}/evaluations?limit=1").json()
    return f"/v1/evaluations/{page['items'][0]['id']}/figures"


def image(client: httpx.Client, path: str, **query: Any) -> bytes:
    response = client.get(path, params=query)
    assert response.status_code == 200, response.text
    assert response.headers["Content-Type"].startswith("image/")
    assert "script-src" not in response.headers["Content-Security-Policy"]
    return response.content


EVALUATION = ("confusion", "radar", "per_class")
HISTORY = ("trend", "lines", "boxes")
PROJECT = "/v1/projects/pets/figures"


@pytest.mark.parametrize("name", EVALUATION)
def test_the_figures_of_an_evaluation_name_its_classes(
    stored: httpx.Client, newest: str, name: str
) -> None:
    content = image(stored, f"{newest}/{name}.svg")
    assert drawing(content).tag == f"{SVG}svg"
    assert set(LABELS) <= set(texts(content))
    assert any("net 2.0" in text for text in texts(content))
    title = drawing(content).find(f"{SVG}title")
    assert title is not None
    assert "net 2.0: 300 items, 3 classes" in (title.text or "")


def test_the_confusion_matrix_has_a_cell_for_every_pair_and_its_items(
    stored: httpx.Client, newest: str
) -> None:
    content = image(stored, f"{newest}/confusion.svg")
    assert marks(content, "right") == 3
    assert marks(content, "wrong") == 6
    assert texts(content).count("96") == 3
    assert texts(content).count("2") == 6


def test_the_radar_has_the_baseline_that_was_compared_with(stored: httpx.Client) -> None:
    place = newest_of(stored, "birds")
    content = image(stored, f"{place}/radar.svg")
    assert {"net 2.0", "net 1.1", "R' by class", *BIRDS} <= set(texts(content))
    assert [marks(content, f"outline-{i}") for i in (1, 2)] == [4, 4]
    several = image(stored, f"{place}/radar.svg", index=["recall", "precision"])
    assert {"Recall", "Precision"} <= set(texts(several))
    assert "1.1" not in texts(several)


def test_three_classes_have_bars_since_each_radar_of_them_is_a_triangle(
    stored: httpx.Client, newest: str
) -> None:
    content = image(stored, f"{newest}/radar.svg")
    assert {"net 2.0", "net 1.1", "R' by class", *LABELS} <= set(texts(content))
    assert [marks(content, f"outline-{i}") for i in (1, 2, 3)] == [3, 3, 0]
    # Lengths are compared, so they begin at 0.
    assert {"0", "1"} <= set(texts(content))
    assert not any("centre" in text for text in texts(content))


def test_per_class_has_a_dot_for_each_value_and_a_whisker_for_each_interval(
    stored: httpx.Client, newest: str
) -> None:
    content = image(stored, f"{newest}/per_class.svg", index="recall")
    assert marks(content, "values") == 3
    assert marks(content, "whiskers") == 3
    assert "Recall by class" in texts(content)
    # Not compared: the evaluation was asked for R' alone.
    assert marks(image(stored, f"{newest}/per_class.svg", index="r_prime"), "baseline") == 3


def test_an_index_is_shown_that_the_evaluation_was_not_asked_for(
    stored: httpx.Client, newest: str
) -> None:
    assert "Informedness by class" in texts(
        image(stored, f"{newest}/radar.svg", index="informedness")
    )


def test_overall_indices_are_regular_polygons_beside_those_of_classes(stored: httpx.Client) -> None:
    place = newest_of(stored, "birds")
    mixed = image(stored, f"{place}/radar.svg", index=["recall", "kappa", "macro_f1"])
    assert {"Recall", "Cohen's kappa", "Macro F1"} <= set(texts(mixed))
    assert [marks(mixed, f"outline-{i}") for i in (1, 2, 3)] == [4, 4, 4]
    recall, kappa = (_corners(mixed, i) for i in (1, 2))
    # All corners are as far from the centre, which lies between the first and the third.
    centre = kappa[[0, 2]].mean(axis=0)
    assert np.ptp(np.hypot(*(kappa - centre).T)) < 0.2
    assert np.ptp(np.hypot(*(recall - centre).T)) > 1
    # Clockwise from the top, as in the pages.
    assert kappa[0][1] < centre[1]
    assert kappa[1][0] > centre[0]
    compared = image(stored, f"{place}/radar.svg", index=["r_prime", "accuracy"])
    assert {"net 2.0", "net 1.1", "Accuracy"} <= set(texts(compared))


def _corners(content: bytes, number: int) -> Any:
    """Return where the marks of an outline stand, shape (corner, 2)."""
    return np.array(starts(content, f"outline-{number}"))


def test_each_class_has_a_panel_or_a_box_beside_the_overall_indices(stored: httpx.Client) -> None:
    both = {"index": ["recall", "accuracy", "kappa"]}
    lines = image(stored, f"{PROJECT}/lines.svg", by="class", **both)
    assert [text for text in texts(lines) if text in LABELS] == LABELS
    assert texts(lines).count("Accuracy") == 3
    boxes = image(stored, f"{PROJECT}/boxes.svg", by="class", **both)
    named = [*LABELS, "Accuracy", "Cohen's kappa"]
    assert [text for text in texts(boxes) if text in named] == named
    # A dot for each of the five evaluations.
    assert marks(boxes, "classes") == 5 * 5
    assert any("Dots are values." in text for text in texts(boxes))
    for name in ("lines", "boxes"):
        words = texts(image(stored, f"{PROJECT}/{name}.svg", **both))
        assert {"Accuracy", "Cohen's kappa"} <= set(words)


def test_a_trend_of_a_class_has_the_overall_indices_beside_it(stored: httpx.Client) -> None:
    query = {"index": ["recall", "accuracy", "kappa"], "class": "dog"}
    content = image(stored, f"{PROJECT}/trend.svg", **query)
    assert [marks(content, f"course-{i}") for i in (1, 2, 3)] == [5, 5, 5]
    assert "Recall of dog beside Accuracy, Cohen's kappa" in texts(content)


def test_ten_classes_fit_as_in_the_paper_and_of_more_the_worst_are_shown(
    serve_app: ServeApp, tmp_path: Path
) -> None:
    with keeping(serve_app, tmp_path) as client:
        for k in (10, 14):
            names = [f"n{i}" for i in range(k)]
            table = [[90 - i if i == j else 1 for j in range(k)] for i in range(k)]
            for version in "12":
                body = {"confusion_matrix": table, "labels": names, "project": f"k{k}"}
                keep(client, {**body, "version": version})
            query = {"by": "class", "index": ["r_prime", "kappa"]}
            words = texts(image(client, f"/v1/projects/k{k}/figures/lines.svg", **query))
            shown = [text for text in words if text in names]
            assert shown == names[-12:]
            # One legend for all panels.
            assert words.count("Cohen's kappa") == 1
            assert any("the 12 of 14 classes" in text for text in words) == (k == 14)


@pytest.mark.parametrize("name", HISTORY)
def test_the_figures_of_a_history_name_its_versions_in_their_order(
    stored: httpx.Client, name: str
) -> None:
    content = image(stored, f"{PROJECT}/{name}.svg")
    versions = [text for text in texts(content) if re.fullmatch(r"\d\.\d", text)]
    assert versions[:5] == ["1.3", "1.8", "1.2", "1.1", "2.0"]
    assert any("pets: 5 evaluations" in text for text in texts(content))
    words = texts(image(stored, f"{PROJECT}/{name}.svg", version="1.8"))
    assert "1.8" in words
    assert "1.1" not in words


def test_the_trend_has_a_dot_for_each_value_and_marks_what_failed(stored: httpx.Client) -> None:
    content = image(stored, f"{PROJECT}/trend.svg", index=["accuracy", "kappa"])
    assert [marks(content, f"course-{i}") for i in (1, 2)] == [5, 5]
    assert marks(content, "fail") == 2
    assert {"Accuracy and Cohen's kappa", "Accuracy 0.9600", "gate failed"} <= set(texts(content))
    of_class = image(stored, f"{PROJECT}/trend.svg", index="recall", **{"class": "dog"})
    assert "Recall of dog" in texts(of_class)


def test_lines_and_boxes_show_every_class_in_every_version(stored: httpx.Client) -> None:
    lines = image(stored, f"{PROJECT}/lines.svg", index=["r_prime", "recall"])
    assert {"R' by class", "Recall by class"} <= set(texts(lines))
    assert texts(lines).count("cat") == 2
    boxes = image(stored, f"{PROJECT}/boxes.svg")
    assert marks(boxes, "classes") == 15


def test_the_newest_are_shown_and_how_many_there_are(stored: httpx.Client) -> None:
    for name in HISTORY:
        words = texts(image(stored, f"{PROJECT}/{name}.svg", limit=2))
        assert "pets: the newest 2 of 5 evaluations" in words


def test_a_history_without_any_that_fits_says_so(stored: httpx.Client) -> None:
    for name in HISTORY:
        words = texts(image(stored, f"{PROJECT}/{name}.svg", model="other"))
        assert "No evaluation fits." in words


def test_the_same_figure_has_the_same_bytes_and_an_etag(stored: httpx.Client, newest: str) -> None:
    for path in (*(f"{newest}/{name}.svg" for name in EVALUATION), f"{PROJECT}/boxes.png"):
        first, second = stored.get(path), stored.get(path)
        assert first.content == second.content
        etag = first.headers["ETag"]
        cached = stored.get(path, headers={"If-None-Match": etag})
        assert (cached.status_code, cached.content) == (304, b"")
        other = stored.get(path, params={"width": 500})
        assert other.headers["ETag"] != etag
        assert other.content != first.content


def test_width_and_scale_are_those_of_the_image(stored: httpx.Client, newest: str) -> None:
    for path in (f"{newest}/confusion.png", f"{newest}/radar.png", f"{PROJECT}/lines.png"):
        assert size(image(stored, path))[0] == 1600
        assert size(image(stored, path, width=500, scale=1))[0] == 500
    svg = drawing(image(stored, f"{newest}/radar.svg", width=500))
    assert svg.get("width") == "500"


def test_odd_names_stand_as_they_are(stored: httpx.Client) -> None:
    place = newest_of(stored, "odd")
    for path in (
        *(f"{place}/{name}.svg" for name in EVALUATION),
        "/v1/projects/odd/figures/lines.svg",
    ):
        content = image(stored, path)
        assert set(ODD) <= set(texts(content)), path
        assert not {e.tag for e in drawing(content).iter()} & {f"{SVG}b", f"{SVG}script", f"{SVG}i"}


@pytest.mark.parametrize(
    ("path", "query", "status"),
    [
        ("{e}/confusion.gif", {}, 404),
        ("{e}/pie.svg", {}, 404),
        (f"{PROJECT}/confusion.svg", {}, 404),
        ("/v1/projects/none/figures/trend.svg", {}, 404),
        ("/v1/evaluations/none/figures/radar.svg", {}, 404),
        ("{e}/radar.svg", {"index": "acuracy"}, 422),
        ("{e}/radar.svg", {"index": "kappa"}, 422),
        ("{e}/radar.svg", {"index": "roc_auc"}, 422),
        ("{e}/radar.svg", {"index": ["recall"] * 7}, 422),
        ("{e}/confusion.svg", {"index": "recall"}, 422),
        ("{e}/radar.svg", {"width": 10}, 422),
        ("{e}/radar.png", {"scale": 100}, 422),
        ("{e}/radar.svg", {"colour": "red"}, 422),
        (f"{PROJECT}/trend.svg", {"index": "acuracy"}, 422),
        (f"{PROJECT}/lines.svg", {"index": "kappa"}, 422),
        (f"{PROJECT}/boxes.svg", {"class": "dog"}, 422),
        (f"{PROJECT}/boxes.svg", {"limit": 0}, 422),
        (f"{PROJECT}/boxes.svg", {"index": ["recall", "weighted_kappa"]}, 422),
        (f"{PROJECT}/trend.svg", {"by": "class"}, 422),
        (f"{PROJECT}/trend.svg", {"index": ["recall", "accuracy"], "class": "ant"}, 404),
        (f"{PROJECT}/trend.svg", {"index": "accuracy", "class": "dog"}, 422),
        (f"{PROJECT}/lines.svg", {"by": "model"}, 422),
        ("{e}/per_class.svg", {"index": ["recall", "kappa"]}, 422),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    stored: httpx.Client, newest: str, path: str, query: Json, status: int
) -> None:
    answer = stored.get(path.replace("{e}", newest), params=query)
    assert answer.status_code == status, answer.text
    if status == 422:
        assert answer.json()["errors"][0]["pointer"].startswith(f"/query/{next(iter(query))}")


def test_a_key_of_another_project_finds_nothing(serve_app: ServeApp, tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    (_, mine), (_, theirs), (_, blind) = (
        keys.create(file, ["read", "evaluate"], project="pets"),
        keys.create(file, ["read"], project="plants"),
        keys.create(file, ["evaluate"], project="pets"),
    )
    with keeping(serve_app, tmp_path, keys_file=file) as client:
        report = keep(client, matrix(), Authorization=f"Bearer {mine}")
        for path in (f"{report['links']['self']}/figures/radar.svg", f"{PROJECT}/trend.svg"):
            answers = [
                client.get(path, headers={"Authorization": f"Bearer {key}"})
                for key in (mine, theirs, blind)
            ]
            assert [answer.status_code for answer in answers] == [200, 404, 403]
            assert client.get(path).status_code == 401


def test_many_evaluations_and_hostile_classes_are_drawn(
    serve_app: ServeApp, tmp_path: Path
) -> None:
    names = list(HOSTILE[:28])
    table = [[90 if i == j else 1 for j in range(28)] for i in range(28)]
    with keeping(serve_app, tmp_path) as client:
        for version in range(45):
            keep(
                client,
                {
                    "confusion_matrix": table,
                    "labels": names,
                    "project": "p",
                    "version": f"v{version}",
                },
            )
        boxes = image(client, "/v1/projects/p/figures/boxes.svg")
        assert marks(boxes, "median") == 1
        lines = image(client, "/v1/projects/p/figures/lines.svg")
        assert "R' by class" in texts(lines)
        for name in EVALUATION:
            content = image(client, f"{newest_of(client, 'p')}/{name}.svg")
            assert b"<script" not in content


@pytest.mark.parametrize(
    "name",
    ["per_class", *(pytest.param(n, marks=pytest.mark.slow) for n in ("confusion", "radar"))],
)
def test_a_png_says_where_the_fonts_lack_letters(stored: httpx.Client, name: str) -> None:
    noted = {}
    for project, names in (("latin", ["cat", "owl", "elk"]), ("scripts", ["猫咪", "แมว", "बिल्ली"])):
        keep(stored, matrix(4, project=f"{project}-{name}", labels=names))
        path = f"{newest_of(stored, f'{project}-{name}')}/{name}"
        vector = image(stored, f"{path}.svg")
        pixels = float(drawing(vector).get("height", ""))
        # An SVG has the names as texts, and no note, which makes the image higher.
        noted[project] = size(image(stored, f"{path}.png", scale=1))[1] > pixels + 1
        drawn = texts(vector)
        assert set(names) <= set(drawn)
        assert not [text for text in drawn if "lack letters" in text]
    has = {code for path in installed() for code in code_points(path)}
    lacking = not {ord(letter) for word in names for letter in word} <= has
    assert noted == {"latin": False, "scripts": lacking}


def test_a_pdf_has_vectors_and_every_text_in_an_embedded_font(
    stored: httpx.Client, newest: str
) -> None:
    answer = stored.get(f"{newest}/confusion.pdf")
    assert answer.headers["Content-Type"] == "application/pdf"
    assert answer.content == stored.get(f"{newest}/confusion.pdf").content
    drawn, words = pdf_page(answer.content)
    assert b" Do" not in drawn, "an image in place of vectors"
    written = texts(image(stored, f"{newest}/confusion.svg"))
    assert words == [text for text in written if text]
    assert len(answer.content) < 60_000, "a font without what is used of it alone"


def pdf_page(content: bytes) -> tuple[bytes, list[str]]:
    """Return the content of the page of a PDF of ours, and its texts by its own tables."""
    streams = [
        zlib.decompress(part.split(b"endstream")[0].strip(b"\n"))
        for part in content.split(b"stream\n")[1:]
        if part[:1] == b"x"
    ]
    page, letters = streams[0], list[dict[str, str]]()
    for stream in streams[1:]:
        if b"begincmap" in stream:
            pairs = re.findall(rb"<([0-9A-F]{4})> <([0-9A-F]+)>", stream.split(b"beginbfchar")[1])
            letters.append(
                {a.decode(): bytes.fromhex(b.decode()).decode("utf-16-be") for a, b in pairs}
            )
    words = []
    for block in page.split(b"BT")[1:]:
        pieces = re.findall(rb"/F(\d) [\d.]+ Tf <([0-9A-F]*)> Tj", block.split(b"ET")[0])
        words.append("".join(_spelt(letters[int(font)], codes.decode()) for font, codes in pieces))
    return page, words


def _spelt(letters: dict[str, str], codes: str) -> str:
    return "".join(letters[codes[i : i + 4]] for i in range(0, len(codes), 4))


def test_a_card_says_the_verdict_what_changed_and_the_classes_that_decide(
    stored: httpx.Client,
) -> None:
    rules = {"rules": [{"index": "accuracy", "max_drop": 0.05}]}
    table = [[95, 0, 5], [0, 100, 0], [0, 0, 100]]
    worse = [[55, 0, 45], [0, 100, 0], [0, 0, 100]]
    body = {"labels": LABELS, "project": "cards", "model": "net"}
    keep(stored, body | {"confusion_matrix": table, "version": "1"})
    compared = {"baseline": {"version": "1"}, "gates": rules, "version": "2"}
    keep(stored, body | compared | {"confusion_matrix": worse})
    content = image(stored, f"{newest_of(stored, 'cards')}/card.svg")
    words = " ".join(texts(content)).replace("\N{NO-BREAK SPACE}", " ")
    assert "Gate failed: net 2" in words
    assert "Accuracy 98.3 % \u2192 85.0 %: \u221213.3 points" in words
    assert "Class cat lost most: recall 95.0 % \u2192 55.0 %, into eel (40 more)." in words
    # Its recall and F1 are shown to be worse, and so is the precision of what it is taken for.
    bad = [path for path in paths(content, "values") if path.get("fill") == "#a8330a"]
    assert 2 <= len(bad) < len(paths(content, "values")) == 9
