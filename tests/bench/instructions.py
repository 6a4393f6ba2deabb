"""Count the user instructions of one request in this process, and compare with the parent commit.

    sh .ci/venv python tests/bench/instructions.py [--check] [--base HEAD^]

Valgrind counts them, which is repeatable on a busy machine, where times are not. Printed are
millions of instructions from the bytes of a request to those of its report, in the steady state,
and those of the first report of a process after `import rprime`. `--check` counts three requests,
and fails if one takes more than 5 % more than at the parent commit, in two runs, unless a commit
since then says why in a trailer, as in `Instructions: intervals of the slices`.
"""

import argparse
import ctypes
import gc
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import orjson

ROOT = Path(__file__).parents[2]
WARM, COUNTED = 2, 5
"""Requests before, and while instructions are counted."""
MOST = 1.05
"""How many times the instructions of the parent commit a request may take."""
STEADY, CHECKED = ("default", "intervals: false", "gate", "100 slices"), 3
"""Requests whose steady state is counted; the first of them are checked."""
FIRST = "first report"

SWITCH = """
#include <valgrind/callgrind.h>
void start(void) { CALLGRIND_START_INSTRUMENTATION; CALLGRIND_ZERO_STATS; }
void stop(const char *name) { CALLGRIND_DUMP_STATS_AT(name); CALLGRIND_STOP_INSTRUMENTATION; }
"""


def bodies() -> dict[str, bytes]:
    """Build the requests: a 10 x 10 table, 1000 items with a baseline, 100 slices of them."""
    import numpy as np  # noqa: PLC0415 (only the counted process needs it)

    draw = np.random.default_rng(0)
    table = (draw.integers(0, 60, (10, 10)) + 100 * np.eye(10, dtype=int)).tolist()
    true, *guesses = draw.integers(0, 10, (3, 1000))
    new, old = (np.where(draw.random(1000) < 0.85, true, guess).tolist() for guess in guesses)
    names = ("recall", "precision", "f1")
    rules = [{"index": index, "classes": "all", "max_drop": 0.05} for index in names]
    sliced = {"index": "accuracy", "slices": "part", "max_drop": 0.1}
    items = {"y_true": true.tolist(), "y_pred": new, "baseline": {"y_pred": old}}
    parts = {"slices": {"part": draw.integers(0, 100, 1000).tolist()}}
    requests = (
        {"confusion_matrix": table},
        {"confusion_matrix": table, "intervals": False},
        {**items, "gates": {"rules": rules}},
        {**items, **parts, "gates": {"rules": [sliced]}},
    )
    return dict(zip(STEADY, map(orjson.dumps, requests), strict=True))


def count(library: str, names: list[str]) -> None:
    """Answer requests under valgrind, which writes a file with the counts of each."""
    switch = ctypes.CDLL(library)
    if names == [FIRST]:
        import rprime  # noqa: PLC0415 (what is counted is what comes after it)

        switch.start()
        rprime.evaluate(confusion_matrix=[[50, 2], [3, 45]])
        switch.stop(FIRST.encode())
        return
    from rprime.application import read_request  # noqa: PLC0415 (only the counted process)
    from rprime.settings import Limits  # noqa: PLC0415 (the same)

    limits, requests = Limits(), bodies()
    for name in names:
        for number in range(WARM + COUNTED):
            if number == WARM:
                gc.collect()
                switch.start()
            request = read_request(requests[name], limits)
            request.report(request.evaluate())
        switch.stop(name.encode())


class NotCounted(Exception):  # noqa: N818 (a reason to skip, which is no error)
    """Instructions cannot be counted here."""


@contextmanager
def counter() -> Iterator[Callable[[Path, list[str]], dict[str, float]]]:
    """Yield a function that counts what a package takes for one request, in millions."""
    for program in ("valgrind", "cc"):
        if shutil.which(program) is None:
            raise NotCounted(f"{program} is missing; sh .ci/programs installs it")
    with tempfile.TemporaryDirectory() as made:
        library, source = Path(made, "switch.so"), Path(made, "switch.c")
        source.write_text(SWITCH)
        compiled = run("cc", "-shared", "-fPIC", "-o", str(library), str(source))
        if compiled.returncode:
            raise NotCounted(f"the header of valgrind does not compile: {compiled.stderr}")

        def counted(service: Path, names: list[str]) -> dict[str, float]:
            instructions: dict[str, float] = {}
            steady = [name for name in names if name != FIRST]
            for batch in (steady, [name for name in names if name == FIRST]):
                if batch:
                    instructions |= _counted(service, str(library), batch)
            return instructions

        yield counted


