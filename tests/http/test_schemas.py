"""The published contract and the reader say the same, and the texts come from the catalog."""

import inspect
import json
from dataclasses import MISSING, fields
from random import Random
from typing import Any, Literal, get_args, get_origin, get_type_hints

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticUndefined

from rprime.application import read_request
from rprime.client.methods import Methods
from rprime.client.request import BatchRequest, OptionFields, OriginFields, SideFields
from rprime.core.catalog import CLASS_INDICES, INDICES, KEYS, OVERALL_INDICES
from rprime.core.gates import rules as core_rules
from rprime.core.gates.kinds import RULE_KINDS
from rprime.core.gates.rules import mistakes
from rprime.core.index import REASONS
from rprime.core.index_names import ALIASES
from rprime.core.options import Options, Paging
from rprime.evidence import names
from rprime.problems.problem import Problem
from rprime.report.charts.sheet import MEDIA_TYPES
from rprime.schemas.document import ARRAYS
from rprime.schemas.gate import Gates, Rule, Waiver
from rprime.schemas.history import (
    BadgeQuery,
    CatalogQuery,
    FigureQuery,
    HistoryFigureQuery,
    IndicesQuery,
    LeaderboardQuery,
    ListQuery,
    NamesQuery,
    ProjectSettings,
    PurgeRequest,
    TrendQuery,
)
from rprime.schemas.provenance import (
    OriginListed,
    OriginShown,
    OriginWanted,
    Provenance,
    Reference,
    StoredSide,
)
from rprime.schemas.published import components, one_of
from rprime.schemas.report import catalog
from rprime.schemas.request import (
    EVALUATE_REQUESTS,
    CellsEvidence,
    ClassesWanted,
    CompareRequest,
    ConstantBaseline,
    EvaluateOptions,
    LabelsEvidence,
    MatrixEvidence,
    PredictedScoresEvidence,
    PredictionsEvidence,
    PublishedOptions,
    RequestOptions,
    ScoreOptions,
    ScoresEvidence,
)
from rprime.schemas.simulation import LINT_REQUESTS, PLAN_REQUESTS
from rprime.schemas.slice_search import SEARCH_REQUESTS
from rprime.schemas.studies import AgreementRequest, DiscriminationRequest
from rprime.schemas.violations import request_fields
from rprime.settings import Limits
from rprime.store.records import NAMES
from tests.http.test_openapi_examples import DOCUMENT

SCHEMA = {**one_of(EVALUATE_REQUESTS), "components": {"schemas": components()}}
CONTRACT = Draft202012Validator(SCHEMA)
LIMITS = Limits()


def accepted(content: object) -> bool:
    try:
        read_request(orjson.dumps(content), LIMITS)
    except Problem:
        return False
    return True


NUMBER = st.sampled_from([0, 1, 2, 3, 0.5, 2.0, 2**53 - 1])
BAD: st.SearchStrategy[Any] = st.sampled_from([-1, 2**53, "7", True, None, [], {}])
LABEL = st.sampled_from(["a", "b", "é", "c d", "\u200b", "", " "])
INTEGER = st.sampled_from([0, 1, 2, -5, 2.0, 2.5, 2**53, True, "0"])


