"""`rprime plot`: the same figures from files, from a store, and from a service."""

from pathlib import Path

import pytest

from tests.command import Run
from tests.history_service import keep, matrix
from tests.report.drawings import size, texts
from tests.services import Serve

GATE = str(Path(__file__).parents[2] / "examples" / "gate.json")


def test_evidence_is_drawn_with_its_baseline(rprime: Run, tmp_path: Path) -> None:
    output = tmp_path / "radar.svg"
    ran = rprime("plot", GATE, "--figure", "radar", "--output", str(output))
    assert ran.returncode == 0, ran.stderr
    assert {"gate", "baseline", "R' by class"} <= set(texts(output.read_bytes()))


@pytest.mark.slow
def test_a_report_is_drawn_as_its_evidence(rprime: Run, tmp_path: Path) -> None:
    report, other = tmp_path / "gate.json", tmp_path / "bare.json"
    report.write_text(rprime("evaluate", GATE, "--json", "--table").stdout)
    other.write_text(rprime("evaluate", GATE, "--json").stdout)
    drawn = [tmp_path / "a.svg", tmp_path / "b.svg"]
    for source, output in zip((GATE, str(report)), drawn, strict=True):
        rprime("plot", source, "--figure", "per_class", "--output", str(output))
    first, two = (texts(path.read_bytes()) for path in drawn)
    assert [text for text in first if "gate" not in text] == [
        t for t in two if "Evaluation" not in t
    ]
    ran = rprime("plot", str(other), "--figure", "radar")
    assert (ran.returncode, "--table" in ran.stderr) == (2, True)


def test_a_csv_is_compared_with_another(rprime: Run, tmp_path: Path) -> None:
    for name, wrong in (("new.csv", "b"), ("old.csv", "a")):
        rows = ["y_true,y_pred", *["a,a", "b,b"] * 20, *[f"a,{wrong}"] * 5]
        (tmp_path / name).write_text("\n".join(rows))
    output = tmp_path / "figure.png"
    new, old = (str(tmp_path / name) for name in ("new.csv", "old.csv"))
    arguments = ("--baseline", old, "--index", "recall", "--width", "400", "--scale", "1")
    ran = rprime("plot", new, "--figure", "radar", *arguments, "-o", str(output))
    assert ran.returncode == 0, ran.stderr
    assert size(output.read_bytes())[0] == 400


def test_scores_of_a_csv_are_drawn(rprime: Run, tmp_path: Path) -> None:
    rows = ["y_true,score:a,score:b", *["a,.7,.3", "b,.4,.6", "b,.8,.2"] * 9]
    (tmp_path / "scored.csv").write_text("\n".join(rows))
    output = tmp_path / "roc.svg"
    source = str(tmp_path / "scored.csv")
    ran = rprime("plot", source, "--figure", "roc", "-o", str(output))
    assert ran.returncode == 0, ran.stderr
    assert {"ROC curves", "a, area 0.5000", "at random"} <= set(texts(output.read_bytes()))
    ran = rprime("plot", GATE, "--figure", "roc", "-o", str(output))
    assert (ran.returncode, "no scores" in ran.stderr) == (2, True)
    ran = rprime("plot", source, "--figure", "roc", "--index", "recall", "-o", str(output))
    assert (ran.returncode, "has no index" in ran.stderr) == (2, True)


@pytest.mark.slow
def test_what_is_stored_is_drawn_the_same_here_and_there(
    rprime: Run, serve: Serve, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/rprime.db"
    with serve(RPRIME_STORE=url) as client:
        kept = [keep(client, matrix(int(v), version=v, model="net")) for v in "123"]
        identifier = kept[-1]["id"]
        server = ("--server", str(client.base_url))
        for source in (
            (identifier, "--figure", "radar", "--index", "recall"),
            ("--project", "pets", "--figure", "trend", "--index", "recall", "--class", "cat"),
            ("--project", "pets", "--figure", "boxes", "--by", "class"),
        ):
            here, there = tmp_path / "here.svg", tmp_path / "there.svg"
            for output, more in ((here, ()), (there, server)):
                ran = rprime("plot", *source, *more, "-o", str(output), RPRIME_STORE=url)
                assert ran.returncode == 0, ran.stderr
            assert here.read_bytes() == there.read_bytes()
        for more in ((), server):
            ran = rprime("plot", "0" * 26, "--figure", "radar", *more, RPRIME_STORE=url)
            assert ran.returncode == 2
            assert ran.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((GATE,), "--figure"),
        ((GATE, "--figure", "pie"), "pie"),
        (("--figure", "radar"), "name a file"),
        ((GATE, "--figure", "trend"), "--project"),
        ((GATE, "--figure", "radar", "-o", "x.gif"), ".svg, .png or .pdf"),
        ((GATE, "--figure", "radar", "-o", "no/such/x.svg"), "cannot write"),
        ((GATE, "--figure", "radar", "--index", "kappa"), "name a per-class index"),
        ((GATE, "--figure", "per_class", "--index", "kappa"), "shows classes"),
        ((GATE, "--figure", "radar", "--width", "1"), "320"),
        (("nowhere.csv", "--figure", "radar", "--store", "none"), "no store"),
    ],
)
def test_mistakes_are_explained(rprime: Run, arguments: tuple[str, ...], said: str) -> None:
    ran = rprime("plot", *arguments)
    assert ran.returncode == 2
    assert said in ran.stderr


def test_a_figure_is_the_same_every_time(rprime: Run, tmp_path: Path) -> None:
    paths = [tmp_path / "a.svg", tmp_path / "b.svg"]
    for path in paths:
        rprime("plot", GATE, "--figure", "confusion", "-o", str(path))
    assert paths[0].read_bytes() == paths[1].read_bytes()
