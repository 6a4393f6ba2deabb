"""The studies over HTTP and from the command."""

import json
from pathlib import Path
from typing import Any, ClassVar

import httpx
import pytest

from tests.command import Run
from tests.report.drawings import drawing, texts

Json = Any
DISCRIMINATION = "/v1/studies/discrimination"
AGREEMENT = "/v1/studies/agreement"
MODELS = json.loads((Path(__file__).parents[1] / "reference/beyond_ap_tables.json").read_text())[
    "ten_models"
]
VALUES = {name: numbers for name, numbers in MODELS.items() if isinstance(numbers, list)}
SVG = {"Accept": "image/svg+xml"}


def refused(client: httpx.Client, path: str, body: Json) -> list[tuple[str, str]]:
    answer = client.post(path, json=body)
    assert answer.status_code == 422, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    return [(error["pointer"], error["code"]) for error in answer.json()["errors"]]


class TestDiscrimination:
    def test_it_answers_every_index_k_and_p(self, client: httpx.Client) -> None:
        body = {"indices": ["accuracy", {"index": "recall", "class": 1}], "k": [3, 4], "p": [0, 1]}
        lines = client.post(DISCRIMINATION, json=body).json()["lines"]
        keys = [(line["index"], line["class"], line["k"], line["p"]) for line in lines]
        expected = [
            (key, class_, k, p)
            for k in (3, 4)
            for key, class_ in (("accuracy", None), ("recall", 1))
            for p in (0, 1)
        ]
        assert keys == expected
        assert lines[0]["points"][-1] == [1.0, 1.0]
        assert lines[0]["points"][0] == pytest.approx([2 / 3, 0])
        assert all(line["prefers"] is None and "reason" not in line for line in lines)

    def test_the_defaults_are_three_balanced_classes(self, client: httpx.Client) -> None:
        short = client.post(DISCRIMINATION, json={"indices": ["kappa"]}).json()
        whole = {"indices": ["kappa"], "k": 3, "p": 0, "resolution": 101}
        assert client.post(DISCRIMINATION, json=whole).json() == short

    def test_a_preference_takes_the_place_of_a_line(self, client: httpx.Client) -> None:
        body = {"indices": [{"index": "precision", "class": 1}, "coverage"]}
        lines = client.post(DISCRIMINATION, json=body).json()["lines"]
        assert [(line["points"], line["prefers"]) for line in lines] == [([], "y"), ([], None)]
        assert lines[1]["reason"] == "indifferent"

    @pytest.mark.parametrize(
        ("body", "expected"),
        [
            ({}, [("/indices", "missing")]),
            ({"indices": []}, [("/indices", "too_short")]),
            ({"indices": ["acuracy"]}, [("/indices/0", "unknown_index")]),
            ({"indices": ["accuracy", "f1"]}, [("/indices/1", "needs_class")]),
            ({"indices": [{"index": "kappa", "class": 1}]}, [("/indices/0/class", "no_class")]),
            (
                {"indices": [{"index": "f1", "class": 3}], "k": [5, 2]},
                [("/indices/0/class", "no_such_class")],
            ),
            (
                {"indices": [{"index": "f1", "class": 0}]},
                [("/indices/0/class", "greater_than_equal")],
            ),
            ({"indices": ["weighted_kappa"]}, [("/indices/0", "option_missing")]),
            ({"indices": ["kappa"], "k": [1]}, [("/k/0", "greater_than_equal")]),
            ({"indices": ["kappa"], "k": [51]}, [("/k/0", "less_than_equal")]),
            ({"indices": ["kappa"], "p": [0, 1.5]}, [("/p/1", "less_than_equal")]),
            ({"indices": ["kappa"], "resolution": 2}, [("/resolution", "greater_than_equal")]),
            ({"indices": ["kappa"], "labels": ["a"]}, [("", "unknown_field")]),
            ({"indices": ["kappa"], "pp": [0]}, [("", "unknown_field")]),
            ({"indices": ["kappa"] * 200, "k": list(range(2, 51))}, [("", "too_much")]),
        ],
    )
    def test_what_is_wrong_is_named(
        self, client: httpx.Client, body: Json, expected: list[tuple[str, str]]
    ) -> None:
        assert refused(client, DISCRIMINATION, body) == expected

    def test_input_is_not_echoed(self, client: httpx.Client) -> None:
        body = {"indices": ["canary-4711", {"index": "canary"}], "k": ["canary"]}
        answer = client.post(DISCRIMINATION, json=body)
        assert answer.status_code == 422
        assert "canary" not in answer.text