def rows(element: st.SearchStrategy[Any], k: int) -> st.SearchStrategy[Any]:
    return st.lists(st.lists(element, min_size=k, max_size=k), min_size=k, max_size=k)


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    """Draw requests that are right, or wrong in a way that a schema can see."""
    k = draw(st.integers(1, 3))
    number = draw(st.sampled_from([NUMBER, NUMBER, NUMBER | BAD]))
    label = draw(st.sampled_from([st.sampled_from(["a", "b"]), st.integers(7, 8), LABEL, INTEGER]))
    labels: list[list[Any]] = [
        ["a", "b", "c"],
        ["a", "b", "c"],
        [0, 1, 2],
        ["\u202e", "a", "b"],
        ["a", 1, "b"],
    ]
    evidence = {
        "confusion_matrix": rows(number, k),
        "cells": st.lists(
            st.tuples(st.integers(0, k - 1), st.integers(0, k - 1), number), min_size=1
        ),
        "labels": st.sampled_from(labels).map(lambda choices: choices[:k]),
        "y_true": st.lists(label, min_size=k, max_size=k),
        "y_pred": st.lists(label | st.none(), min_size=k, max_size=k),
    }
    kinds = [
        ["confusion_matrix"],
        ["confusion_matrix", "labels"],
        ["cells", "labels"],
        ["y_true", "y_pred"],
        ["y_true", "y_pred"],
    ]
    wrong = [["cells"], ["y_true"], ["labels"], ["confusion_matrix", "y_true", "y_pred"]]
    chosen = draw(st.sampled_from(kinds * 3 + wrong))
    more = {
        "axis": st.sampled_from(["rows_are_true", "rows_are_predicted", "rows"]),
        "unclassified": st.lists(number, min_size=k, max_size=k),
        "sample_weight": st.lists(number, min_size=k, max_size=k) | st.none(),
        "cell_weights": rows(number, k),
        "beta": st.sampled_from([1, 0.5, 2, 0, -1, "1", True, None, 10_000]),
        "undefined": st.sampled_from(["null", "zero", "one", "nan", None]),
        "confidence": st.sampled_from([0.9, 0.99, 0, 1, "0.9"]),
        "exact": st.sampled_from([True, False, 1, "yes"]),
        "intervals": st.sampled_from([True, False, None, 0]),
        "indices": st.sampled_from([["accuracy"], ["f1", "kappa"], [], ["f2"], "f1", [1]]),
        "kappa_weights": st.sampled_from(["linear", "quadratic", "cubic", None]),
        "gatez": st.just(1),
    }
    if "y_true" in chosen:
        del more["cell_weights"]  # how many classes occur is nothing a schema can see
    optional = draw(st.lists(st.sampled_from(sorted(more)), max_size=2, unique=True))
    content: dict[str, Any] = draw(
        st.fixed_dictionaries(
            {name: evidence[name] for name in chosen} | {name: more[name] for name in optional}
        )
    )
    return content


def beyond_a_schema(content: dict[str, Any]) -> bool:
    """Whether a request is wrong in a way that only the reader can see."""
    items = [content.get("y_true"), content.get("y_pred")]
    if not all(isinstance(column, list) for column in items):
        return False
    true, predicted = items
    assert true is not None
    assert predicted is not None
    kinds = {
        next(kind for kind in (bool, str, object) if isinstance(label, kind))
        for label in (*true, *predicted)
        if label is not None
    }
    if len(kinds) > 1:
        return True
    occurring = {str(label) for label in (*true, *predicted) if label is not None}
    return len({name.strip() for name in occurring}) < len(occurring)


@given(requests())
@example({"y_true": [0], "y_pred": [True]})
def test_the_reader_accepts_what_the_contract_accepts(content: dict[str, Any]) -> None:
    content = json.loads(json.dumps(content))
    if accepted(content) != CONTRACT.is_valid(content):
        assert CONTRACT.is_valid(content)
        assert beyond_a_schema(content), content


ELEMENTS: dict[str, list[Any]] = {
    "counts": [0, 1, 2, 3, 0.5, 2.0, 2**53 - 1],
    "names": ["a", "b", "c", "é", "c d", "a" * 128],
    "integers": [0, 1, 2, -5, 2**53 - 1],
    "booleans": [True, False],
    "scores": [0.0, 0.25, 0.5, 1, -3.5, 2**53 - 1],
    "bad": [-1, 2**53, 1e300, "7", "", "a" * 129, True, None, [], {}, [1], 2.5, "\u202e", " "],
}
RELATED = {
    *("wrong_length", "not_square", "totals", "undeclared_label", "twin_labels", "mixed_labels"),
    "class_number",
    "no_true_class",
    # The pattern of a name, which Python's regular expressions check beside the models.
    "class_name",
}
"""Codes of what the reader alone refuses: no model relates elements and lengths."""


