"""The hook of pre-commit: its entry as pre-commit runs it, and by the real pre-commit."""

import os
import re
import shlex
from pathlib import Path

import pytest
import yaml

from tests.examples.recipes import EXAMPLES, Done, new_environment, out_of_reach, pip, run

(HOOK,) = yaml.safe_load((EXAMPLES.parent / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))


def commit(folder: Path, **files: str) -> Done:
    """Run the entry in the repository with the names of the staged files that it is for."""
    names = []
    for number, (name, text) in enumerate(files.items()):
        path = folder / str(number) / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        names.append(str(path.relative_to(folder)))
    matching = [name for name in names if re.search(HOOK["files"], name)]
    return run(*shlex.split(HOOK["entry"]), *matching, cwd=folder)


def test_it_has_what_pre_commit_demands() -> None:
    """By https://pre-commit.com/#creating-new-hooks: id, name, entry and language."""
    assert HOOK.keys() >= {"id", "name", "entry", "language"}
    assert (HOOK["id"], HOOK["language"]) == ("rprime-gates", "python")


def test_gates_that_hold_pass_and_other_files_are_left_alone(tmp_path: Path) -> None:
    good = (EXAMPLES / "gates.yaml").read_text(encoding="utf-8")
    done = commit(tmp_path, gates=good, workflow="rules: 7")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_every_mistake_has_its_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "0").mkdir()
    (tmp_path / "0" / "gates.yml").write_text("rules:\n  - index: recal\n    max_drop: 0.1\n")
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "gates.yml").write_text(
        "rules:\n  - index: accuracy\n    max_drop: 0.1\n  - index: accuracy\n    max_dorp: 0.1\n"
    )
    (tmp_path / "2").mkdir()
    (tmp_path / "2" / "gates.yml").write_text("rules: [\n")
    files = [f"{number}/gates.yml" for number in range(3)]
    done = run(*shlex.split(HOOK["entry"]), *files, cwd=tmp_path)
    assert done.returncode == 2
    assert re.search(r"0/gates\.yml:2:\d+: .*recal", done.stderr), done.stderr
    assert re.search(r"1/gates\.yml:5:5: .*max_dorp", done.stderr), done.stderr
    assert "2/gates.yml:2:1: this is no YAML" in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(
    "RPRIME_TEST_REGISTRIES" not in os.environ, reason="needs RPRIME_TEST_REGISTRIES=1"
)
def test_pre_commit_itself_runs_it(tmp_path: Path) -> None:
    """It clones the repository at a commit and installs the package for the hook."""
    programs = new_environment(tmp_path / "venv")
    pip(programs, "pre-commit==4.7.0")
    repository = EXAMPLES.parent
    head = run("git", "rev-parse", "HEAD", cwd=repository).stdout.strip()
    folder = tmp_path / "model"
    folder.mkdir()
    hook = {"repo": str(repository), "rev": head, "hooks": [{"id": HOOK["id"]}]}
    (folder / ".pre-commit-config.yaml").write_text(yaml.safe_dump({"repos": [hook]}))
    gates = folder / "gates.yaml"
    assert run("git", "init", "--quiet", cwd=folder).returncode == 0

    def checked(text: str) -> Done:
        gates.write_text(text, encoding="utf-8")
        assert run("git", "add", ".", cwd=folder).returncode == 0
        home = {"PRE_COMMIT_HOME": str(tmp_path / "home")}
        return run(programs / "pre-commit", "run", cwd=folder, variables=home, timeout=600)

    good = checked((EXAMPLES / "gates.yaml").read_text(encoding="utf-8"))
    if "No matching distribution" in good.stdout:
        out_of_reach(good.stdout)
    assert good.returncode == 0, good.stdout + good.stderr
    assert re.search(r"rprime gates\.+Passed", good.stdout), good.stdout
    broken = checked("rules:\n  - index: recal\n    max_drop: 0.1\n")
    assert broken.returncode == 1, broken.stdout
    assert re.search(r"gates\.yaml:2:\d+: .*'recal': .*`recall`", broken.stdout), broken.stdout
