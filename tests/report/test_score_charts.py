"""Charts of scores: their numbers are those of scikit-learn and scipy, and they are drawn alike."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn import metrics

import rprime
from rprime.client.report import Report
from rprime.core.arrays import Array
from rprime.report.charts.scores import keys_of
from rprime.report.html import render_html
from rprime.report.score_charts import CHARTS, MOST_CLASSES, NO_SCORES, chart_of_scores
from tests.history_service import Json, ServeApp, keep, keeping
from tests.report.drawings import size, texts

NAMES = ("cat", "<b>$x_1$</b>", "كلب")


def labels_of(k: int) -> list[str]:
    return list(NAMES) if k == len(NAMES) else [f"class {i}" for i in range(k)]


def drawn(k: int, n: int = 600) -> tuple[Array, Array]:
    rng = np.random.default_rng(k)
    true = np.append(np.arange(k), rng.integers(0, k, n - k))
    values = np.exp(rng.normal(size=(n, k)) + 2 * np.eye(k)[true] * (true / k + 0.2)[:, None])
    return true, values / values.sum(-1, keepdims=True)


def evaluated(k: int = 3, scores: Array | None = None, **options: Any) -> Report:
    true, values = drawn(k)
    values = values if scores is None else scores
    names = labels_of(k)
    defaults: Json = {"y_score": values, "labels": names, "curves": True, "indices": ["r_prime"]}
    return rprime.evaluate([names[i] for i in true], **defaults | options)


def body(k: int = 3, **options: Any) -> Json:
    true, values = drawn(k)
    names = labels_of(k)
    content = {"y_true": [names[i] for i in true], "y_score": values.tolist(), "labels": names}
    return content | {"project": "pets", "indices": ["r_prime"], "curves": True} | options


@pytest.fixture(scope="module")
def stored(serve_app: ServeApp, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with keeping(serve_app, tmp_path_factory.mktemp("scores")) as client:
        yield client


def test_the_table_of_the_roc_chart_has_the_areas_of_scikit_learn() -> None:
    true, values = drawn(3)
    chart = chart_of_scores("roc", evaluated().subject())
    assert chart is not None
    for code, row in enumerate(chart.rows[:-1]):
        area = metrics.roc_auc_score(true == code, values[:, code])
        assert float(row[1]) == pytest.approx(area, abs=5e-5)
        rates, recall, _ = metrics.roc_curve(true == code, values[:, code], drop_intermediate=False)
        at = [float(text) for text in row[2:]]
        # The curve is thinned; where it rises steeply, a small step across is a large one up.
        low, high = (
            np.interp(np.array([0.01, 0.05, 0.1, 0.2]) + shift, rates, recall)
            for shift in (-0.033, 0.033)
        )
        assert (low - 0.033 <= at).all()
        assert (at <= high + 0.033).all()
    assert chart.rows[-1][0] == "All classes, pooled"
    pooled = metrics.roc_auc_score(np.eye(3)[true].ravel(), values.ravel())
    assert float(chart.rows[-1][1]) == pytest.approx(pooled, abs=5e-5)


@pytest.mark.parametrize(
    ("name", "number"), [("roc", "area"), ("precision_recall", "average precision")]
)
def test_the_legend_names_a_class_before_its_number(name: str, number: str) -> None:
    chart = chart_of_scores(name, evaluated().subject())
    assert chart is not None
    words = [text for _, text in keys_of(chart)]
    assert f"{chart.rows[0][0]}, {number} {chart.rows[0][1]}" in words


def test_the_band_of_the_reliability_is_wilsons() -> None:
    report = evaluated(exact=True, confidence=0.9)
    (panel,) = chart_of_scores("reliability", report.subject()).panels  # type: ignore[union-attr]  # it is there
    (line,) = panel.lines
    curves = report.curves
    assert curves is not None
    bins = curves.reliability
    assert line.band is not None
    assert len(bins) == len(line.x)
    for row, x, y, low, high in zip(bins, line.x, line.y, *line.band, strict=True):
        binomial = binomtest(round(row["items"] * row["accuracy"]), int(row["items"]))
        limits = binomial.proportion_ci(0.9, method="wilson")
        assert (x, y) == pytest.approx((row["confidence"], row["accuracy"]))
        assert (low, high) == pytest.approx((limits.low, limits.high), abs=1e-9)


def test_weighted_items_have_no_band() -> None:
    report = evaluated(sample_weight=np.linspace(0.5, 1.5, 600))
    chart = chart_of_scores("reliability", report.subject())
    assert chart is not None
    assert chart.panels[0].lines[0].band is None
    assert "no band" in chart.lead
    assert {row[-1] for row in chart.rows} == {""}


def test_the_histograms_count_every_item() -> None:
    true, _ = drawn(3)
    chart = chart_of_scores("scores", evaluated().subject())
    assert chart is not None
    counts = np.array([[int(text) for text in row[1:]] for row in chart.rows])
    support = np.bincount(true)
    np.testing.assert_array_equal(counts.sum(0)[::2], support)
    np.testing.assert_array_equal(counts.sum(0)[1::2], 600 - support)


def test_risk_is_that_of_all_items_at_full_coverage() -> None:
    true, values = drawn(3)
    chart = chart_of_scores("risk_coverage", evaluated().subject())
    assert chart is not None
    assert chart.rows[-1][0] == "1.0000"
    assert float(chart.rows[-1][1]) == pytest.approx((values.argmax(-1) != true).mean(), abs=5e-5)


def test_of_many_classes_the_weakest_are_drawn() -> None:
    true, values = drawn(12)
    chart = chart_of_scores("precision_recall", evaluated(12).subject())
    assert chart is not None
    areas = [metrics.roc_auc_score(true == code, values[:, code]) for code in range(12)]
    weakest = sorted(np.argsort(areas)[:MOST_CLASSES].tolist())
    assert [row[0] for row in chart.rows[:-1]] == [f"class {i}" for i in weakest]
    assert "The 6 of 12 classes" in chart.lead


@pytest.mark.parametrize("name", CHARTS)
@pytest.mark.parametrize("k", [2, 3, 40])
def test_every_chart_is_drawn_as_svg_and_png(name: str, k: int, tmp_path: Any) -> None:
    figure = evaluated(k).plot(name, width=400)  # type: ignore[arg-type]  # one of its names
    words = texts(figure.svg.encode())
    assert any("600 items" in text for text in words)
    if name not in {"reliability", "risk_coverage"}:
        shown = labels_of(k) if k < MOST_CLASSES else []
        for label in shown:
            assert any(label in text for text in words), label
    figure.save(tmp_path / "one.png", scale=1)
    assert size((tmp_path / "one.png").read_bytes())[0] == 400


@pytest.mark.parametrize("k", [2, 3, 40])
def test_the_html_report_has_them_with_a_table_each(k: int) -> None:
    report = evaluated(k)
    html = render_html(report.subject())
    assert html.count('<svg class="figure curves"') == 4 + min(k, MOST_CLASSES)
    # The confusion matrix has one, too, unless it is large.
    assert html.count("Show as a table") == len(CHARTS) + (k < 40)
    assert "<b>$x" not in html
    assert "NaN" not in html
    assert "nan" not in re.findall(r'points="([^"]*)"', html)
    assert 'id="scores"' not in render_html(evaluated(k, curves=False).subject())


@pytest.mark.parametrize("kind", ["constant", "one", "logits", "single"])
def test_odd_scores_are_drawn_or_left_out(kind: str) -> None:
    true, values = drawn(3)
    scores = {
        "constant": np.full_like(values, 1 / 3),
        "one": np.eye(3)[true],
        "logits": np.log(values) * 50,
        "single": values,
    }[kind]
    report = evaluated(scores=scores)
    if kind == "single":
        arguments: Json = {"labels": list(NAMES), "curves": True, "indices": ["r_prime"]}
        report = rprime.evaluate(["cat"] * 600, y_score=values, **arguments)
    html = render_html(report.subject())
    names = {name for name in CHARTS if f'id="plot-{name}"' in html}
    absent = {"logits": {"reliability"}, "single": {"roc", "precision_recall", "scores"}}
    assert names == set(CHARTS) - absent.get(kind, set())
    for name in names:
        assert texts(report.plot(name).svg.encode())  # type: ignore[arg-type]  # one of its names
    for name in set(CHARTS) - names:
        with pytest.raises(ValueError, match="no such chart"):
            _ = report.plot(name).svg  # type: ignore[arg-type]  # one of its names


def test_without_scores_that_is_said() -> None:
    report = rprime.evaluate(confusion_matrix=[[5, 1], [2, 4]])
    with pytest.raises(ValueError, match="no scores"):
        report.plot("roc")
    with pytest.raises(ValueError, match="`roc` has no index"):
        evaluated().plot("roc", indices=["recall"])


def test_what_is_stored_is_drawn_as_what_was_sent(stored: httpx.Client) -> None:
    address = keep(stored, body(version="1"))["links"]["self"]
    for name in CHARTS:
        image = stored.get(f"{address}/figures/{name}.svg", params={"width": 500})
        assert image.status_code == 200, image.text
        local = evaluated().plot(name, width=500).svg  # type: ignore[arg-type]  # one of its names
        there, here = (
            [text for text in texts(content) if not text.startswith(("pets", "Evaluation"))]
            for content in (image.content, local.encode())
        )
        assert there == here, name
        assert stored.get(f"{address}/figures/{name}.png").content.startswith(b"\x89PNG")
        headers = {"If-None-Match": image.headers["ETag"]}
        again = stored.get(f"{address}/figures/{name}.svg", params={"width": 500}, headers=headers)
        assert again.status_code == 304
        wrong = stored.get(f"{address}/figures/{name}.svg?index=recall")
        assert (wrong.status_code, wrong.json()["errors"][0]["code"]) == (422, "misplaced")
    html = stored.get(f"{address}/report.html").text
    assert html.count('<svg class="figure curves"') == 7
    page = stored.get(f"/ui/evaluations/{address.rsplit('/', 1)[1]}").text
    assert page.count('<svg class="figure curves"') == 7
    assert "/figures/roc.png" in page


def test_an_evaluation_without_curves_has_no_such_figure(stored: httpx.Client) -> None:
    address = keep(stored, body(version="2", curves=False))["links"]["self"]
    answer = stored.get(f"{address}/figures/roc.svg")
    assert answer.status_code == 422
    assert answer.json()["errors"][0] == {"pointer": "", "code": "no_scores", "detail": NO_SCORES}
    page = stored.get(f"/ui/evaluations/{address.rsplit('/', 1)[1]}").text
    assert 'id="scores"' not in page
    assert "/figures/roc.png" not in page


def test_a_posted_body_is_drawn_in_the_report_and_the_evaluator(stored: httpx.Client) -> None:
    content = body(project=None) | {"project": None}
    del content["project"]
    html = stored.post("/evaluate", json=content, headers={"Accept": "text/html"}).text
    assert html.count('<svg class="figure curves"') == 7
    plain = {name: value for name, value in content.items() if name != "curves"}
    headers = {"Accept": "text/html"}
    assert 'id="scores"' not in stored.post("/evaluate", json=plain, headers=headers).text
    pasted = stored.post(
        "/ui/evaluate", content=rprime_json(plain), headers={"Content-Type": "text/plain"}
    )
    assert pasted.text.count('<svg class="figure curves"') == 7


def rprime_json(content: Json) -> bytes:
    return httpx.Request("POST", "http://x", json=content).content
