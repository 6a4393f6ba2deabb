"""Files with a table of counts, as other tools write them, are read or named with their cure."""

import json
from pathlib import Path

import httpx
import numpy as np
import pandas as pd
import pytest

from tests.command import Run
from tests.services import Serve

TRUE = pd.Series(["a"] * 60 + ["b"] * 49, name="Actual")
PREDICTED = pd.Series(["a"] * 50 + ["b"] * 10 + ["a"] * 3 + ["b"] * 46, name="Predicted")
CROSSTAB = pd.crosstab(TRUE, PREDICTED)
BARE = pd.DataFrame(CROSSTAB.to_numpy(), index=["a", "b"], columns=["a", "b"])
WORDS = ["rows are true classes", "rows are predicted classes, as the names of the axes say"]

# All are of the same 109 items: of the 60 of class a, 50 are predicted as a.
READ = {
    "pandas.csv": BARE.to_csv(),
    "crosstab.csv": CROSSTAB.to_csv(),
    "turned.csv": pd.crosstab(PREDICTED, TRUE).to_csv(),
    "r.csv": '"","a","b"\n"a",50,10\n"b",3,46\n',
    "corner.csv": "Actual \\ Predicted, A, B\nA, 50, 10\nB, 3, 46\n",
    "predicted corner.csv": "Predicted;a;b\na;50;3\nb;10;46\n",
    "tabs.tsv": BARE.to_csv(sep="\t"),
    "tabs in a.csv": BARE.to_csv(sep="\t"),
    "numbers.csv": "50,10\n3,46\n",
    "trailing.csv": ",a,b,\na, 50, 10,\nb, 3, 46,\n",
    "prefixed.csv": ",Pred a,Pred b\nTrue a,50,10\nTrue b,3,46\n",
    "integers.csv": ",0,1\n0,50,10\n1,3,46\n",
    "bom.csv": "\ufeffrow ID,a,b\r\na,50,10\r\nb,3,46\r\n",
    "declared.csv": "sep=;\n;a;b\na;50;10\nb;3;46\n",
    "totals.csv": pd.crosstab(TRUE, PREDICTED, margins=True).to_csv(),
    "table.txt": "          Reference\nPrediction  a  b\n         a 50  3\n         b 10 46\n",
    "weka.txt": "=== Confusion Matrix ===\n\n  a  b   <-- classified as\n"
    " 50 10 |  a = a\n  3 46 |  b = b\n",
    "freq.csv": '"Prediction","Truth","Freq"\n"a","a",50\n"b","a",10\n"a","b",3\n"b","b",46\n',
    "sql.csv": "y_true,y_pred,count(*)\na,a,50\na,b,10\nb,a,3\nb,b,46\n",
}
REFUSED = {
    "items.csv": ("7,11\n3,8\n", "may be a matrix, or two items without a header"),
    "cells.csv": ("TN,FP,FN,TP\n46,3,10,50\n", "the four counts of two classes in one row"),
    "words.csv": (
        "True Negative,False Positive,False Negative,True Positive\n4,3,1,5\n",
        "in one row",
    ),
    "named.csv": ("Actual,Predicted_0,Predicted_1\nNon,38,2\nBuilt,1,42\n", "need the same names"),
    "both true.csv": (
        "Actual\\True,a,b\na,50,10\nb,3,46\n",
        "name one true and the other predicted",
    ),
    "one total.csv": (",a,b,Total\na,50,10,60\nb,3,46,49\n", "Leave it out, or give the totals"),
    "thousands.csv": (";a;b\na;1.250;10\nb;3;2.046\n", "`1.250` may be 1250 or 1.25"),
    "shares.csv": (",a,b\na,0.83,0.17\nb,0.06,0.94\n", "look like shares"),
    "words inside.csv": (",a,b,c\na,50,x,1\nb,3,46,1\nc,1,2,3\n", "Row 2, column 3 of the table"),
    "report.txt": (
        "  precision  recall  f1-score  support\n\na 0.9 0.8 0.8 60\n",
        "report of scikit",
    ),
}


def values(report: str | bytes) -> tuple[float, ...]:
    content = json.loads(report)
    first, *_ = content["per_class"].values()
    overall = content["overall"]["accuracy"]["value"]
    return content["counts"]["items"], overall, first["indices"]["recall"]["value"]


