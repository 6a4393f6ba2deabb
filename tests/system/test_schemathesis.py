"""The contract as schemathesis reads it: every check, on every operation.

`RPRIME_TEST_PHASES=examples,coverage,fuzzing RPRIME_TEST_EXAMPLES=200` is the long version.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.services import Serve, environment

SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
CONFIG = Path(__file__).with_name("schemathesis.toml")
PHASES = os.environ.get("RPRIME_TEST_PHASES", "examples,fuzzing")
EXAMPLES = os.environ.get("RPRIME_TEST_EXAMPLES", "3")


def test_schemathesis_finds_nothing(serve: Serve, tmp_path: Path) -> None:
    with serve() as client:
        document = str(client.base_url.join("/openapi.json"))
        options = [*("--phases", PHASES), *("--max-examples", EXAMPLES), *("--seed", "1")]
        done = subprocess.run(
            [SCHEMATHESIS, "--config-file", CONFIG, "run", document, "--checks", "all", *options],
            cwd=tmp_path,
            env=environment(
                PYTHONPATH=str(CONFIG.parents[2]),
                SCHEMATHESIS_HOOKS="tests.system.schemathesis_hooks",
            ),
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout
    counted = re.search(r"(\d+) generated, (\d+) passed", done.stdout)
    assert counted, done.stdout
    assert int(counted[1]) == int(counted[2]) > 100
