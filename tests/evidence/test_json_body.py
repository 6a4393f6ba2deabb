"""Large JSON bodies are read as `parse` reads them, whatever is in them."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rprime.application import read_request
from rprime.evidence import json_body
from rprime.evidence.coding import CodedTexts, Integers
from rprime.evidence.json_body import read_json
from rprime.problems.problem import Problem
from rprime.schemas.document import Document, parse
from rprime.settings import Limits

DEPTH = 8


@pytest.fixture(autouse=True, scope="module")
def _small_pieces() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_body, "_SMALLEST", 1)
        patch.setattr(json_body, "_PIECE", 16)
        patch.setattr(json_body, "_PART", 16)
        yield


def plain(value: Any) -> Any:
    """Return what was parsed, with lists in place of coded texts."""
    if isinstance(value, Document):
        inner = {name: plain(member) for name, member in value.inner.items()}
        return plain(value.rest), plain(value.arrays), value.names, value.pointer, inner
    if isinstance(value, dict):
        return [(name, plain(member)) for name, member in value.items()]
    return list(value) if isinstance(value, CodedTexts | Integers) else value


def outcome(read: Callable[[bytes, int], Document], body: bytes) -> Any:
    """Return the parsed body and the evidence in it, or the problems of either."""
    try:
        document = read(body, DEPTH)
    except Problem as problem:
        return problem.code, problem.detail, problem.errors
    content = plain(document)
    try:
        request = read_request(document, Limits())
    except Problem as problem:
        return content, problem.code, problem.detail, problem.errors
    slices = request.evidence.slices
    return content, request.evidence.input_digest, slices and slices.names


STRINGS = [
    *('"a"', '"b"', '"abcdefghijklmnopqrstuvwxyz"', '""', '" a"', '"é"', '"["', '"]"', '"],["'),
    *('"true"', '":"', '"a,b"', r'"\u0061"', r'"\n"', r'"\ud83d\ude00"', r'"\ud800"', r'"\\"'),
    *(r'"\""', '"\t"', r'"\x"', '"\ud800"', '"2"', '"{"', r'"\u003a"'),
]
NUMBERS = [
    *("0", "7", "10", "255", "256", "65536", "123456789012345"),
    *("01", "-1", "1.0", "1e1", "1 2", "+1", "1234567890123456", "9007199254740993", "null", ""),
]
OTHERS = ["null", "1", "1.0", "true", "[]", '["a"]', "{}", "NaN", "1e999", "", '"a" "b"', '"a', "-"]


@st.composite
def arrays(draw: st.DrawFn) -> str:
    """Draw a text that is an array, or nearly."""
    kind = draw(st.sampled_from([STRINGS, NUMBERS, NUMBERS[:7]]))
    some = st.lists(st.sampled_from(kind), min_size=1, max_size=3)
    items = draw(some)
    if draw(st.booleans()):
        items = draw(st.lists(st.sampled_from(items), min_size=6, max_size=6))
    if draw(st.integers(0, 3)) == 0:
        items.insert(draw(st.integers(0, len(items))), draw(st.sampled_from(OTHERS)))
    comma = draw(st.sampled_from([",", ", ", " ,\n"]))
    space = draw(st.sampled_from(["", " ", "\n  "]))
    return f"[{space}{comma.join(items)}{space}]"


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """Draw a request of arrays."""
    array = arrays()
    names = st.sampled_from(
        ["y_true", "y_pred", "groups", "labels", "y_score", "unknown", "model", "sample_weight"]
    )
    members = [f'"{draw(names)}":{draw(array)}' for _ in range(draw(st.integers(0, 2)))]
    column = draw(array)
    members += [f'"y_true":{column}', f'"y_pred":{draw(st.one_of(st.just(column), array))}']
    if draw(st.booleans()):
        members.append(f'"slices":{{"x":{draw(st.one_of(st.just(column), array))},"y":{column}}}')
    if draw(st.booleans()):
        members.append(f'"baseline":{{"y_pred":{draw(st.one_of(st.just(column), array))}}}')
    if draw(st.booleans()):
        members.append(draw(st.sampled_from(['"slices":["a","b"]', '"model":"[x"', '"z":{"a":1}'])))
    return f"{{{','.join(members)}}}".encode("utf-8", "surrogatepass")


@given(bodies())
def test_a_body_is_judged_as_by_parse(body: bytes) -> None:
    assert outcome(read_json, body) == outcome(parse, body)


def test_arrays_of_few_strings_are_coded_without_objects() -> None:
    texts = ["ä", "b c", "ä", 'x" y'[:1]] * 500
    columns: dict[str, Any] = {"y_true": texts, "y_pred": texts[::-1], "groups": texts}
    body = orjson.dumps({**columns, "slices": {"s": texts}, "baseline": {"y_pred": texts}})
    document = read_json(body, DEPTH)
    coded = [*document.arrays.values(), document.inner["baseline"].arrays["y_pred"]]
    coded[coded.index(document.arrays["slices"])] = document.arrays["slices"]["s"]
    assert all(isinstance(column, CodedTexts) for column in coded)
    assert outcome(read_json, body) == outcome(parse, body)


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" ,\n", " :\t")])
@pytest.mark.parametrize("most", [9, 10, 300, 1_000_000])
def test_arrays_of_integers_are_read_without_objects(
    most: int, separators: tuple[str, str]
) -> None:
    values = [*np.random.default_rng(most).integers(0, most, 2_000).tolist(), most]
    columns: dict[str, Any] = {"y_true": values, "y_pred": values[::-1], "groups": values}
    content = {**columns, "slices": {"s": values}, "slice_cuts": {"s": 3}}
    body = json.dumps(content, separators=separators).encode()
    document = read_json(body, DEPTH)
    read = [*(document.arrays[name] for name in columns), document.arrays["slices"]["s"]]
    assert all(isinstance(column, Integers) for column in read)
    assert list(read[0]) == values
    assert (read[0][3], read[0].values.itemsize) == (values[3], 1 if most < 256 else 8)
    del content["groups"]  # they cannot be combined with slices
    for request in (content, columns, {"y_true": values, "y_pred": ["1"] * len(values)}):
        body = json.dumps(request, separators=separators).encode()
        assert outcome(read_json, body) == outcome(parse, body)


@pytest.mark.parametrize("name", ["sample_weight", "labels", "confusion_matrix", "y_score"])
def test_other_arrays_of_integers_are_left_to_parse(name: str) -> None:
    values: Any = [[1] * 300] * 2 if name in {"confusion_matrix", "y_score"} else [1] * 300
    body = orjson.dumps({"y_true": [2] * 300, name: values})
    columns = read_json(body, DEPTH).arrays
    assert columns[name] == values
    assert isinstance(columns["y_true"], Integers)


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param([f"{i:07}" for i in range(2_000)], id="many"),
        pytest.param(["a" * 300, "b"] * 9, id="longer than a piece"),
        pytest.param(["a" * (1 << 18), "b"] * 2, id="long"),
    ],
)
def test_other_strings_are_left_to_parse(texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_body, "_MOST_DISTINCT", 1 << 13)
    body = orjson.dumps({"y_true": texts, "y_pred": texts})
    assert read_json(body, DEPTH).arrays == parse(body, DEPTH).arrays


def test_rare_strings_are_found_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_body, "_PIECE", 1 << 18)
    draw = np.random.default_rng(0)
    texts = [f"class {i}" for i in draw.integers(0, 9, 200_000).tolist()]
    texts[150_000] = texts[199_999] = "rare"
    body = orjson.dumps({"y_true": texts, "y_pred": texts}, option=orjson.OPT_INDENT_2)
    column = read_json(body, DEPTH).arrays["y_true"]
    assert isinstance(column, CodedTexts)
    assert len(column.texts) == 10
    assert list(column) == texts


@pytest.mark.parametrize("kind", [bytes, bytearray])  # as a worker receives it
def test_what_is_no_text_is_said_of_every_kind_of_body(kind: Callable[[bytes], bytes]) -> None:
    for body, detail in (
        (b'{"y_true":\n["caf\xe9"]}', "Line 2 of the body is not UTF-8"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        (b" \n", "The body is empty."),
        (b'{"a":}', "The body is not valid JSON: see line 1, column 6."),
    ):
        with pytest.raises(Problem) as refused:
            read_json(kind(body), DEPTH)
        assert detail in refused.value.detail


_WITHOUT_MEMORY = """
import resource, sys
from rprime.schemas.document import from_json, loads
from rprime.server.worker_limits import WorkerLimits
content = sys.stdin.buffer.read()
WorkerLimits(8 << 20, most=None)
for read in (from_json, loads):
    try:
        read(content)
    except MemoryError:
        print("no memory")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory")
def test_json_for_which_there_is_no_memory_is_not_called_bad() -> None:
    content = orjson.dumps({"items": [{"weight": float(i)} for i in range(100_000)]})
    command = [sys.executable, "-c", _WITHOUT_MEMORY]
    done = subprocess.run(command, input=content, capture_output=True, check=True)
    assert done.stdout.splitlines() == [b"no memory", b"no memory"]
