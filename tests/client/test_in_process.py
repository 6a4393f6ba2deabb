"""In-process: any column of any library, the same report, shown and framed."""

import copy
import datetime as dt
import html
import json
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from enum import IntEnum, StrEnum
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any, ClassVar

import httpx
import numpy as np
import pytest
from rich.console import Console

import rprime
from rprime import ProblemError
from rprime.client.values import LIBRARIES
from rprime.schemas.gate import Gates
from tests.command import run_here
from tests.report.drawings import size, texts

TRUE = ["cat", "cat", "dog", "eel"]
PREDICTED = ["cat", "dog", "dog", None]
DIGITS = [1, 1, 2, 10]
FOUND = [1, 2, 2, None]
Any_ = Any  # what a library of which nothing is known here gives


def library(name: str) -> Any_:
    """Import a library, or skip the test and say loudly that it did not run."""
    return pytest.importorskip(name, reason=f"NOT TESTED: {name} is not installed")


def columns() -> dict[str, Callable[[list[Any]], object]]:
    return {
        "list": list,
        "tuple": tuple,
        "iterator": iter,
        "numpy": lambda values: np.array(values, dtype=object),
        "masked": lambda values: np.ma.masked_array(
            [values[0] if value is None else value for value in values],
            [value is None for value in values],
        ),
        "pandas": lambda values: library("pandas").Series(values),
        "pandas.categorical": lambda values: library("pandas").Series(values, dtype="category"),
        "pandas.nullable": lambda values: library("pandas").array(values),
        "polars": lambda values: library("polars").Series(values),
        "pyarrow": lambda values: library("pyarrow").array(values),
        "pyarrow.chunked": lambda values: library("pyarrow").chunked_array([values]),
        "arrow.interface": lambda values: Exported(library("pyarrow").array(values)),
    }


