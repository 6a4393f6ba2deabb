"""`rprime slices`: columns of plain files, here and by a service, for people and as JSON."""

import json
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import rprime as package
from tests.command import Run

DRAW = np.random.default_rng(4)
SIZE = 2000
REGION = np.array(["Asia", "EU", "US"])[DRAW.integers(3, size=SIZE)]
AGE = DRAW.integers(18, 90, size=SIZE)
LIGHT = DRAW.random(SIZE).round(2)
TRUE = DRAW.integers(3, size=SIZE)
WEAK = (REGION == "US") & (AGE >= 50)
PREDICTED = np.where(DRAW.random(SIZE) < np.where(WEAK, 0.6, 0.1), (TRUE + 1) % 3, TRUE)
COLUMNS = ("--column", "region", "--column", "age_band=cut(age, 18, 30, 50)")
FOUND = "US, age_band >= 50"


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
    search = package.weak_slices(
        TRUE,
        PREDICTED,
        slices={"region": REGION, "age_band": AGE},
        slice_cuts={"age_band": [18, 30, 50]},
        seed=3,
    )
    assert search.to_dict() == json.loads(here.stdout)
    assert search.slices[0].slice == {"region": "US", "age_band": ">= 50"}
    assert search.slices[0].weak


def test_json_has_its_own_columns(rprime: Run, files: dict[str, str], client: httpx.Client) -> None:
    here = rprime("slices", files[".json"], "--column", "cut(age, 50, 60)", "--markdown")
    service = ("--server", str(client.base_url))
    there = rprime("slices", files[".json"], "--column", "cut(age, 50, 60)", "--markdown", *service)
    assert here.stdout == there.stdout
    assert "| <code>region&#61;US&#44; age &#62;&#61; 60</code> |" in here.stdout