class Bodies:
    """Bodies of evidence, two thirds of them right but for what relates their members."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311 (no secret, but the same each time)

    def array(self, kind: str, n: int) -> Any:
        """Return an array; one of fifteen has another length, an element or a type of its own."""
        values = [self.random.choice(ELEMENTS[kind]) for _ in range(n)]
        chance = self.random.random()
        if chance < 0.03:
            values[self.random.randrange(n)] = self.random.choice(ELEMENTS["bad"])
        elif chance < 0.05:
            del values[0]
        elif chance < 0.06:
            return self.random.choice([None, {}, "a", 3, True, [[]]])
        return values

    def rows(self, kind: str, n: int, k: int) -> Any:
        values: Any = self.array("counts", n)
        return [self.array(kind, k) for _ in values] if isinstance(values, list) else values

    def body(self) -> dict[str, Any]:
        k, n = self.random.randint(1, 4), self.random.randint(1, 6)
        label = self.random.choice(["names", "names", "integers", "booleans"])
        classes = ELEMENTS[label][:k]
        k = len(classes)
        places = range(k)
        items = {"y_true": self.array(label, n), "y_pred": self.array(label, n)}
        cells = self.rows("counts", n, 3)
        if isinstance(cells, list):
            for cell in cells:
                if isinstance(cell, list) and self.random.random() < 0.9:
                    cell[:2] = self.random.choices(places, k=2)
        kinds: list[dict[str, Any]] = [
            {"confusion_matrix": self.rows("counts", k, k)},
            {"labels": classes, "cells": cells},
            items,
            {"y_true": items["y_true"], "y_score": self.rows("scores", n, k), "labels": classes},
        ]
        content = self.random.choice(kinds)
        per_item = "y_true" in content
        more = {
            "labels": self.array(label, k),
            "sample_weight": self.array("counts", n),
            "groups": self.array(self.random.choice(["names", "integers"]), n),
            "unclassified": self.array("counts", k),
            "spurious": self.array("counts", k),
            "cost": self.rows("scores", k, k),
        }
        allowed = ["sample_weight", "groups"] if per_item else ["labels", "unclassified", "cost"]
        for name in self.random.sample(sorted(more), 1) * (self.random.random() < 0.1):
            content[name] = more[name]
        for name in self.random.sample(allowed, 1) * (self.random.random() < 0.4):
            content[name] = more[name]
        return content


def refusals(content: object) -> set[str]:
    """Return the codes with which the reader refuses a body; none if it accepts it."""
    try:
        read_request(orjson.dumps(content), LIMITS)
    except Problem as problem:
        return {violation.code for violation in problem.errors} or {problem.code}
    return set()


def whole(text: str) -> float:
    """Read 2.0 as the integer that JSON Schema takes it for, and Pydantic does not."""
    number = float(text)
    return int(number) if number.is_integer() else number


def test_arrays_are_accepted_as_pydantic_accepts_them() -> None:
    bodies = Bodies(seed=7)
    numbers = [0, 0]
    for _ in range(10_000):
        body = bodies.body()
        kinds = ("confusion_matrix", "cells", "y_pred", "y_score")
        model = EVALUATE_REQUESTS[next(i for i, kind in enumerate(kinds) if kind in body)]
        try:
            model.model_validate(json.loads(json.dumps(body), parse_float=whole))
        except ValidationError:
            assert refusals(body), body
            numbers[0] += 1
        else:
            assert refusals(body) <= RELATED, (body, refusals(body))
            numbers[1] += not refusals(body)
    assert min(numbers) > 2000, numbers


def test_the_contract_itself_is_valid() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_the_options_that_are_checked_are_those_that_are_published() -> None:
    kinds = [set(components()[kind.__name__]["properties"]) for kind in EVALUATE_REQUESTS]
    assert all(set(EvaluateOptions.model_fields) <= published for published in kinds)
    assert set(RequestOptions.model_fields) | set(ARRAYS) == set().union(*kinds)
    assert set().union(*kinds) <= request_fields()


def test_class_names_are_published_as_they_are_checked() -> None:
    validator = Draft202012Validator(components()["ClassName"])
    for name in ("a", "a b", "é", "\u200b", "a\n", "\x85", "", "  ", "x" * 128, "x" * 129, "🐈"):
        try:
            names.declared([name], "", 1)
        except Problem:
            assert not validator.is_valid(name), name
        else:
            assert validator.is_valid(name), name


def test_reports_describe_every_index_with_its_range() -> None:
    published = components()
    overall = published["Overall"]["properties"]
    assert list(overall) == list(OVERALL_INDICES)
    assert set(CLASS_INDICES) < set(published["ClassIndices"]["properties"])
    for name in ("Overall", "ClassIndices"):
        assert published[name]["additionalProperties"] == {"$ref": "#/components/schemas/Value"}
    assert overall["kappa"]["description"] == OVERALL_INDICES["kappa"].description
    shown = {"minimum": 0, "maximum": 1, "description": "In [0, 1]; null if undefined."}
    assert overall["accuracy"]["properties"]["value"] == shown
    assert published["Value"]["properties"]["reason"]["enum"] == list(REASONS[1:])


def test_the_catalog_lists_every_entry_once() -> None:
    entries = [(entry.scope, entry.key) for entry in catalog().items]
    assert entries == [(entry.scope, entry.key) for entry in INDICES]
    assert len(set(entries)) == len(entries)
    assert "Infinity" not in catalog().model_dump_json()
    assert "NaN" not in catalog().model_dump_json()


def test_keys_in_requests_are_those_of_the_catalog() -> None:
    # Symbols in capitals stand for the same indices as in small letters, which are here.
    small = {name: key for name, key in ALIASES.items() if name == name.lower()}
    capitals = ALIASES.keys() - small.keys()
    assert all(ALIASES[name] == small.get(name.lower(), name.lower()) for name in capitals)
    assert components()["IndexKey"]["enum"] == [*KEYS, *sorted(small)]


RULE = {"index": "r_prime", "classes": "all", "max_drop": 0.05}


def test_gates_become_rules_of_the_core() -> None:
    gate = Gates.model_validate(
        {
            "rules": [RULE, {"index": "accuracy", "min_value": 1, "severity": "warn"}],
            "effects": {"undecided": "pass"},
            "waivers": [
                {
                    "rule": "r_prime.max_drop",
                    "class": "cat",
                    "ceiling": 0.1,
                    "reason": "known",
                    "by": "me",
                    "expires": "2030-01-31",
                }
            ],
        }
    ).core()
    assert [rule.name for rule in gate.rules] == ["r_prime.max_drop", "accuracy.min_value"]
    assert gate.rules[0].classes == "all"
    assert gate.effects["undecided"] == "pass"
    assert gate.waivers[0].class_ == "cat"
    assert not list(mistakes(gate))


@pytest.mark.parametrize(
    "gates",
    [
        {},
        {"rules": [RULE], "alpha": 0.5},
        {"rules": [RULE], "alhpa": 0.1},
        {"rules": [{**RULE, "min_value": 0.5}]},
        {"rules": [{"index": "r_prime"}]},
        {"rules": [{**RULE, "index": "r_primes"}]},
        {"rules": [{**RULE, "max_drop": "0.05"}]},
        {"rules": [{**RULE, "classes": []}]},
        {"rules": [{**RULE, "clases": ["a"]}]},
        {"rules": [RULE], "effects": {"undefined": "pass"}},
        {"rules": [RULE], "effects": {"undefinde": "warn"}},
        {"rules": [RULE], "waivers": [{"rule": "x"}]},
    ],
)
def test_gates_that_could_be_misread_are_refused(gates: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Gates.model_validate(gates)


def test_provenance_and_baseline_are_bounded() -> None:
    assert Provenance.model_validate({"project": "digits", "tags": ["run 7"]}).project
    assert Reference.model_validate({"alias": "champion"}).alias
    for bad in ({"project": "x" * 129}, {"source": "x" * 3000}, {"tags": ["x" * 300]}):
        with pytest.raises(ValidationError):
            Provenance.model_validate(bad)


def test_every_origin_is_sent_stored_shown_listed_and_wanted() -> None:
    """A name that one of these lists lacks would be dropped without a word."""
    shown = {*OriginShown.model_fields}
    assert shown <= {*Provenance.model_fields}
    assert shown == {*OriginListed.model_fields}
    assert shown - {"project"} == {*OriginWanted.model_fields}
    assert shown - {"project"} == {*OriginFields.__annotations__}
    assert shown - {"project"} == {*NAMES} - {"test_set", "verdict"}


def names_in(*models: type[BaseModel]) -> set[str]:
    return {field.alias or name for model in models for name, field in model.model_fields.items()}


def arguments(name: str) -> dict[str, Any]:
    """Return the arguments of a method of the client by their names in JSON, with their types."""
    signature = inspect.signature(getattr(Methods, name), eval_str=True)
    types: dict[str, Any] = {}
    for parameter in list(signature.parameters.values())[1:]:
        if parameter.kind is parameter.VAR_KEYWORD:
            types |= get_type_hints(get_args(parameter.annotation)[0])
        else:
            types[parameter.name.removesuffix("_")] = parameter.annotation
    return types


EVIDENCE = (MatrixEvidence, CellsEvidence, LabelsEvidence, ScoresEvidence)
SIDES = (*EVIDENCE, PredictionsEvidence, PredictedScoresEvidence, StoredSide, ConstantBaseline)


@pytest.mark.parametrize(
    ("method", "models", "others"),
    [
        ("evaluate", EVALUATE_REQUESTS, {"table", "idempotency_key"}),
        ("compare", (CompareRequest,), set()),
        ("lint", LINT_REQUESTS, set()),
        ("plan", PLAN_REQUESTS, set()),
        ("weak_slices", SEARCH_REQUESTS, set()),
        ("agreement", (AgreementRequest,), set()),
        ("discrimination", (DiscriminationRequest,), set()),
        ("evaluations", (ListQuery,), {"project"}),
        ("trend", (TrendQuery,), {"project"}),
        ("leaderboard", (LeaderboardQuery,), {"project"}),
        ("badge", (BadgeQuery,), {"project"}),
        ("indices", (CatalogQuery,), set()),
        ("projects", (NamesQuery,), set()),
        ("set_project", (ProjectSettings,), {"project"}),
        ("purge", (PurgeRequest,), {"project"}),
        ("rendering", (IndicesQuery,), {"evaluation", "suffix"}),
        ("figure", (FigureQuery,), {"evaluation", "name", "form"}),
        ("project_figure", (HistoryFigureQuery,), {"project", "name", "form"}),
    ],
)
def test_the_client_takes_what_the_service_takes(
    method: str, models: tuple[type[BaseModel], ...], others: set[str]
) -> None:
    """Else the types of the client refuse an option, or invent one."""
    assert {*arguments(method)} - others == names_in(*models)


def test_sides_and_options_of_the_client_are_those_of_the_service() -> None:
    assert {*get_type_hints(SideFields)} == names_in(*SIDES)
    assert {*get_type_hints(OptionFields)} == names_in(PublishedOptions)
    assert {*get_type_hints(BatchRequest)} == names_in(*EVALUATE_REQUESTS)


def words(annotation: Any) -> set[Any]:
    """Return the words that a type allows."""
    if get_origin(annotation) is Literal:
        return {*get_args(annotation)}
    return set().union(*map(words, get_args(annotation)))


def test_the_client_and_the_document_know_each_form_of_a_picture() -> None:
    forms = [
        {*parameter["schema"]["enum"]}
        for path, operations in DOCUMENT["paths"].items()
        if "{form}" in path
        for parameter in operations["get"]["parameters"]
        if parameter["name"] == "form"
    ]
    forms += [words(arguments(method)["form"]) for method in ("figure", "project_figure")]
    assert forms == [{*MEDIA_TYPES}] * 5


def test_the_client_knows_the_words_of_each_option() -> None:
    types = {name: kind for name, kind in arguments("evaluate").items() if kind is not Any}
    of_service: dict[str, set[Any]] = {}
    for model in EVALUATE_REQUESTS:
        for name, field in model.model_fields.items():
            of_service[name] = of_service.get(name, set()) | words(field.annotation)
    compared = types.keys() & of_service.keys()
    assert len(compared) > 20
    for name in compared:
        assert words(types[name]) == of_service[name], name


@pytest.mark.parametrize(
    ("model", "kind", "apart"),
    [
        (EvaluateOptions, Options, {"average_except"}),
        (ScoreOptions, Options, {"reject_below"}),
        (ClassesWanted, Paging, set()),
        (Rule, core_rules.Rule, {*RULE_KINDS}),
        (Waiver, core_rules.Waiver, set()),
        (Gates, core_rules.Gate, {"anchor", "results"}),
    ],
)
def test_each_member_reaches_the_core_and_has_its_default(
    model: type[BaseModel], kind: type[Any], apart: set[str]
) -> None:
    """`Request.into` drops other names, and leaves what was not sent to the core."""
    in_core = {field.name: field for field in fields(kind)}
    assert {*model.model_fields} - apart <= {*in_core}
    for name in {*model.model_fields} - apart - {"effects"}:
        default, of_core = model.model_fields[name].default, in_core[name].default
        if default not in (None, PydanticUndefined) and of_core is not MISSING:
            assert of_core == (tuple(default) if isinstance(default, list) else default), name
