"""Draw the pictures of the README: `sh .ci/venv python docs/site/picture.py [FOLDER]`."""

import io
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

import rprime
from rprime.application.reproduction import printed_request

WIDTH = 96
"""Columns of the terminal."""
IMAGES = Path(__file__).parents[1] / "images"
LINES = 28
"""What is shown of the report: the verdict, the failed rules, the cells that changed most."""
BASIC = ((31, 35, 40), (207, 34, 46), (17, 99, 41), (125, 78, 0))
BRIGHT = ((230, 237, 243), (255, 123, 114), (63, 185, 80), (210, 153, 34))
OTHERS = ((9, 105, 218), (130, 80, 223), (27, 124, 131), (110, 119, 129))
THEMES = {
    "light": TerminalTheme((246, 248, 250), (31, 35, 40), [*BASIC, *OTHERS]),
    "dark": TerminalTheme((22, 27, 34), (230, 237, 243), [*BRIGHT, *OTHERS]),
}
FORMAT = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<title>A failed evaluation in the terminal: 4 of 10 digits lost more recall than allowed</title>
<style>
.{unique_id}-matrix {{
  font: {char_height}px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
  line-height: {line_height}px; font-variant-east-asian: full-width;
}}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def report() -> rprime.Report:
    """Judge the LeNet-5 of table 7 before its improvement against the one after it."""
    before: Any = printed_request("mnist_before")
    after: Any = printed_request("mnist_after")
    gates: Any = {
        "rules": [
            {"index": "accuracy", "max_drop": 0.02},
            {"index": "recall", "classes": "all", "max_drop": 0.1},
        ]
    }
    return rprime.evaluate(**before, baseline=after, gates=gates)


def draw(folder: Path) -> None:
    """Write a picture for light pages and one for dark ones."""
    text = io.StringIO()
    terminal = Console(width=WIDTH, file=text, force_terminal=True, color_system="standard")
    terminal.print(report())
    for name, theme in THEMES.items():
        recorder = Console(width=WIDTH, record=True, file=io.StringIO())
        for line in text.getvalue().splitlines()[:LINES]:
            recorder.print(Text.from_ansi(line))
        recorder.save_svg(
            str(folder / f"failed-{name}.svg"),
            title="rprime evaluate candidate.csv --baseline champion.csv --gates gates.yaml",
            theme=theme,
            code_format=FORMAT,
            unique_id=f"rprime-{name}",
        )


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if sys.argv[1:] else IMAGES)