def test_where_nothing_is_weak_no_table_is_shown(rprime: Run, files: dict[str, str]) -> None:
    done = rprime("slices", files[".csv"], "--column", "cut(age, 2)", "--index", "coverage")
    assert done.returncode == 0
    message = "coverage is 1.0000. No slice is large and weak enough to be tested: found on "
    assert message in done.stdout
    assert "Slice " not in done.stdout
    assert "There are too few items to find any slice in 8 of 10 cases." in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--column", "cut(age"), "a column is named as region, or as cut(age, 18, 30, 50)"),
        (("--column", "cut(age, old)"), "a cut is at numbers"),
        (("--column", "cut(region, 3)"), "has no number in column 3"),
        (("--column", "y_pred"), "`columns` reads a column twice"),
        (("--column", "country"), "No column has the name chosen for `slice:country`"),
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
    assert [part["slice"] for part in json.loads(done.stdout)["slices"]] == [
        {"region": name} for name in ("Asia", "EU", "US")
    ]


CHOSEN = (
    "--slice",
    "region",
    "--slice",
    "age_band=cut(age, 18, 30, 50)",
    "--slice",
    "cut(light, 3)",
)
CROSSED = ("--crossing", "region,age_band", "--crossing", "region,age_band,light")


def expected() -> package.Report:
    """Evaluate by names that numpy cuts, in the order of their numbers."""
    parts = np.quantile(LIGHT, [1 / 3, 2 / 3], method="higher")
    return package.evaluate(
        TRUE,
        PREDICTED,
        slices={
            "region": REGION,
            "age_band": np.searchsorted([18, 30, 50], AGE, side="right"),
            "light": np.searchsorted(parts, LIGHT, side="right"),
        },
        slice_crossings=[["region", "age_band"], ["region", "age_band", "light"]],
    )


def numbers_of(content: bytes | str) -> list[tuple[int, object]]:
    """Return what is said about each slice but its name, in order."""
    return [(part["items"], part["overall"]) for part in json.loads(content)["slices"]]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Write the items in each format, with ids in another order, and with a gap in a column."""
    folder = tmp_path_factory.mktemp("plain")
    table = pa.table(
        {"y_true": TRUE, "y_pred": PREDICTED, "region": REGION, "age": AGE, "light": LIGHT}
    )
    pq.write_table(table, folder / "a.parquet")
    pa.csv.write_csv(table, folder / "a.csv")
    pa.feather.write_feather(table, str(folder / "a.feather"))
    arrays: Any = {name: np.array(column) for name, column in table.to_pydict().items()}
    np.savez(folder / "a.npz", **arrays)
    ids = table.append_column("item_id", pa.array([f"{i:05}" for i in range(SIZE)]))
    pq.write_table(ids.take(DRAW.permutation(SIZE)), folder / "ids.parquet")
    gaps = table.set_column(3, "age", pa.array(AGE, mask=DRAW.random(SIZE) < 0.1))
    pq.write_table(gaps, folder / "gaps.parquet")
    (folder / "shares.yaml").write_text("'0': 0.5\n'1': 0.3\n'2': 0.2\n")
    return {path.name: str(path) for path in folder.iterdir()}


@pytest.mark.parametrize(
    "name", ["a.csv", "a.parquet", "a.feather", "a.npz", "ids.parquet", "gaps.parquet"]
)
def test_slices_of_a_file_are_evaluated_here_and_there(
    rprime: Run, plain: dict[str, str], client: httpx.Client, name: str
) -> None:
    arguments = ("evaluate", plain[name], *CHOSEN, *CROSSED, "--json")
    here, there = rprime(*arguments), rprime(*arguments, "--server", str(client.base_url))
    assert (here.returncode, there.returncode) == (0, 0), here.stderr + there.stderr
    assert here.stdout == there.stdout
    if name.startswith("a."):
        assert numbers_of(here.stdout) == numbers_of(expected().content)
        named = [part["slice"] for part in json.loads(here.stdout)["slices"]]
        assert {"region": "US", "age_band": ">= 50"} in named
        assert named[3:6] == [{"age_band": part} for part in ("[18, 30)", "[30, 50)", ">= 50")]


def test_tables_of_slices_travel_alone(
    rprime: Run, plain: dict[str, str], client: httpx.Client
) -> None:
    arguments = ("evaluate", plain["gaps.parquet"], *CHOSEN, *CROSSED, "--json")
    here = rprime(*arguments)
    there = rprime(*arguments, "--server", str(client.base_url), "--table-only")
    assert there.returncode == 0, there.stderr
    first, other = (json.loads(done.stdout) for done in (here, there))
    assert first["slices"] == other["slices"]
    assert first["weakest"] == other["weakest"]


def test_slices_of_a_large_json_request_reach_the_service(
    rprime: Run, tmp_path: Path, client: httpx.Client
) -> None:
    many = 70  # times the items: above 1 MiB
    slices = {"region": REGION.tolist() * many, "age": AGE.tolist() * many}
    items = {"y_true": TRUE.tolist() * many, "y_pred": PREDICTED.tolist() * many}
    members = {"slices": slices, "slice_cuts": {"age": 3}, "slice_crossings": [["region", "age"]]}
    file = tmp_path / "a.json"
    file.write_text(json.dumps({**items, **members}))
    assert file.stat().st_size > 1 << 20
    here = rprime("evaluate", str(file), "--json")
    there = rprime("evaluate", str(file), "--json", "--server", str(client.base_url))
    assert here.stdout == there.stdout, here.stderr + there.stderr
    assert len(json.loads(here.stdout)["slices"]) == 3 + 3 + 9


def test_a_gate_on_slices_of_columns_is_the_same_there(
    rprime: Run, plain: dict[str, str], tmp_path: Path, client: httpx.Client
) -> None:
    gates = tmp_path / "gates.yaml"
    gates.write_text("rules: [{index: accuracy, max_gap: 0.01, slices: region}]")
    arguments = ("evaluate", plain["a.csv"], "--slice", "region", "--gates", str(gates), "--json")
    here, there = rprime(*arguments), rprime(*arguments, "--server", str(client.base_url))
    assert here.returncode == there.returncode == 1, here.stderr + there.stderr
    assert here.stdout == there.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--slice", "cut(age"), "--slice cut(age: a column is named as region"),
        (("--slice", "age", "--slice", "age"), "there is a slice age already"),
        (("--slice", "cut(age, 50, 18)"), "The numbers of a cut ascend."),
        (("--slice", "country"), "No column has the name chosen for `slice:country`"),
        (("--crossing", "region,age"), "`slice_crossings` needs `slices`"),
        (("--slice", "region", "--crossing", "region,age"), "1 of the names are not in `slices`"),
    ],
)
def test_slices_that_are_not_there_end_with_2(
    rprime: Run, plain: dict[str, str], arguments: tuple[str, ...], said: str
) -> None:
    done = rprime("evaluate", plain["a.csv"], *arguments)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr


def test_json_names_its_slices_itself(rprime: Run, files: dict[str, str]) -> None:
    done = rprime(
        "evaluate", files[".json"], "--slice", "region", "--slice", "cut(age, 2)", "--json"
    )
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["slices"]) == 3 + 2
    done = rprime("evaluate", files[".json"], "--slice", "country")
    assert done.returncode == 2
    assert "its `slices` do not have what slice:country chooses" in done.stderr


SHARES = {"0": 0.5, "1": 0.3, "2": 0.2}


@pytest.mark.parametrize(
    ("given", "population"),
    [
        ("uniform", {"prevalence": "uniform"}),
        (json.dumps(SHARES), {"prevalence": SHARES}),
        (json.dumps({"prevalence": SHARES}), {"prevalence": SHARES}),
        (
            json.dumps({"strata": "predicted", "shares": SHARES}),
            {"strata": "predicted", "shares": SHARES},
        ),
        ("shares.yaml", {"prevalence": SHARES}),
    ],
)
def test_a_population_is_an_option(
    rprime: Run,
    plain: dict[str, str],
    client: httpx.Client,
    given: str,
    population: dict[str, object],
) -> None:
    given = plain.get(given, given)
    columns = ("--columns", "y_true,y_pred")
    arguments = ("evaluate", plain["a.csv"], "--population", given, *columns, "--json")
    here, there = rprime(*arguments), rprime(*arguments, "--server", str(client.base_url))
    assert here.stdout == there.stdout, here.stderr + there.stderr
    assert json.loads(here.stdout) == (
        package.evaluate(TRUE, PREDICTED, population=population).to_dict()
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("even", "--population even: there is no such file; else it is uniform, or JSON"),
        ('{"0": 0.5', "--population is not valid JSON"),
        ('{"0": 0.5, "1": 0.3, "2": 0.1}', "The shares sum to 0.9; they must sum to 1."),
        ('{"0": 0.5, "cat": 0.5}', "'cat': Name 2 of the object is not a class"),
        ('{"strata": "predicted"}', "Give either `prevalence`, or `strata` with their `shares`"),
    ],
)
def test_a_population_that_does_not_fit_ends_with_2(
    rprime: Run, plain: dict[str, str], given: str, said: str
) -> None:
    done = rprime("evaluate", plain["a.csv"], "--population", given)
    assert done.returncode == 2, done.stdout
    assert said in done.stderr
