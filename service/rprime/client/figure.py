"""Figures in notebooks and as files."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from rprime.report.figures.sheet import Canvas, form_of


class Figure:
    """A figure: a notebook shows it, `save` writes it."""

    def __init__(self, draw: Callable[[Canvas], bytes], width: int) -> None:
        self._draw = draw
        self._width = width  # in pixels of CSS, 96 to an inch

    @cached_property
    def svg(self) -> str:
        """The figure as SVG."""
        return self._draw(Canvas("svg", self._width)).decode()

    def save(self, path: str | Path, *, scale: float = 2.0) -> None:
        """Write a file whose path ends in .svg or .png.

        Parameters
        ----------
        scale
            Pixels of a PNG for each pixel of the width.
        """
        file = Path(path)
        file.write_bytes(self._draw(Canvas(form_of(file), self._width, scale)))

    def _repr_svg_(self) -> str:
        return self.svg
