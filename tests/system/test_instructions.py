"""`.ci/run` compares the instructions of a request with the parent commit, or says why not."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COUNTER = "tests/bench/instructions.py"


def git(folder: Path, *arguments: str) -> None:
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    command = ["git", *author, "-C", str(folder), *arguments]
    subprocess.run(command, check=True, capture_output=True, timeout=60)


def checked(folder: Path, path: str | None = None) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, COUNTER, "--check"]
    environment = None if path is None else {"PATH": path}
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a repository with one commit, and a package that differs from it."""
    folder = tmp_path / "checkout"
    ignored = shutil.ignore_patterns("__pycache__", "guide")
    shutil.copytree(ROOT / "service", folder / "service", ignore=ignored)
    (folder / COUNTER).parent.mkdir(parents=True)
    shutil.copy(ROOT / COUNTER, folder / COUNTER)
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "Begin")
    return folder


def slow_down(folder: Path, *message: str) -> None:
    """Commit a request that takes a million instructions more."""
    module = folder / "service/rprime/application/request.py"
    text = module.read_text(encoding="utf-8")
    place = "    document = content if isinstance(content, Document) else parse("
    assert place in text
    module.write_text(text.replace(place, f"    sum(range(10_000))\n{place}"), encoding="utf-8")
    paragraphs = [word for paragraph in message for word in ("--message", paragraph)]
    git(folder, "commit", "--quiet", "--all", *paragraphs)


def test_without_a_parent_commit_it_says_so(checkout: Path) -> None:
    done = checked(checkout)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("skipped: ")
    assert "HEAD^ is not here" in done.stdout


def test_a_shallow_clone_says_so(checkout: Path, tmp_path: Path) -> None:
    slow_down(checkout, "Slow down")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", "--depth", "1", checkout.as_uri(), str(clone))
    done = checked(clone)
    assert (done.returncode, done.stderr) == (0, "")
    assert "HEAD^ is not here: no git, a shallow clone" in done.stdout


def test_without_a_change_of_the_package_nothing_is_counted(checkout: Path) -> None:
    git(checkout, "commit", "--quiet", "--allow-empty", "--message", "Nothing")
    done = checked(checkout)
    assert (done.returncode, done.stderr) == (0, "")
    assert "service is the same as at HEAD^" in done.stdout


def test_without_valgrind_it_says_what_installs_it(checkout: Path, tmp_path: Path) -> None:
    slow_down(checkout, "Slow down")
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "git").symlink_to(str(shutil.which("git")))
    done = checked(checkout, str(programs))
    assert (done.returncode, done.stderr) == (0, "")
    assert "valgrind is missing; sh .ci/programs installs it" in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is missing: .ci/programs")
def test_more_instructions_fail_unless_the_commit_says_why(checkout: Path) -> None:
    slow_down(checkout, "Slow down")
    done = checked(checkout)
    assert done.returncode == 1
    # The gate takes ten times as many, so that this is less than 5 % of it.
    assert "default, intervals: false: over 5% more instructions than at HEAD^" in done.stderr
    git(checkout, "commit", "--quiet", "--amend", "-m", "Slow down", "-m", "Instructions: a sum")
    done = checked(checkout)
    assert done.returncode == 0, done.stderr
    assert "because of: a sum" in done.stdout
