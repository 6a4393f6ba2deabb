import re
from typing import Any

import pytest

from rprime.store import Baseline, BaselineNotFoundError, BaselineQuery, Candidate, Expected, Store
from tests.store import samples

MISSING = "01k9d3hv5gw2zj4t8x6c7m1n0p"


def stored(store: Store, **members: Any) -> str:
    return samples.put(store, samples.evaluation(**members)).result().id


def resolve(
    store: Store, by: Any, name: str, *, model: str | None = None, named: str | None = None
) -> Baseline:
    return store.baseline(Candidate("animals", model), BaselineQuery(by, name, named))


def resolved(store: Store, by: Any, name: str, **options: Any) -> str | None:
    evaluation = resolve(store, by, name, **options).evaluation
    return None if evaluation is None else evaluation.id


def promote(store: Store, evaluation: str, alias: str = "champion") -> None:
    store.put_alias("animals", alias, evaluation=evaluation, expected=Expected(absent=True))


def test_by_alias_whatever_the_model_is(store: Store) -> None:
    identifier = stored(store, model="svc")
    promote(store, identifier)
    for model in ("svc", "knn", None):
        baseline = resolve(store, "alias", "champion", model=model)
        assert baseline.evaluation is not None
        assert (baseline.evaluation.id, baseline.why) == (
            identifier,
            "The alias `champion` points at it.",
        )


def test_by_version_it_is_the_newest(store: Store) -> None:
    stored(store, version="1.0")
    newest = stored(store, version="1.0", verdict="fail")
    stored(store, version="2.0")
    stored(store, version="1.0", project="plants")
    assert resolved(store, "version", "1.0") == newest


@pytest.mark.parametrize(("by", "name"), [("version", "v1"), ("branch", "main"), ("latest", "")])
def test_each_model_is_compared_with_itself(store: Store, by: str, name: str) -> None:
    """Models that share names of versions and branches are never mixed up."""
    names = {"version": "v1", "branch": "main"}
    ids = {model: stored(store, model=model, **names) for model in ("svc", "knn", None)}
    for model, identifier in ids.items():
        assert resolved(store, by, name, model=model) == identifier
    assert resolved(store, by, name, model="svc", named="knn") == ids["knn"]
    assert resolved(store, by, name, named="svc") == ids["svc"]


def test_failed_waived_and_incomparable_ones_are_skipped(store: Store) -> None:
    stored(store, branch="main", verdict="pass")
    good = stored(store, branch="main")
    stored(store, branch="main", version="7", verdict="fail")
    stored(store, branch="main", version="8", verdict="pass", waived=True)
    apart = {"verdict": "inconclusive", "extras": b'{"not_comparable":true}'}
    stored(store, branch="main", version="9", **apart)
    stored(store, branch="main", model="svc", version="10", verdict="pass")
    for by, name in (("branch", "main"), ("latest", "")):
        baseline = resolve(store, by, name)
        assert baseline.evaluation is not None
        assert baseline.evaluation.id == good
        assert baseline.why.endswith(
            "skipped newer ones: `9` (its gate could not compare), `8` (its failure was waived), "
            "`7` (its gate failed)."
        )
    assert resolved(store, "version", "9") is not None


def test_many_skipped_ones_are_counted(store: Store) -> None:
    good = stored(store, branch="main", version="good")
    for number in range(120):
        stored(store, branch="main", version=f"v{number}", verdict="fail")
    baseline = resolve(store, "branch", "main")
    assert baseline.evaluation is not None
    assert baseline.evaluation.id == good
    assert baseline.why.endswith("`v115` (its gate failed) and 115 more.")


@pytest.mark.parametrize("verdict", ["pass", "inconclusive", "no_rules", None])
def test_whatever_did_not_fail_is_not_skipped(store: Store, verdict: str | None) -> None:
    identifier = stored(store, branch="main", verdict=verdict, extras=b'{"warnings":[]}')
    baseline = resolve(store, "branch", "main")
    assert baseline.evaluation is not None
    assert baseline.evaluation.id == identifier
    assert baseline.why.endswith("no newer one was skipped.")


def test_a_branch_with_skipped_ones_only_has_no_baseline(store: Store) -> None:
    stored(store, branch="broken", version="3", verdict="fail")
    baseline = resolve(store, "branch", "broken")
    assert baseline.evaluation is None
    assert "`3` (its gate failed)" in baseline.why


def test_by_id_within_the_project(store: Store) -> None:
    identifier, elsewhere = stored(store, model="svc"), stored(store, project="plants")
    assert resolved(store, "evaluation", identifier) == identifier
    for wrong in (elsewhere, MISSING, "nonsense"):
        with pytest.raises(BaselineNotFoundError, match=f"`animals` .* id `{wrong}`"):
            resolve(store, "evaluation", wrong)
    with pytest.raises(BaselineNotFoundError, match=f"nearest ids: `{identifier}`"):
        resolve(store, "evaluation", identifier[:-3])


