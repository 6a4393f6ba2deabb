"""The blocks "before" of docs/coming-from.md, run by the tools themselves, print what is shown.

The tools come from the package registry, each into an environment of its own:
`RPRIME_TEST_REGISTRIES=1`. TensorFlow alone takes 3 GB and minutes.
"""

import os
import re
import sys
from pathlib import Path

import pytest

from tests.examples.recipes import EXAMPLES, new_environment, pip, run
from tests.test_guides import squeezed

PAGE = (EXAMPLES.parent / "docs" / "coming-from.md").read_text(encoding="utf-8")
SECTION = r"^## ([^\n]+)$(?:(?!^## ).)*?^```py\n(.*?)^```\n\n```text\n(.*?)^```"
BEFORE = {
    name: (block, shown)
    for name, block, shown in re.findall(SECTION, PAGE, re.DOTALL | re.MULTILINE)
}
ITEMS = "\n".join(re.findall(r"^y_(?:true|pred) = .*$", PAGE, re.MULTILINE))
# pandas 3 has no `infer_dtype_from_object`, which Evidently 0.7.23 imports.
TOOLS = {
    "PyCM": ["pycm==4.6"],
    "TorchMetrics": ["torchmetrics==1.9.0", "torch==2.13.0"],
    "TensorFlow Model Analysis": ["tensorflow-model-analysis==0.52.0"],
    "Evidently": ["evidently==0.7.23", "pandas<3"],
    "MLflow": ["mlflow==3.17.2"],
}


def test_every_other_tool_has_a_block_that_shows_what_it_prints() -> None:
    assert list(BEFORE) == list(TOOLS)
    assert PAGE.count("```py\n") == len(TOOLS)
    for packages in TOOLS.values():
        release = re.search(r"==(\d+\.\d+)", packages[0])
        assert release
        assert re.search(rf"^Before, with \w+ {re.escape(release[1])}\b", PAGE, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.skipif(
    "RPRIME_TEST_REGISTRIES" not in os.environ, reason="needs RPRIME_TEST_REGISTRIES=1"
)
@pytest.mark.parametrize("tool", TOOLS)
def test_a_block_prints_what_is_shown(tool: str, tmp_path: Path) -> None:
    block, shown = BEFORE[tool]
    programs = new_environment(tmp_path / "venv")
    pip(programs, *TOOLS[tool])
    written = run(
        sys.executable, EXAMPLES / "train_digits.py", "--write", ".", cwd=tmp_path, timeout=300
    )
    assert written.returncode == 0, written.stderr
    (tmp_path / "before.py").write_text(f"{ITEMS}\n{block}", encoding="utf-8")
    done = run(programs / "python", "before.py", cwd=tmp_path, timeout=900)
    assert done.returncode == 0, done.stderr
    assert squeezed(done.stdout) == squeezed(shown), done.stderr
