"""The comment of a pull or merge request: one for each model, brought up to date by every run."""

import json
import os
import shutil
import tarfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import pytest

from tests.examples.forge import BOT, JOB, PERSON, READS, TOKEN, Contract, Forge, forge_of
from tests.examples.forge_schemas import GITHUB, cut
from tests.examples.recipes import Done, missing, out_of_reach, run

KINDS = ("github", "gitlab")


@pytest.fixture(params=KINDS)
def forge(request: pytest.FixtureRequest) -> Iterator[Forge]:
    with forge_of(request.param) as server:
        for number in range(230):
            server.add(f"comment {number}\r\n<!-- rprime:report 0 -->", BOT)
        yield server


def variables(forge: Forge, folder: Path, token: str) -> dict[str, str]:
    """What a job has, by the documents of GitHub and of GitLab."""
    if forge.kind == "gitlab":
        return {
            "CI_API_V4_URL": forge.url,
            "CI_PROJECT_ID": "99",
            "CI_MERGE_REQUEST_PROJECT_ID": "5",
            "CI_MERGE_REQUEST_IID": "7",
            "GITLAB_TOKEN": token,
        }
    event = folder / "event.json"
    event.write_text('{"action": "opened", "number": 7, "pull_request": {"number": 7}}')
    return {
        "GITHUB_API_URL": forge.url,
        "GITHUB_REPOSITORY": "owner/repository",
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_TOKEN": token,
    }


@cache
def report(model: str) -> str:
    """Evaluate a model, once for all tests."""
    with TemporaryDirectory() as folder:
        table = Path(folder) / "table.json"
        table.write_text('{"confusion_matrix": [[5, 1], [2, 7]], "labels": ["<a>", "b"]}')
        arguments = ("--model", model, "--markdown", "rprime.md")
        run("rprime", "evaluate", table, *arguments, cwd=Path(folder))
        return (Path(folder) / "rprime.md").read_text()


def comment(forge: Forge, folder: Path, model: str = "", *, token: str = TOKEN) -> Done:
    """Put the report about a model into request 7."""
    (folder / "rprime.md").write_text(report(model))
    environment = variables(forge, folder, token)
    return run("rprime", "comment", "rprime.md", cwd=folder, variables=environment)


def ours(forge: Forge) -> list[str]:
    return forge.bodies[230:]


def test_each_model_has_one_comment_that_is_brought_up_to_date(
    forge: Forge, tmp_path: Path
) -> None:
    others = forge.bodies[:230]
    first = comment(forge, tmp_path, "resnet")
    assert (first.returncode, first.stderr) == (0, "rprime: comment 231 is new\n")
    assert ours(forge) == [(tmp_path / "rprime.md").read_text()]
    assert comment(forge, tmp_path, "lenet").returncode == 0
    assert len(ours(forge)) == 2
    forge.comments[230]["body"] = f"{ours(forge)[0].splitlines()[0]}\nold"
    again = comment(forge, tmp_path, "resnet")
    assert again.stderr == "rprime: comment 231 is brought up to date\n"
    assert ours(forge)[0] == (tmp_path / "rprime.md").read_text()
    assert (len(ours(forge)), forge.bodies[:230]) == (2, others)


def test_what_somebody_else_wrote_is_left_alone(forge: Forge, tmp_path: Path) -> None:
    assert comment(forge, tmp_path).returncode == 0
    taken = ours(forge)[0]
    author = {**PERSON, "id": 8}
    forge.comments.pop()
    forge.add(taken.replace("No gate", "A gate"), author)
    assert comment(forge, tmp_path).returncode == 0
    assert ours(forge) == [taken.replace("No gate", "A gate"), taken]


def test_the_token_of_a_job_finds_its_own_comment(tmp_path: Path) -> None:
    """GITHUB_TOKEN may not ask who it is; its comments are those of a bot."""
    with forge_of("github") as forge:
        for _ in range(2):
            assert comment(forge, tmp_path, token=JOB).returncode == 0
        assert [entry["user"]["login"] for entry in forge.comments] == ["github-actions[bot]"]