@pytest.mark.parametrize("name", READ)
def test_it_is_read_and_the_answer_says_how(rprime: Run, tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_text(READ[name], encoding="utf-8")
    done = rprime("evaluate", str(file), "--json")
    assert done.returncode == 0, done.stderr
    assert values(done.stdout) == pytest.approx((109, 96 / 109, 50 / 60))
    read = [w["detail"] for w in json.loads(done.stdout)["warnings"] if w["code"] == "table_read"]
    assert len(read) == 1
    turned = name in {"turned.csv", "predicted corner.csv", "table.txt"}
    assert name in {"freq.csv", "sql.csv"} or WORDS[turned] in read[0]


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_with_its_cure(rprime: Run, tmp_path: Path, name: str) -> None:
    file, (text, said) = tmp_path / name, REFUSED[name]
    file.write_text(text, encoding="utf-8")
    done = rprime("evaluate", str(file))
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


@pytest.mark.parametrize("name", ["pandas.csv", "turned.csv", "freq.csv", "table.txt"])
def test_a_service_reads_the_same(client: httpx.Client, name: str) -> None:
    headers = {"Content-Type": "text/csv"}
    answer = client.post("/evaluate", content=READ[name].encode(), headers=headers)
    assert answer.status_code == 200, answer.text
    assert values(answer.content) == pytest.approx((109, 96 / 109, 50 / 60))


@pytest.mark.parametrize("name", REFUSED)
def test_a_service_refuses_the_same(client: httpx.Client, name: str) -> None:
    text, said = REFUSED[name]
    headers = {"Content-Type": "text/csv"}
    answer = client.post("/evaluate", content=text.encode(), headers=headers)
    assert (answer.status_code, said in answer.text) == (422, True), answer.text


@pytest.mark.parametrize(("axis", "status"), [("rows_are_true", 2), ("rows_are_predicted", 0)])
def test_the_axis_of_a_request_may_not_contradict_the_names(
    rprime: Run, tmp_path: Path, axis: str, status: int
) -> None:
    (tmp_path / "m.csv").write_text(READ["turned.csv"], encoding="utf-8")
    (tmp_path / "r.yaml").write_text(f"axis: {axis}\n", encoding="utf-8")
    done = rprime("evaluate", str(tmp_path / "m.csv"), "--request", str(tmp_path / "r.yaml"))
    assert done.returncode == status
    assert ("The names of the axes say that the rows are predictions" in done.stderr) == status // 2


def test_a_table_is_a_baseline_of_any_table(rprime: Run, tmp_path: Path, serve: Serve) -> None:
    (tmp_path / "m.json").write_text(
        '{"labels": ["a", "b"], "confusion_matrix": [[50, 10], [3, 46]]}', encoding="utf-8"
    )
    names = ["m.json", "turned.csv", "freq.csv"]
    for name in names[1:]:
        (tmp_path / name).write_text(READ[name], encoding="utf-8")
    with serve() as client:
        for there in ((), ("--server", str(client.base_url))):
            for one, other in (
                ("turned.csv", "freq.csv"),
                ("freq.csv", "turned.csv"),
                ("m.json", "turned.csv"),
                ("turned.csv", "m.json"),
            ):
                files = str(tmp_path / one), "--baseline", str(tmp_path / other)
                done = rprime("evaluate", *files, "--json", *there)
                assert done.returncode == 0, (one, other, done.stderr)
                changes = json.loads(done.stdout)["comparison"]["overall"]
                assert changes["accuracy"]["value"] == 0
                assert "too many items" not in done.stderr


def test_lint_and_plot_take_tables(rprime: Run, tmp_path: Path) -> None:
    gates = tmp_path / "g.yaml"
    gates.write_text("rules: [{index: accuracy, max_drop: 0.1}]\n", encoding="utf-8")
    for name in ("crosstab.csv", "sql.csv"):
        file = tmp_path / name
        file.write_text(READ[name], encoding="utf-8")
        lint = rprime("lint", str(file), "--gates", str(gates), "--json")
        assert json.loads(lint.stdout)["rules"][0]["items"] == 109
        picture = tmp_path / "p.svg"
        assert (
            rprime("plot", str(file), "--figure", "confusion", "-o", str(picture)).returncode == 0
        )
        assert picture.read_text(encoding="utf-8").count("<svg") == 1


def test_count_names_the_column_of_counts(rprime: Run, tmp_path: Path) -> None:
    rows = [
        "y_true,y_pred,region,k",
        "a,a,EU,30",
        "a,a,US,20",
        "a,b,EU,10",
        "b,a,EU,3",
        "b,b,US,46",
    ]
    file = tmp_path / "by region.csv"
    file.write_text("\n".join(rows), encoding="utf-8")
    done = rprime("evaluate", str(file), "--count", "k", "--json")
    assert values(done.stdout) == pytest.approx((109, 96 / 109, 50 / 60))
    wrong = rprime("evaluate", str(file), "--count", "n")
    assert (wrong.returncode, "No column has the name chosen for `count`" in wrong.stderr) == (
        2,
        True,
    )


def test_a_large_file_of_items_is_not_taken_for_a_table(rprime: Run, tmp_path: Path) -> None:
    file = tmp_path / "items.csv"
    file.write_text("label,guess\n" + "1,1\n" * 300_000, encoding="utf-8")
    done = rprime("evaluate", str(file))
    assert (done.returncode, "as in `y_true=label,y_pred=guess`" in done.stderr) == (2, True)
    assert rprime("evaluate", str(file), "--columns", "y_true=label,y_pred=guess").returncode == 0


def test_the_largest_table_is_read(rprime: Run, tmp_path: Path) -> None:
    names = [f"class {i}" for i in range(1000)]
    frame = pd.DataFrame(10 * np.eye(1000, dtype=int) + 1, index=names, columns=names)
    frame.to_csv(tmp_path / "m.csv")
    done = rprime("evaluate", str(tmp_path / "m.csv"), "--index", "accuracy", "--json")
    assert json.loads(done.stdout)["counts"]["items"] == 1_010_000