class TestFigure:
    BODY: ClassVar[Json] = {
        "indices": ["accuracy", "kappa", {"index": "precision", "class": 1}],
        "p": [0, 1],
    }

    def test_it_is_an_image_that_is_always_the_same(self, client: httpx.Client) -> None:
        first, second = (client.post(DISCRIMINATION, json=self.BODY, headers=SVG) for _ in "ab")
        assert first.status_code == 200
        assert first.headers["Content-Type"] == "image/svg+xml"
        assert first.content == second.content
        assert drawing(first.content).tag == "{http://www.w3.org/2000/svg}svg"
        captions = texts(first.content)
        panels = {"k = 3, p = 0", "k = 3, p = 1"}
        assert {*panels, "Accuracy and Cohen's kappa", "Accuracy"} <= set(captions)

    def test_json_is_what_comes_otherwise(self, client: httpx.Client) -> None:
        for accept in ("*/*", "application/json", "image/svg+xml;q=.5, application/json"):
            answer = client.post(DISCRIMINATION, json=self.BODY, headers={"Accept": accept})
            assert answer.headers["Content-Type"] == "application/json"
        png = client.post(DISCRIMINATION, json=self.BODY, headers={"Accept": "image/png"})
        assert png.content.startswith(b"\x89PNG")
        answer = client.post(DISCRIMINATION, json=self.BODY, headers={"Accept": "image/gif"})
        assert (answer.status_code, answer.json()["code"]) == (406, "not_acceptable")

    @pytest.mark.parametrize(
        ("number", "panels", "legends"),
        [
            (1, ["Class 1", "Class 2"], {"F1 and Jaccard", "Individual classification success"}),
            (2, ["k = 3, p = 0"], {"Classification success index"}),
            (3, ["F1 of class 1", "F1 of class 3"], {"p = 0", "p = 0.25", "p = 1"}),
            (4, ["Accuracy", "Cohen's kappa"], {"p = 0", "p = 0.75", "p = 1"}),
            (5, ["p = 0", "p = 1"], {f"k = {k}" for k in range(3, 11)}),
        ],
    )
    def test_the_printed_figures_have_the_panels_and_lines_of_the_paper(
        self, client: httpx.Client, number: int, panels: list[str], legends: set[str]
    ) -> None:
        answer = client.get(f"{DISCRIMINATION}/figures/{number}.svg")
        assert answer.headers["Content-Type"] == "image/svg+xml"
        captions = texts(answer.content)
        assert [text for text in captions if text in panels] == panels
        assert legends <= set(captions)
        headers = {"If-None-Match": answer.headers["ETag"]}
        assert (
            client.get(f"{DISCRIMINATION}/figures/{number}.svg", headers=headers).status_code == 304
        )

    def test_a_printed_figure_is_png_too_and_there_is_no_sixth(self, client: httpx.Client) -> None:
        png = client.get(f"{DISCRIMINATION}/figures/2.png")
        assert png.content.startswith(b"\x89PNG")
        for name in ("6.svg", "0.svg", "1.gif"):
            assert client.get(f"{DISCRIMINATION}/figures/{name}").status_code == 404

    def test_a_panel_for_every_k_and_p_of_the_paper_fits(self, client: httpx.Client) -> None:
        body = {"indices": ["accuracy"], "k": list(range(3, 11)), "p": [0, 1], "resolution": 11}
        assert client.post(DISCRIMINATION, json=body, headers=SVG).status_code == 200

    def test_more_than_it_can_show_is_refused(self, client: httpx.Client) -> None:
        body = {"indices": ["accuracy"], "k": list(range(2, 20))}
        answer = client.post(DISCRIMINATION, json=body, headers=SVG)
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["code"] == "too_much"