@pytest.mark.parametrize(("token", "status"), [(READS, 403), ("wrong", 401)])
def test_what_it_may_not_do_is_said(forge: Forge, tmp_path: Path, token: str, status: int) -> None:
    done = comment(forge, tmp_path, token=token)
    assert done.returncode == 4
    assert f"answers {status}\n" in done.stderr
    assert "pull-requests: write" in done.stderr or "scope `api`" in done.stderr
    assert token not in done.stderr
    assert not ours(forge)


@pytest.mark.parametrize("kind", KINDS)
def test_where_nobody_answers_there_is_no_comment(kind: str, tmp_path: Path) -> None:
    with forge_of(kind) as forge:
        pass
    done = comment(forge, tmp_path)
    assert done.returncode == 4
    assert "NO COMMENT" in done.stderr


def test_without_a_request_there_is_nothing_to_do(forge: Forge, tmp_path: Path) -> None:
    environment = variables(forge, tmp_path, TOKEN)
    (tmp_path / "event.json").write_text('{"ref": "refs/heads/main"}')
    environment.pop("CI_MERGE_REQUEST_IID", None)
    done = run("rprime", "comment", "rprime.md", cwd=tmp_path, variables=environment)
    assert (done.returncode, forge.requests) == (0, [])
    assert "no comment" in done.stderr
    (tmp_path / "rprime.md").write_text("<!-- rprime:report 0123 -->\n")
    named = ("rprime", "comment", "rprime.md", "--number", "7")
    assert run(*named, cwd=tmp_path, variables=environment).returncode == 0
    assert len(ours(forge)) == 1


def test_what_is_no_report_is_refused(forge: Forge, tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# Notes\n")
    environment = variables(forge, tmp_path, TOKEN)
    for file in ("notes.md", "none.md"):
        done = run("rprime", "comment", file, cwd=tmp_path, variables=environment)
        assert done.returncode == 2, done.stderr
    assert run("rprime", "comment", "notes.md", cwd=tmp_path).returncode == 2
    assert comment(forge, tmp_path, token="").returncode == 2
    assert not forge.requests


def test_the_stub_refuses_what_is_not_documented(forge: Forge, tmp_path: Path) -> None:
    environment = variables(forge, tmp_path, TOKEN)
    path = "/repos/owner/repository/issues/7/comments"
    path = path if forge.kind == "github" else "/projects/5/merge_requests/7/notes"
    headers = {
        "Authorization": f"Bearer {environment.get('GITHUB_TOKEN', TOKEN)}",
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    with httpx.Client(base_url=forge.url, headers=headers) as client:
        assert client.get(path, params={"per_page": 1}).status_code == 200
        wrong = (
            client.post(path, json={"text": "x"}),
            client.post(path, json={"body": "x", "more": 1}),
            client.post(path, json={"body": 7}),
            client.post(path, content=b'{"body": "x"}'),
            client.post(path),
            client.get(path, params={"size": 7}),
            client.get(path, params={"page": "x"}),
            client.put(f"{path}/x", json={"body": "x"}),
        )
    assert {answer.status_code for answer in wrong} <= {404, 422}
    assert len(forge.mistakes) >= len(wrong)
    assert not ours(forge)
    forge.mistakes.clear()


@pytest.mark.skipif(
    not os.environ.get("RPRIME_TEST_REGISTRIES"),
    reason="NOT TESTED: only `bash .ci/run --full` fetches what GitHub publishes (29 MB from npm)",
)
def test_the_schemas_are_those_that_github_publishes(tmp_path: Path) -> None:
    if not shutil.which("npm"):
        missing("the schemas of GitHub come by npm")
    source = json.loads(GITHUB.read_text(encoding="utf-8"))["source"]
    version = source.split()[4].rstrip(",")
    done = run("npm", "pack", "--silent", f"@octokit/openapi@{version}", cwd=tmp_path, timeout=300)
    if done.returncode:
        out_of_reach(done.stderr)
    (archive,) = tmp_path.glob("*.tgz")
    with tarfile.open(archive) as files:
        member = files.extractfile("package/generated/api.github.com.json")
        assert member is not None
        published = cut(json.load(member))
    kept = json.loads(GITHUB.read_text(encoding="utf-8"))
    assert {name: kept[name] for name in published} == published
    assert Contract(GITHUB).operation("GET", "/user")
