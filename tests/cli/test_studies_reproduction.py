"""The published results, reproduced: the data that is shipped, the command, the document."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import rprime as package
from rprime.application.reproduction import PrintedResult, check_claims, reproduce
from tests.command import Run

ROOT = Path(__file__).parents[2]
SHIPPED = Path(package.__file__).parent / "data/beyond_ap_tables.json"
CHINESE = SHIPPED.with_name("chinese_tables.json")
FROG, NEVER_PREDICTED = "Table 8, cifar10 after", "Chinese paper, table 10, cifar10 before"
REFERENCE = Path(__file__).parents[1] / "reference/beyond_ap_tables.json"


def test_every_printed_number_is_reproduced_but_one_that_the_paper_misprints() -> None:
    reproduction = reproduce()
    (erratum,) = [result for result in reproduction.results if not result.reproduced]
    assert (erratum.table, erratum.class_, erratum.mark) == (FROG, "frog", "erratum")
    assert erratum.published == 0.9192
    assert round(erratum.computed, 4) == 0.9182
    assert reproduction.reproduced == 143
    assert len(reproduction.errata) == 7
    assert reproduction.sound


def test_a_number_that_is_no_known_erratum_is_unsound() -> None:
    reproduction = reproduce()
    wrong = PrintedResult("t", "kappa", None, 0.1, 0.2)
    assert not replace(reproduction, results=(*reproduction.results, wrong)).sound


def test_the_chinese_paper_has_its_matrices_and_its_classes_that_are_never_predicted() -> None:
    chinese = json.loads(CHINESE.read_text())
    for case in chinese["matrices"].values():
        counts = np.array(case["counts"])
        assert counts.shape == (10, 10)
        # The test sets of MNIST and CIFAR-10 have 10 000 items.
        assert counts.sum() == 10_000
    results = {r.class_: r for r in reproduce().results if r.table == NEVER_PREDICTED}
    assert [results[name].computed for name in ("cat", "deer")] == [0.1, 0.1]


def test_the_claims_of_the_papers_are_checked_and_four_fail() -> None:
    claims = reproduce().claims
    of_zhang = [claim for claim in claims if claim.source == "Zhang, Su, Dou 2021"]
    assert [claim.holds for claim in of_zhang] == [True, True, False, True, True, False, True]
    assert "correlations from 0.9703, root mean squared differences up to 0.1398" in str(claims[0])
    # Precision exchanges models 3 and 4: .8741 and .8689 by R', .8860 and .8970 by precision.
    expected = ["recall_of_class_0 4", "macro_recall 0", "macro_precision 1", "kappa 0"]
    assert all(text in of_zhang[1].numbers for text in expected)
    assert "12 of 12 rise in 4 improvements" in of_zhang[3].numbers
    assert [claim.holds for claim in claims[8:]] == [True] * 8 + [False]
    # The text of Labatut and Cherifi: 2/3 at p = 0, and the two ends at k = 10.
    assert "0.667, 0.900 at p = 0, 0.429, 0.500 at p = 1" in claims[-1].numbers


def test_r_prime_is_the_accuracy_only_where_every_item_has_a_prediction() -> None:
    """50 + 35 of 100 items right: R' is .85; with 20 more unclassified it is .875, AP 85 / 120."""
    everything, some = (c for c in reproduce().claims if "unbiased" in c.text)
    assert everything.holds
    assert everything.numbers.endswith("R' 0.850, AP 0.850")
    assert not some.holds
    assert some.numbers.endswith("R' 0.875, AP 0.708")


def test_r_prime_of_a_class_that_is_never_predicted_is_its_prevalence() -> None:
    claim = next(claim for claim in reproduce().claims if "sample counts" in claim.text)
    assert not claim.holds
    assert "0.10 at 10 %, 0.50 at 50 %" in claim.numbers


def test_a_claim_is_refuted_by_other_numbers() -> None:
    data = json.loads(SHIPPED.read_text())
    models = data["ten_models"]
    after = data["matrices"]["table7_mnist_after"]["counts"]
    before = data["matrices"]["table7_mnist_before"]["counts"]
    turned = {**models, "kappa": models["kappa"][::-1]}
    claims = check_claims(turned, [(after, before)])
    assert [claim.holds for claim in claims[:4]] == [False] * 4


def test_every_number_of_the_data_is_looked_at() -> None:
    data = json.loads(SHIPPED.read_text())
    chinese = json.loads(CHINESE.read_text())["matrices"]
    matrices = (*data["matrices"].values(), *chinese.values())
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
    made = rprime("reproduce")
    assert made.returncode == 0
    assert made.stdout == (ROOT / "examples/reproduced.md").read_text(), (
        "run: rprime reproduce > examples/reproduced.md"
    )


def test_people_and_programs_get_the_same(rprime: Run) -> None:
    text, document = rprime("reproduce").stdout, json.loads(rprime("reproduce", "--json").stdout)
    assert document["reproduced"] == 143
    assert document["numbers"] == len(document["results"]) == 144
    assert "143 of 144 printed numbers are reproduced, 1 is an erratum of the paper" in text
    assert [claim["holds"] for claim in document["claims"]].count(False) == 4
    for erratum in document["errata"]:
        assert erratum["text"] in text
    first = document["results"][0]
    assert first["published"] == pytest.approx(first["computed"], abs=5e-5)


def test_a_table_of_the_paper_is_a_request_that_gives_its_number(rprime: Run) -> None:
    made = rprime("reproduce", "--table", "mnist_before")
    assert made.returncode == 0
    report = package.evaluate(**json.loads(made.stdout), indices=["r_prime"])
    assert round(report.overall["r_prime"].value or 0, 4) == 0.8971
    assert report.per_class["8"]["r_prime"].value == pytest.approx(0.7044, abs=5e-5)


def test_an_unknown_table_of_the_paper_is_told_the_tables(rprime: Run) -> None:
    made = rprime("reproduce", "--table", "mnist_befor")
    assert made.returncode == 2
    assert "mnist, mnist_before, mnist_after, cifar10_before, cifar10_after" in made.stderr