def _counted(service: Path, library: str, names: list[str]) -> dict[str, float]:
    fixed = {
        "PYTHONPATH": str(service),
        "PYTHONHASHSEED": "0",
        "OPENBLAS_NUM_THREADS": "1",
        "OPENBLAS_CORETYPE": "Haswell",
    }
    # Neither the environment nor the time of a compilation belongs to a request.
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    run(sys.executable, "-m", "compileall", "-q", str(service))
    with tempfile.TemporaryDirectory() as folder:
        done = run(
            *("valgrind", "--tool=callgrind", "--instr-atstart=no"),
            f"--callgrind-out-file={folder}/counts",
            *(sys.executable, __file__, "--count", library, *names),
            environment=kept | fixed,
        )
        if done.returncode:
            raise ChildProcessError(done.stderr)
        instructions = {}
        for file in Path(folder).iterdir():
            text = file.read_text()
            name = re.search(r"^desc: Trigger: Client Request: (.*)$", text, re.MULTILINE)
            total = re.search(r"^(?:totals|summary): (\d+)$", text, re.MULTILINE)
            if name and total:
                instructions[name[1]] = int(total[1]) / (1 if name[1] == FIRST else COUNTED) / 1e6
    return {name: instructions[name] for name in names}


def run(
    *command: str, environment: dict[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run a program to its end."""
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def git(*arguments: str) -> str | None:
    """Return what git says of this checkout; None if it fails."""
    if shutil.which("git") is None:
        return None
    done = run("git", "-C", str(ROOT), *arguments)
    return done.stdout.strip() if done.returncode == 0 else None


@contextmanager
def checkout(base: str) -> Iterator[Path]:
    """Yield a folder with the package as it was at a commit."""
    if git("rev-parse", "--verify", "--quiet", f"{base}^{{commit}}") is None:
        raise NotCounted(f"{base} is not here: no git, a shallow clone or the first commit")
    with tempfile.TemporaryDirectory() as made:
        archive = f"{made}/service.tar"
        if git("archive", "--output", archive, base, "service") is None:
            raise NotCounted(f"git cannot read {base}")
        shutil.unpack_archive(archive, made)
        yield Path(made, "service")


def counts(names: list[str], base: str) -> Iterator[tuple[dict[str, float], dict[str, float]]]:
    """Count this checkout and a commit, again and again; `names` may lose some meanwhile."""
    with counter() as counted, checkout(base) as before:
        while True:
            ours = counted(ROOT / "service", names)
            try:
                theirs = counted(before, names)
            except ChildProcessError as error:
                raise NotCounted(f"{base} does not answer here: {error}") from None
            for name in names:
                times = ours[name] / theirs[name]
                print(f"{name:18s} {ours[name]:10.2f} {theirs[name]:10.2f} {times:8.3f} times")
            yield ours, theirs


def check(base: str) -> str | None:
    """Say which requests take more than at a commit, if no commit since then says why."""
    if git("diff", "--quiet", base, "--", "service") == "":
        raise NotCounted(f"service is the same as at {base}")
    names = list(STEADY[:CHECKED])
    for ours, theirs in islice(counts(names, base), 2):
        names[:] = [name for name in names if ours[name] > MOST * theirs[name]]
        if not names:
            return None
    if reasons := git("log", "--format=%(trailers:key=Instructions,valueonly)", f"{base}..HEAD"):
        print(f"more instructions, because of: {' '.join(reasons.split())}")
        return None
    return (
        f"{', '.join(names)}: over {MOST - 1:.0%} more instructions than at {base}. Take them "
        "back, or end the message of the commit with `Instructions: ` and the reason"
    )


def main() -> None:
    """Count this checkout and its parent commit, in millions of instructions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if a request takes more")
    parser.add_argument("--base", default="HEAD^", help="the commit to compare with")
    parser.add_argument("--count", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.count:
        count(options.count[0], options.count[1:])
        return
    try:
        if options.check:
            sys.exit(check(options.base))
        next(counts([*STEADY, FIRST], options.base))
    except NotCounted as reason:
        print(f"skipped: instructions are not counted, {reason}")


if __name__ == "__main__":
    main()