class TestAgreement:
    def test_it_reproduces_the_paper(self, client: httpx.Client) -> None:
        report = client.post(AGREEMENT, json={"values": VALUES}).json()
        pairs = {pair["b"]: pair for pair in report["pairs"] if pair["a"] == "r_prime"}
        printed = MODELS["agreement_with_r_prime"]
        assert {b: round(pair["pearson"], 4) for b, pair in pairs.items()} == printed["correlation"]
        assert {b: round(pair["rmse"], 4) for b, pair in pairs.items()} == printed["rmse"]
        assert len(report["pairs"]) == 15
        assert report["boxes"]["overall"]["kappa"]["n"] == 10
        named = [(pair["a"], pair["b"]) for pair in report["disagreements"]]
        assert ("r_prime", "recall_of_class_0") in named
        assert ("r_prime", "kappa") not in named

    def test_boxes_of_classes_come_beside_that_of_the_whole(self, client: httpx.Client) -> None:
        numbers = [0.1, 0.5, None, 0.9]
        body = {
            "values": {"kappa": numbers, "mcc": numbers},
            "per_class": {"cat": {"r_prime": numbers}, "dog": {"r_prime": [None] * 4}},
        }
        report = client.post(AGREEMENT, json=body).json()
        assert list(report["boxes"]) == ["overall", "cat", "dog"]
        assert report["boxes"]["cat"]["r_prime"]["median"] == 0.5
        assert report["boxes"]["dog"] == {}
        assert report["pairs"][0]["n"] == 3

    def test_a_body_larger_than_any_study_is_refused(self, client: httpx.Client) -> None:
        content = b'{"values": {}}' + b" " * 4 * 1024 * 1024
        answer = client.post(
            AGREEMENT, content=content, headers={"Content-Type": "application/json"}
        )
        assert answer.status_code == 413

    def test_a_coefficient_that_does_not_exist_is_null(self, client: httpx.Client) -> None:
        body = {"values": {"a": [1, 1, 1], "b": [1, 2, 3]}}
        (pair,) = client.post(AGREEMENT, json=body).json()["pairs"]
        assert (pair["pearson"], pair["spearman"], pair["kendall"]) == (None, None, None)

    @pytest.mark.parametrize(
        ("body", "expected"),
        [
            ({}, [("/values", "missing")]),
            ({"values": {"a": [1, 2]}}, [("/values", "too_short")]),
            ({"values": {"a": [1, 2], "b": [1, 2, 3]}}, [("/values", "length")]),
            ({"values": {"a": [1, 2], "b": [1, "2"]}}, [("/values", "float_type")]),
            ({"values": {"a": [1, 2], "b": [1, True]}}, [("/values", "float_type")]),
            ({"values": {"a": [1], "b": [2]}}, [("/values", "too_short")]),
            (
                {"values": {"a": [1, 2], "b": [1, 2]}, "per_class": {"c": {"a": [1, 2, 3]}}},
                [("/per_class", "length")],
            ),
            (
                {"values": {"a": [1, 2], "b": [1, 2]}, "per_class": {"overall": {"a": [1, 2]}}},
                [("/per_class", "reserved_name")],
            ),
            ({"values": {str(i): [0] * 500 for i in range(100)}}, [("/values", "too_much")]),
            ({"values": {"a": [1, 2], "b": [1, 2]}, "cells": []}, [("", "unknown_field")]),
        ],
    )
    def test_what_is_wrong_is_named(
        self, client: httpx.Client, body: Json, expected: list[tuple[str, str]]
    ) -> None:
        assert refused(client, AGREEMENT, body) == expected


def test_the_catalog_has_the_properties(client: httpx.Client) -> None:
    (entry,) = (client.get(f"/v1/indices/class/{key}").json() for key in ("f1",))
    assert entry["properties"] == {
        "class_order": True,
        "scale": True,
        "prevalence": False,
        "own_prevalence": False,
        "transposition": True,
        "transposed": "f1",
        "relations": [{"key": "jaccard", "rising": True, "extent": "always"}],
    }
    assert all("properties" in item for item in client.get("/v1/indices").json()["items"])


class TestCommand:
    def test_discrimination_prints_what_the_service_answers(
        self, rprime: Run, client: httpx.Client
    ) -> None:
        ran = rprime("study", "discrimination", "accuracy", "f1:1", "--k", "3", "--p", "0.5")
        body = {"indices": ["accuracy", {"index": "f1", "class": 1}], "p": [0.5]}
        assert json.loads(ran.stdout) == client.post(DISCRIMINATION, json=body).json()

    def test_a_printed_figure_is_that_of_the_service(
        self, rprime: Run, client: httpx.Client, tmp_path: Path
    ) -> None:
        path = tmp_path / "figure.svg"
        ran = rprime("study", "discrimination", "--figure", "1", "-o", str(path))
        assert ran.returncode == 0, ran.stderr
        assert path.read_bytes() == client.get(f"{DISCRIMINATION}/figures/1.svg").content

    def test_a_figure_as_png(self, rprime: Run, tmp_path: Path) -> None:
        path = tmp_path / "figure.png"
        assert rprime("study", "discrimination", "kappa", "--output", str(path)).returncode == 0
        assert path.read_bytes().startswith(b"\x89PNG")

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ((), "name an index"),
            (("acuracy",), "/indices/0"),
            (("f1:one",), "from 1 on"),
            (("kappa", "--output", "lines.gif"), ".svg, .png or .pdf"),
            (("kappa", "--output", "no/such/folder.svg"), "cannot write"),
        ],
    )
    def test_mistakes_are_explained(
        self, rprime: Run, arguments: tuple[str, ...], said: str
    ) -> None:
        ran = rprime("study", "discrimination", *arguments)
        assert ran.returncode == 2
        assert said in ran.stderr

    def test_agreement_prints_what_the_service_answers(
        self, rprime: Run, client: httpx.Client, tmp_path: Path
    ) -> None:
        path = tmp_path / "values.json"
        path.write_text(json.dumps({"values": VALUES}))
        answer = client.post(AGREEMENT, json={"values": VALUES}).json()
        assert json.loads(rprime("study", "agreement", str(path)).stdout) == answer

    def test_a_request_that_is_wrong_or_missing_is_explained(
        self, rprime: Run, tmp_path: Path
    ) -> None:
        path = tmp_path / "values.json"
        path.write_text('{"values": {}}')
        ran = rprime("study", "agreement", str(path))
        assert (ran.returncode, "/values" in ran.stderr) == (2, True)
        assert rprime("study", "agreement", str(tmp_path / "none.json")).returncode == 2