class Exported:
    """A column of which nothing is known but that Arrow can read it."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __arrow_c_array__(self, schema: object = None) -> object:
        return self.array.__arrow_c_array__(schema)


class TestColumns:
    @pytest.mark.parametrize("kind", columns())
    @pytest.mark.parametrize(("true", "predicted"), [(TRUE, PREDICTED), (DIGITS, FOUND)])
    def test_each_gives_the_same_report(
        self, kind: str, true: list[Any], predicted: list[Any]
    ) -> None:
        make = columns()[kind]
        expected = rprime.evaluate(true, predicted).content
        assert rprime.evaluate(make(true), make(predicted)).content == expected

    def test_nan_in_predictions_is_unclassified(self) -> None:
        expected = rprime.evaluate(DIGITS, FOUND).content
        floats = np.array([1.0, 2.0, 2.0, np.nan])
        assert rprime.evaluate(np.array(DIGITS, dtype=np.int8), floats).content == expected
        pd = library("pandas")
        for missing in (pd.NA, np.nan, None):
            assert rprime.evaluate(DIGITS, [1, 2, 2, missing]).content == expected

    def test_scalars_of_numpy_and_enumerations_are_labels(self) -> None:
        class Animal(StrEnum):
            CAT = "cat"
            DOG = "dog"

        class Digit(IntEnum):
            ONE = 1
            TWO = 2

        animals = rprime.evaluate([Animal.CAT, Animal.DOG], [np.str_("cat"), "cat"])
        assert animals.content == rprime.evaluate(["cat", "dog"], ["cat", "cat"]).content
        digits = rprime.evaluate([Digit.ONE, np.int64(2)], [np.uint8(1), Digit.TWO])
        assert digits.content == rprime.evaluate([1, 2], [1, 2]).content

    def test_weights_and_groups_are_columns_too(self) -> None:
        for weights in ([1, 2, 0.5, 1], np.array([1, 2, 0.5, 1], dtype=np.float32)):
            report = rprime.evaluate(TRUE, PREDICTED, sample_weight=weights)
            assert report.counts.weight == 4.5
        grouped = rprime.evaluate(TRUE, PREDICTED, groups=np.array([1, 1, 2, 2]))
        assert grouped.content == rprime.evaluate(TRUE, PREDICTED, groups=[1, 1, 2, 2]).content

    @pytest.mark.parametrize(
        ("y_true", "said"),
        [
            ([1.5, 2], r"y_true\[0\]. is 1.5"),
            ([b"cat", b"dog"], r"y_true\[0\]. is a bytes.*\.decode\(\) or.*\.astype\(str\)"),
            ([dt.date(2026, 1, 1), None], "a date; a label is a string or an integer"),
            (np.eye(2), "more than one dimension.*a confusion matrix is `confusion_matrix"),
            (np.eye(2), r"numpy.argmax\(..., axis=1\) turns one-hot rows into classes"),
            (np.array([[1], [2]]), "more than one dimension.*; numpy.ravel makes it flat"),
            (np.array(3), "must have one value for each item"),
            ("ab", "is a str"),
            ({"a": 1}, "is a dict"),
            ({"a", "b"}, "is a set"),
            (7, "is an int"),
        ],
    )
    def test_what_names_no_class_is_refused(self, y_true: object, said: str) -> None:
        with pytest.raises((TypeError, ValueError), match=said):
            rprime.evaluate(y_true, [1, 2])

    def test_scores_are_no_labels(self) -> None:
        with pytest.raises(TypeError, match=r"one value for each item.*are `y_score="):
            rprime.evaluate([0, 1], np.eye(2))

    @pytest.mark.parametrize(
        ("wrong", "said"),
        [
            ({"population": "uniform"}, r'must be a mapping such as \{"prevalence": "uniform"\}'),
            ({"slices": "region"}, r'must be a mapping by name such as \{"region": \["EU"'),
            ({"cost": 5}, "`cost` is an int; it must be a matrix, such as a list of rows"),
            ({"indices": 5}, "`indices` is an int; it must be a list"),
            ({"labels": "abc"}, "`labels` is a str; it must be a list"),
        ],
    )
    def test_an_argument_of_another_kind_is_told_its_own(
        self, wrong: dict[str, Any], said: str
    ) -> None:
        with pytest.raises(TypeError, match=said):
            rprime.evaluate([0, 1], [0, 1], **wrong)

    @pytest.mark.parametrize("gates", ["gates.yaml", [{"index": "accuracy", "min_value": 0.9}]])
    def test_gates_are_a_mapping(self, gates: Any) -> None:
        with pytest.raises(TypeError, match=r'such as \{"rules": \[...\]\}'):
            rprime.evaluate([0, 1], [0, 1], gates=gates)

    def test_a_whole_frame_is_no_column(self) -> None:
        for name in LIBRARIES:
            frame = library(name).DataFrame({"y": [1, 2]})
            with pytest.raises(TypeError, match="whole table"):
                rprime.evaluate(frame, [1, 2])

    @pytest.mark.parametrize("weight", [float("nan"), float("inf"), True, "1", None])
    def test_weights_are_finite_numbers(self, weight: object) -> None:
        with pytest.raises((TypeError, ValueError), match=r"sample_weight\[1\]"):
            rprime.evaluate([1, 2], [1, 2], sample_weight=[1, weight])

    def test_a_missing_true_label_is_a_problem_with_its_place(self) -> None:
        with pytest.raises(ProblemError) as caught:
            rprime.evaluate([1, np.nan], [1, 2])
        assert caught.value.errors[0].pointer == "/y_true/1"


class TestTables:
    COUNTS = ((5, 1), (2, 7))

    def test_an_array_and_a_frame_give_the_same_report(self) -> None:
        labels = ["ill", "well"]
        expected = rprime.evaluate(confusion_matrix=self.COUNTS, labels=labels).content
        counts = np.array(self.COUNTS)
        pd, pl = library("pandas"), library("polars")
        for frame in (
            pd.DataFrame(counts, columns=labels),
            pd.DataFrame(counts, columns=labels, index=labels),
            pl.DataFrame(counts, schema=labels),
        ):
            assert rprime.evaluate(confusion_matrix=frame).content == expected
        assert rprime.evaluate(confusion_matrix=counts, labels=labels).content == expected

    def test_a_cross_tabulation_is_a_table(self) -> None:
        pd = library("pandas")
        true, predicted = pd.Series(["a", "b", "b"]), pd.Series(["a", "b", "a"])
        report = rprime.evaluate(confusion_matrix=pd.crosstab(true, predicted), table=True)
        assert (report.labels, report.table and report.table.cells) == (
            ["a", "b"],
            [(0, 0, 1), (1, 0, 1), (1, 1, 1)],
        )

    def test_rows_in_another_order_are_refused(self) -> None:
        frame = library("pandas").DataFrame([[1, 2], [3, 4]], index=["b", "a"], columns=["a", "b"])
        with pytest.raises(ValueError, match="reindex"):
            rprime.evaluate(confusion_matrix=frame)

    def test_labels_that_contradict_the_columns_are_refused(self) -> None:
        frame = library("pandas").DataFrame([[1, 2], [3, 4]], columns=["a", "b"])
        with pytest.raises(ValueError, match="remove them"):
            rprime.evaluate(confusion_matrix=frame, labels=["b", "a"])

    def test_options_that_are_matrices_are_arrays(self) -> None:
        cost = np.array([[0, 1], [5, 0]])
        report = rprime.evaluate(confusion_matrix=self.COUNTS, cost=cost, kappa_weights="linear")
        assert report.overall["expected_cost"].value == pytest.approx(11 / 15)
        assert report.options.kappa_weighting == "linear"


class TestRequests:
    def test_gates_are_a_mapping_or_the_model(self) -> None:
        rules = {"rules": [{"index": "accuracy", "min_value": 0.5}]}
        arguments: Any = {"confusion_matrix": [[50, 1], [1, 50]]}
        as_mapping = rprime.evaluate(**arguments, gates=rules)
        as_model = rprime.evaluate(**arguments, gates=Gates.model_validate(rules))
        assert (as_mapping.verdict, as_model.content) == ("pass", as_mapping.content)

    @pytest.mark.parametrize("name", ["gates", "baseline", "test_set"])
    def test_a_name_in_the_place_of_a_mapping_is_refused(self, name: str) -> None:
        wrong: Any = {name: "gates.yaml"}
        with pytest.raises(TypeError, match=f"`{name}` is a str"):
            rprime.evaluate(TRUE, PREDICTED, **wrong)

    def test_nothing_is_kept_in_the_process(self) -> None:
        with pytest.raises(ProblemError, match=r"a `rprime.Client` asks a service"):
            rprime.evaluate(TRUE, PREDICTED, project="shop")

    def test_none_is_left_out(self) -> None:
        report = rprime.evaluate(TRUE, PREDICTED, gates=None, baseline=None, indices=None)
        assert report.content == rprime.evaluate(TRUE, PREDICTED).content

    def test_a_misspelt_option_is_a_problem(self) -> None:
        wrong: Any = {"gate": {}}
        with pytest.raises(ProblemError, match="Did you mean `gates`"):
            rprime.evaluate(TRUE, PREDICTED, **wrong)

    def test_a_baseline_takes_columns_too(self, client: httpx.Client) -> None:
        report = rprime.evaluate(TRUE, PREDICTED, baseline={"y_pred": np.array(TRUE)})
        assert report.comparison is not None
        assert report.comparison.comparability == "same_items"
        body = {"y_true": TRUE, "y_pred": PREDICTED, "baseline": {"y_pred": TRUE}}
        assert report.content == client.post("/evaluate", json=body).content


class TestRepr:
    KEYS = ("accuracy", "macro_f1", "f1", "precision")

    def test_values_are_readable(self) -> None:
        report = rprime.evaluate(TRUE, PREDICTED, indices=self.KEYS)
        lines = repr(report.overall).splitlines()
        assert lines[0] == "<Values: 2 indices"
        assert lines[1].split()[:2] == ["accuracy", "0.5000"]
        every = repr(rprime.evaluate(TRUE, PREDICTED, families=["core"]).overall).splitlines()
        assert (len(every), every[-1].split()[0]) == (22, "...")
        assert "None" not in repr(report.overall["accuracy"])
        assert "precision  none (no_predictions)" in repr(report.per_class["eel"])

    def test_every_value_that_is_listed_can_be_read(self) -> None:
        # At a population the estimate has a name that is an alias elsewhere.
        population = {"strata": "predicted", "shares": {"cat": 0.8, "dog": 0.2}}
        table = [[95, 12], [5, 88]]
        report = rprime.evaluate(
            confusion_matrix=table, labels=["cat", "dog"], population=population
        )
        dog = report.per_class["dog"]
        assert set(dict(dog)) == set(dog)
        assert dog["estimated_prevalence"].value == pytest.approx(0.8 * 0.05 + 0.2 * 0.88)
        assert dog.estimated_prevalence is dog["estimated_prevalence"]

    def test_a_comparison_says_what_it_is(self) -> None:
        gates = {"rules": [{"index": "accuracy", "max_drop": 0.9}]}
        answer = rprime.compare(
            {"y_true": TRUE, "y_pred": PREDICTED}, {"y_pred": TRUE}, gates=gates
        )
        assert repr(answer) == f"<Comparison: same_items, paired, {answer.verdict}>"
        compared = answer.comparison
        assert compared is not None
        assert repr(compared).startswith("<Differences: same_items, paired, ")
        assert repr(compared).endswith(f" overall differences, {len(compared.per_class)} classes>")
        assert compared.overall.accuracy is compared.overall["accuracy"]
        assert "None" not in repr(compared.overall).splitlines()[1]
        assert compared.flips.moved == answer.to_dict()["comparison"]["flips"]["moved"]
        with pytest.raises(KeyError, match="did you mean 'accuracy'"):
            compared.overall["acuracy"]
        with pytest.raises(KeyError, match="there is no class 'none' here"):
            compared.per_class["none"]

    def test_what_is_not_there_has_a_hint(self) -> None:
        report = rprime.evaluate([1, 2, 2], [1, 2, 1], indices=self.KEYS)
        for name, meant in {"f1": "macro_f1", "acuracy": "accuracy"}.items():
            with pytest.raises(KeyError, match=f"did you mean '{meant}'"):
                report.overall[name]
            with pytest.raises(AttributeError, match=f"did you mean '{meant}'"):
                getattr(report.overall, name)
        each = r"did you mean 'macro_f1' or per_class\[\.\.\.\]\['f1'\]\?"
        with pytest.raises(KeyError, match=each):
            rprime.evaluate(TRUE, PREDICTED).overall["f1_score"]
        with pytest.raises(KeyError, match=r"did you mean 'f1' or overall\['macro_f1'\]\?"):
            rprime.evaluate(TRUE, PREDICTED).per_class["cat"]["macro_f1"]
        with pytest.raises(KeyError, match=r"there is no index 'specificity' here.$"):
            report.per_class[1]["specificity"]
        for name, meant in {
            "accuracy": r"overall\['accuracy'\]",
            "precision": r"per_class\[...\]\['precision'\]",
            "to_dataframe": "to_frame",
            "overal": "overall",
        }.items():
            with pytest.raises(KeyError, match=f"no '{name}'; did you mean {meant}"):
                report[name]
            with pytest.raises(AttributeError, match=f"no '{name}'; did you mean {meant}"):
                getattr(report, name)
        unpickled = pickle.loads(pickle.dumps(report))  # noqa: S301 (its own bytes)
        for copied in (copy.deepcopy(report), unpickled):
            assert copied.overall.keys() == report.overall.keys()
        for label, meant in {3: "'1' or '2'", "l": "'1' or '2'"}.items():
            with pytest.raises(KeyError, match=f"did you mean {meant}"):
                report.per_class[label]
        with pytest.raises(KeyError, match="did you mean 'cat'"):
            rprime.evaluate(TRUE, PREDICTED).per_class["Cat"]

    def test_a_class_of_numbers_is_found_by_its_number(self) -> None:
        per_class = rprime.evaluate([1, 7, 7], [1, 7, 1]).per_class
        for seven in (7, "7", np.int64(7)):
            assert per_class[seven].support == 2
            assert seven in per_class
        assert per_class.keys() == {"1", "7"}
        assert repr(per_class) == "<Classes: 2 of them, '1', '7'>"

    def test_what_is_long_is_counted(self) -> None:
        gates = {"rules": [{"index": "recall", "classes": "all", "min_value": 0.1}]}
        report = rprime.evaluate(range(20), range(20), gates=gates, baseline={"y_pred": [0] * 20})
        assert repr(report) == f"<Report: 20 classes, 20 items, {report.verdict}>"
        assert report.gate is not None
        assert "results=<20 of them>" in repr(report.gate)
        assert repr(report.gate.results[0]).startswith("<Result: ")
        table: Any = {"confusion_matrix": [[50, 3], [4, 60]]}
        accuracy_gate = {"rules": [{"index": "accuracy", "max_drop": 0.1}]}
        shown = (report.gate, report.gate.results[0], report.comparison)
        for answer in (*shown, rprime.lint(**table, gates=accuracy_gate, replicates=200)):
            assert len(repr(answer)) < 800


class TestFrames:
    @pytest.mark.parametrize("name", LIBRARIES)
    def test_the_classes_are_rows(self, name: str) -> None:
        frame = rprime.evaluate(TRUE, PREDICTED).to_frame(library(name).__name__)
        assert type(frame).__module__.startswith(name)
        assert list(frame["class"]) == ["cat", "dog", "eel"]
        assert list(frame["support"]) == [2, 1, 1]
        assert list(frame["recall"]) == [0.5, 1, 0]

    @pytest.mark.parametrize("name", LIBRARIES)
    def test_values_have_their_intervals_and_reasons(self, name: str) -> None:
        report = rprime.evaluate(TRUE, PREDICTED)
        frame = report.to_frame(library(name), of="overall")
        place = list(frame["index"]).index("accuracy")
        assert (frame["low"][place], frame["high"][place]) == report.overall["accuracy"].interval
        rows = len(report.overall) + sum(map(len, report.per_class.values()))
        assert len(report.to_frame(library(name), of="values")) == rows

    def test_without_a_library_it_names_both(self) -> None:
        code = (
            "import sys, rprime; sys.modules.update(pandas=None, polars=None)\n"
            "import importlib.util as u; real = u.find_spec\n"
            "import rprime.client.values as f\n"
            "f.find_spec = lambda name: None if name in f.LIBRARIES else real(name)\n"
            "for name in f.LIBRARIES: del sys.modules[name]\n"
            "try: rprime.evaluate(['a', 'b'], ['a', 'b']).to_frame()\n"
            "except ImportError as error: print(error)"
        )
        output = subprocess.check_output([sys.executable, "-c", code], text=True)
        assert "pip install pandas" in output
        assert "pip install polars" in output

    def test_unknown_choices_are_refused(self) -> None:
        report = rprime.evaluate(TRUE, PREDICTED)
        wrong: Any = "dask"
        with pytest.raises(ValueError, match="pandas, polars"):
            report.to_frame(wrong)
        with pytest.raises(ValueError, match="per_class, overall, values"):
            report.to_frame(of=wrong)


def page_of(shown: str) -> str:
    """Return the page in the frame that a notebook shows."""
    (page,) = re.findall(r'srcdoc="([^"]*)"', shown)
    return html.unescape(page)


class TestDisplay:
    GATES: ClassVar[Any] = {"rules": [{"index": "accuracy", "min_value": 1, "test": "none"}]}
    HOSTILE = ("<script>alert(1)</script>", "[red]x[/red]", "=cmd()", "אבג", "a|b")

    def test_a_notebook_shows_names_as_text(self) -> None:
        shown = rprime.evaluate(self.HOSTILE, self.HOSTILE)._repr_html_()
        # In a frame, the page stands in an attribute.
        assert not {"<script>", "<bdi>"} & set(re.findall("<[^>]*>", shown))
        page = page_of(shown)
        assert "<script>" not in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
        assert "<bdi>אבג</bdi>" in page

    def test_a_terminal_shows_names_as_text(self) -> None:
        console = Console(record=True, width=200, file=StringIO())
        console.print(rprime.evaluate(self.HOSTILE, self.HOSTILE))
        text = console.export_text()
        assert "[red]x[/red]" in text
        assert "Accuracy" in text

    def test_it_is_the_page_of_the_command(self, tmp_path: Path) -> None:
        rows = [(t, p or "") for t, p in zip(TRUE, PREDICTED, strict=True)]
        file = tmp_path / "items.csv"
        file.write_text("\n".join(map(",".join, [("y_true", "y_pred"), *rows])))
        (tmp_path / "gates.yaml").write_text(json.dumps(self.GATES))
        flags = ("--gates", str(tmp_path / "gates.yaml"), "--html", str(tmp_path / "a.html"))
        assert run_here("evaluate", str(file), *flags).returncode == 1
        expected = (tmp_path / "a.html").read_text(encoding="utf-8")
        page = page_of(rprime.evaluate(TRUE, PREDICTED, gates=self.GATES)._repr_html_())
        assert page == expected
        heat = '<svg class="figure heat"'
        for part in ("Gate failed", "Confusion", heat, "interval", "few_items"):
            assert part in page, part

    def test_a_report_of_a_service_is_shown_with_its_table(self, server: str) -> None:
        arguments: Any = {"y_true": TRUE * 9, "y_pred": PREDICTED * 9, "gates": self.GATES}
        with rprime.Client(server) as client:
            whole, bare = client.evaluate(table=True, **arguments), client.evaluate(**arguments)
        assert page_of(whole._repr_html_()) == page_of(rprime.evaluate(**arguments)._repr_html_())
        assert "table=True" in bare._repr_html_()
        console = Console(record=True, width=200, file=StringIO())
        console.print(bare)
        assert "36 items, fail" in console.export_text()
        with pytest.raises(ValueError, match="table=True"):
            bare.plot()

    @pytest.mark.parametrize("figure", ["confusion", "radar", "per_class"])
    def test_a_figure_is_shown_and_saved(self, figure: Any, tmp_path: Path) -> None:
        report = rprime.evaluate(TRUE, PREDICTED)
        drawn = report.plot(figure, width=400)
        assert {"cat", "dog", "eel"} <= set(texts(drawn._repr_svg_().encode()))
        drawn.save(tmp_path / "a.svg")
        assert (tmp_path / "a.svg").read_text(encoding="utf-8") == drawn.svg
        drawn.save(str(tmp_path / "a.png"), scale=1)
        assert size((tmp_path / "a.png").read_bytes())[0] == 400
        with pytest.raises(ValueError, match=r"is \.svg, \.png or \.pdf"):
            drawn.save("a.gif")

    def test_what_cannot_be_drawn_is_said(self) -> None:
        report = rprime.evaluate(TRUE, PREDICTED)
        with pytest.raises(ValueError, match="name a per-class index"):
            report.plot("radar", indices=["kappa"])
        with pytest.raises(ValueError, match="Did you mean `recall`"):
            report.plot("radar", indices=["recal"])
        with pytest.raises(ValueError, match="no scores to draw: send `y_score`"):
            report.plot("roc")
        wrong: Any = "rok"
        with pytest.raises(ValueError, match="confusion, radar, per_class"):
            report.plot(wrong)

    def test_grouped_items_keep_their_intervals(self) -> None:
        groups = np.repeat(range(12), 20)
        true = np.repeat(["a", "b"], 120)
        report = rprime.evaluate(true, np.where(groups % 4, true, "a"), groups=groups)
        low, high = report.overall.accuracy.interval or (0, 0)
        assert f"[{low:.4f}, {high:.4f}]" in page_of(report._repr_html_())


ITEMS = ["cat", "dog", "dog", "eel"]
SCORES = [[0.75, 0.25, 0.0], [0.25, 0.5, 0.25], [0.5, 0.25, 0.25], [0.0, 0.25, 0.75]]
NAMES = ["cat", "dog", "eel"]
TABLES: dict[str, Callable[[], object]] = {
    "numpy": lambda: np.array(SCORES),
    "numpy.float32": lambda: np.array(SCORES, np.float32),
    "numpy.fortran": lambda: np.asfortranarray(SCORES),
    "rows": lambda: [np.array(row) for row in SCORES],
    "pandas": lambda: library("pandas").DataFrame(SCORES, columns=NAMES),
    "pandas.numbered": lambda: library("pandas").DataFrame(SCORES),
    "polars": lambda: library("polars").DataFrame(SCORES, schema=NAMES, orient="row"),
}


class TestScores:
    @pytest.mark.parametrize("kind", TABLES)
    def test_every_table_is_what_lists_are(self, kind: str) -> None:
        plain = rprime.evaluate(ITEMS, y_score=SCORES, labels=NAMES, curves=True)
        bare = rprime.evaluate(ITEMS, y_score=SCORES, curves=True)  # whose columns have no names
        report = rprime.evaluate(ITEMS, y_score=TABLES[kind](), curves=True)
        named = kind in {"pandas", "polars"}
        assert report.content == (plain if named else bare).content
        assert plain.overall["log_loss"].value == pytest.approx(
            -np.log([0.75, 0.5, 0.25, 0.75]).mean()
        )

    def test_of_two_classes_one_column_is_enough(self) -> None:
        second = np.array([0.25, 0.5, 0.75])
        report = rprime.evaluate([0, 1, 1], y_score=second)
        assert report.content == rprime.evaluate([0, 1, 1], y_score=second.tolist()).content
        frame = library("pandas").DataFrame({0: 1 - second, 1: second})
        assert report.overall == rprime.evaluate([0, 1, 1], y_score=frame).overall

    def test_a_service_gives_the_same_bytes(self, server: str) -> None:
        options: Any = {"reject": "sweep", "baseline": {"y_score": SCORES[::-1]}, "labels": NAMES}
        with rprime.Client(server) as client:
            report = client.evaluate(ITEMS, y_score=np.array(SCORES), **options)
        assert report.content == rprime.evaluate(ITEMS, y_score=SCORES, **options).content
        assert report.overall.brier_score.value is not None

    def test_a_baseline_names_its_columns_as_the_candidate_does(self) -> None:
        frame = library("pandas").DataFrame
        turned, names = [row[::-1] for row in SCORES], NAMES[::-1]
        same = rprime.evaluate(ITEMS, y_score=SCORES, labels=NAMES, baseline={"y_score": SCORES})
        for arguments in (
            {"y_score": frame(turned, columns=names), "baseline": {"y_score": TABLES["pandas"]()}},
            {"y_score": SCORES, "baseline": {"y_score": frame(turned, columns=names)}},
            {"y_score": frame(SCORES), "baseline": {"y_score": frame(SCORES)}},
        ):
            reordered = rprime.evaluate(ITEMS, **arguments)
            for report in (same, reordered):
                assert report.comparison is not None
                assert report.comparison.overall["log_loss"].value == 0
        bare: Any = {"y_score": turned}
        named = frame(turned, columns=names)
        explicit = rprime.evaluate(ITEMS, y_score=named, labels=names, baseline=bare)
        assert explicit.comparison is not None
        assert explicit.comparison.overall["log_loss"].value == 0
        with pytest.raises(TypeError, match="name the columns on both sides, or pass `labels`"):
            rprime.evaluate(ITEMS, y_score=named, baseline=bare)
        with pytest.raises(TypeError, match="name the columns on both sides, or pass `labels`"):
            rprime.compare({"y_true": ITEMS, "y_score": named}, bare)

    def test_a_column_that_is_no_class_is_refused(self) -> None:
        frame = library("pandas").DataFrame
        scores = {"a": [0.9, 0.2], "b": [0.1, 0.8]}
        with pytest.raises(ValueError, match="sum to 1 without `id`: leave out"):
            rprime.evaluate(["a", "b"], y_score=frame({"id": [17, 18], **scores}))
        absent = frame({**scores, "c": [0.0, 1e-7]})
        assert rprime.evaluate(["a", "b"], y_score=absent).labels == ["a", "b", "c"]

    def test_what_is_no_number_is_named(self) -> None:
        broken = np.array(SCORES)
        broken[2, 1] = np.nan
        with pytest.raises(ValueError, match=r"`y_score\[2\]\[1\]` is nan"):
            rprime.evaluate(ITEMS, y_score=broken)
        with pytest.raises(ValueError, match="columns of `y_score`"):
            rprime.evaluate(ITEMS, y_score=TABLES["pandas"](), labels=NAMES[::-1])


def test_the_package_loads_nothing_until_it_is_asked_for() -> None:
    code = (
        "import sys, rprime; heavy = {'httpx', 'numpy', 'pydantic', 'fastapi', 'rich'}\n"
        "assert not heavy & set(sys.modules); assert 'Client' in dir(rprime)\n"
        "from rprime import evaluate; evaluate(['a', 'b'], ['a', 'b'])\n"
        "unused = {'fastapi', 'starlette', 'uvicorn', 'httpx', 'sqlalchemy', 'structlog'}\n"
        "assert not unused & set(sys.modules), unused & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_name_of_the_package_is_there() -> None:
    for name in rprime.__all__:
        assert getattr(rprime, name) is not None
    with pytest.raises(AttributeError):
        import_module("rprime").nothing  # noqa: B018 (asking is the point)
