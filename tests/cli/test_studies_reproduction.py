"""The published results, reproduced: the data that is shipped, the command, the document."""

import json
from pathlib import Path

import pytest

import rprime as package
from rprime.application.reproduction import PrintedResult, reproduce
from tests.command import Run

ROOT = Path(__file__).parents[2]
SHIPPED = Path(package.__file__).parent / "data/beyond_ap_tables.json"
REFERENCE = Path(__file__).parents[1] / "reference/beyond_ap_tables.json"


def test_every_printed_number_is_reproduced() -> None:
    found = reproduce()
    assert [result for result in found.results if not result.reproduced] == []
    assert found.reproduced == 90
    assert len(found.errata) == 3


def test_every_number_of_the_data_is_looked_at() -> None:
    data = json.loads(SHIPPED.read_text())
    matrices = data["matrices"].values()
    numbers = sum(len(case["overall"]) + len(case["r_prime_per_class"]) for case in matrices)
    printed = data["ten_models"]["agreement_with_r_prime"]
    numbers += len(printed["correlation"]) + len(printed["rmse"])
    assert len(reproduce().results) == numbers


def test_the_shipped_data_is_that_of_the_reference_values() -> None:
    assert SHIPPED.read_bytes() == REFERENCE.read_bytes()


def test_a_number_that_differs_in_print_is_not_reproduced() -> None:
    assert PrintedResult("t", "kappa", None, 0.1235, 0.12345001).reproduced
    assert not PrintedResult("t", "kappa", None, 0.1234, 0.12345001).reproduced


def test_the_document_is_what_the_command_prints(rprime: Run) -> None:
    made = rprime("reproduce", "--markdown")
    assert made.returncode == 0
    assert made.stdout == (ROOT / "examples/reproduced.md").read_text(), (
        "run: rprime reproduce --markdown > examples/reproduced.md"
    )


def test_people_and_programs_get_the_same(rprime: Run) -> None:
    text, document = rprime("reproduce").stdout, json.loads(rprime("reproduce", "--json").stdout)
    assert document["reproduced"] == document["numbers"] == len(document["results"])
    assert "90 of 90 printed numbers are reproduced." in text
    for erratum in document["errata"]:
        assert erratum["text"] in text
    first = document["results"][0]
    assert first["published"] == pytest.approx(first["computed"], abs=5e-5)