@pytest.mark.parametrize(
    ("by", "name", "given", "text"),
    [
        (
            "version",
            "V19",
            {"model": "svc"},
            (
                "There is no evaluation of version `V19` of model `svc` in project `animals`. The "
                "nearest versions: `v19`."
            ),
        ),
        (
            "version",
            "v9",
            {},
            (
                "There is no evaluation of version `v9` without a model in project `animals`. "
                "Other models have it; `model` names one: `svc`."
            ),
        ),
        (
            "alias",
            "champoin",
            {"model": "svc"},
            "Project `animals` has no alias `champoin`. The nearest aliases: `champion`.",
        ),
        (
            "version",
            "v9",
            {"model": "knn", "named": "svm"},
            (
                "There is no evaluation of model `svm` in project `animals` yet. The nearest "
                "models: `svc`."
            ),
        ),
    ],
)
def test_what_does_not_exist_is_refused_with_what_is_near(
    store: Store, by: str, name: str, given: dict[str, str], text: str
) -> None:
    stored(store, version="v1")
    stored(store, version="v9", model="svc")
    promote(store, stored(store, version="v19", model="svc"))
    with pytest.raises(BaselineNotFoundError, match=f"^{re.escape(text)}$"):
        resolve(store, by, name, **given)


@pytest.mark.parametrize(
    ("by", "name", "text", "command"),
    [
        (
            "alias",
            "champion",
            ("The alias `champion` of project `animals` is not set. Other aliases: `of-knn`."),
            "rprime promote {id} champion --project animals --if-absent",
        ),
        (
            "version",
            "v1",
            (
                "There is no evaluation of model `svc` in project `animals` yet. Models with "
                "evaluations: `knn`."
            ),
            "rprime evaluate FILE --project animals --model svc --version v1",
        ),
        (
            "latest",
            "",
            (
                "There is no evaluation of model `svc` in project `animals` yet. Models with "
                "evaluations: `knn`."
            ),
            "rprime evaluate FILE --project animals --model svc",
        ),
        (
            "branch",
            "my branch",
            (
                "There is no evaluation of model `svc` in project `animals` yet. Models with "
                "evaluations: `knn`."
            ),
            "rprime evaluate FILE --project animals --model svc --branch 'my branch'",
        ),
    ],
)
def test_a_new_model_has_no_baseline_yet(
    store: Store, by: str, name: str, text: str, command: str
) -> None:
    promote(store, stored(store, model="knn"), "of-knn")
    assert resolve(store, by, name, model="svc") == Baseline(None, text, command, begins=True)


def test_a_version_without_evaluations_names_the_versions(store: Store) -> None:
    stored(store, version="v9", model="svc")
    text = (
        "There is no evaluation of version `v10` of model `svc` in project `animals` yet. "
        "Known versions: `v9`."
    )
    command = "rprime evaluate FILE --project animals --model svc --version v10"
    assert resolve(store, "version", "v10", model="svc") == Baseline(None, text, command)


def test_an_evaluation_without_an_alias_is_no_alias(store: Store) -> None:
    stored(store, model="svc")
    assert resolve(store, "alias", "champion", model="svc").evaluation is None


def test_a_branch_without_evaluations_names_the_branches(store: Store) -> None:
    for branch in ("main", "dev", "a", "b", "c", "d"):
        stored(store, branch=branch)
    stored(store, branch="next", model="svc")
    baseline = resolve(store, "branch", "next")
    assert baseline == Baseline(
        None,
        "There is no evaluation on branch `next` without a model in project `animals` yet. Known "
        "branches: `d`, `c`, `b`, `a`, `dev` and 1 more.",
        "rprime evaluate FILE --project animals --branch next",
    )


def test_other_runs_of_the_candidate_are_skipped(store: Store) -> None:
    """A job that is run again is not compared with its first run, which may be undecided."""
    first = stored(store, commit="a" * 7, verdict="pass", branch="main")
    again = stored(store, commit="b" * 7, verdict="inconclusive", branch="main")
    digest = store.get(again).input_digest
    for query in (BaselineQuery("branch", "main"), BaselineQuery("latest", "")):

        def of(query: BaselineQuery = query, **run: Any) -> Baseline:
            return store.baseline(Candidate("animals", **run), query)

        baseline = of(commit="b" * 7)
        assert baseline.evaluation is not None
        assert baseline.evaluation.id == first
        assert "it is of the same commit" in baseline.why
        assert of(id=again).evaluation == store.get(first)
        # The same predictions: no undecided run of them, but one that passed.
        assert "its gate decided nothing" in of(input_digest=digest).why
        assert of(commit="c" * 7).evaluation == store.get(again)
    other = stored(store, model="svc", commit="b" * 7)
    query = BaselineQuery("latest", "", "svc")
    baseline = store.baseline(Candidate("animals", commit="b" * 7), query)
    assert baseline.evaluation == store.get(other)  # of another model


def test_an_unchanged_model_that_passed_is_a_baseline(store: Store) -> None:
    identifier = stored(store, verdict="pass")
    candidate = Candidate("animals", input_digest=store.get(identifier).input_digest)
    baseline = store.baseline(candidate, BaselineQuery("latest", ""))
    assert baseline.evaluation == store.get(identifier)
