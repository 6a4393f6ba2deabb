"""`rprime slices`: columns of plain files, here and by a service, for people and as JSON."""

import json

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rprime as package
from tests.command import Run

DRAW = np.random.default_rng(4)
SIZE = 2000
REGION = np.array(["Asia", "EU", "US"])[DRAW.integers(3, size=SIZE)]
AGE = DRAW.integers(18, 90, size=SIZE)
TRUE = DRAW.integers(3, size=SIZE)
WEAK = (REGION == "US") & (AGE >= 50)
PREDICTED = np.where(DRAW.random(SIZE) < np.where(WEAK, 0.6, 0.1), (TRUE + 1) % 3, TRUE)
COLUMNS = ("--column", "region", "--column", "age_band=cut(age, 18, 30, 50)")
FOUND = "US, age_band=>= 50"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("slices")
    table = pa.table({"label": TRUE, "y_pred": PREDICTED, "region": REGION, "age": AGE})
    pq.write_table(table, folder / "a.parquet")
    rows = zip(TRUE, PREDICTED, REGION, AGE, strict=True)
    lines = "".join(f"{t};{p};{r};{a}\n" for t, p, r, a in rows)
    (folder / "a.csv").write_text(f"y_true;y_pred;region;age\n{lines}")
    items = {"y_true": TRUE.tolist(), "y_pred": PREDICTED.tolist()}
    slices = {"region": REGION.tolist(), "age": AGE.tolist()}
    (folder / "a.json").write_text(json.dumps({**items, "slices": slices}))
    return {path.suffix: str(path) for path in folder.iterdir()}


def test_columns_of_a_plain_file_are_searched(rprime: Run, files: dict[str, str]) -> None:
    done = rprime("slices", files[".csv"], *COLUMNS)
    assert done.returncode == 0, done.stderr
    assert f"region={FOUND}" in done.stdout.splitlines()[3]
    assert "found on 1,000 items, tested on 1,000 others (seed 0)" in " ".join(done.stdout.split())
    assert "such a search finds a slice that is worse by 0." in " ".join(done.stdout.split())


def test_the_answer_is_that_of_a_service_and_of_python(
    rprime: Run, files: dict[str, str], client: httpx.Client
) -> None:
    members = ("--columns", "y_true=label,y_pred", "--seed", "3", "--json")
    here = rprime("slices", files[".parquet"], *COLUMNS, *members)
    there = rprime(
        "slices", files[".parquet"], *COLUMNS, *members, "--server", str(client.base_url)
    )
    assert here.stdout == there.stdout, here.stderr + there.stderr
    found = package.weak_slices(
        TRUE,
        PREDICTED,
        slices={"region": REGION, "age_band": AGE},
        slice_cuts={"age_band": [18, 30, 50]},
        seed=3,
    )
    assert found.to_dict() == json.loads(here.stdout)
    assert found.slices[0].slice == {"region": "US", "age_band": ">= 50"}
    assert found.slices[0].weak


def test_json_has_its_own_columns(rprime: Run, files: dict[str, str], client: httpx.Client) -> None:
    here = rprime("slices", files[".json"], "--column", "cut(age, 50, 60)", "--markdown")
    service = ("--server", str(client.base_url))
    there = rprime("slices", files[".json"], "--column", "cut(age, 50, 60)", "--markdown", *service)
    assert here.stdout == there.stdout
    assert "| <code>region&#61;US&#44; age&#61;&#62;&#61; 60</code> |" in here.stdout


def test_where_nothing_is_weak_no_table_is_shown(rprime: Run, files: dict[str, str]) -> None:
    done = rprime("slices", files[".csv"], "--column", "cut(age, 2)", "--index", "coverage")
    assert done.returncode == 0
    assert "coverage is 1.0000. No slice is shown to be worse than the rest, " in done.stdout
    assert "Slice " not in done.stdout
    assert "There are too few items to find any slice in 8 of 10 cases." in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--column", "cut(age"), "a column is named as region, or as cut(age, 18, 30, 50)"),
        (("--column", "cut(age, old)"), "a cut is at numbers"),
        (("--column", "cut(region, 3)"), "has no number in column 3"),
        (("--column", "y_pred"), "`columns` reads a column twice"),
        (("--column", "country"), "no column has the name that was chosen for `slice:country`"),
        ((), "A search needs labels or scores of items, and the columns to search in."),
        (("--column", "region", "--index", "kappa"), "an index that is a mean over items"),
    ],
)
def test_what_cannot_be_searched_ends_with_2(
    rprime: Run, files: dict[str, str], arguments: tuple[str, ...], said: str
) -> None:
    done = rprime("slices", files[".csv"], *arguments)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr


def test_a_service_out_of_reach_ends_with_4(rprime: Run, files: dict[str, str]) -> None:
    server = ("--server", "http://127.0.0.1:1", "--retries", "0")
    done = rprime("slices", files[".csv"], "--column", "region", *server)
    assert done.returncode == 4


def test_chosen_slices_leave_the_other_columns_read(rprime: Run, files: dict[str, str]) -> None:
    done = rprime("evaluate", files[".csv"], "--columns", "slice:region=region", "--json")
    assert done.returncode == 0, done.stderr
    assert [one["slice"] for one in json.loads(done.stdout)["slices"]] == [
        {"region": name} for name in ("Asia", "EU", "US")
    ]
