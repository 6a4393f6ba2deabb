"""Figures in notebooks and as files."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from rprime.report.figures.sheet import Canvas, form_of


class Figure:
    """A figure: a notebook shows it, `save` writes it.

    Parameters
    ----------
    draw
        Returns the bytes of the image on a canvas.
    width
        In pixels of CSS, 96 to an inch.
    """

    def __init__(self, draw: Callable[[Canvas], bytes], width: int) -> None:
        self._draw = draw
        self._width = width

    @cached_property
    def svg(self) -> str:
        """The figure as SVG."""
        return self._draw(Canvas("svg", self._width)).decode()

    def save(self, path: str | Path, *, scale: float = 2.0) -> None:
        """Write a file.

        Parameters
        ----------
        path
            Ends in .svg or .png.
        scale
            Pixels of a PNG for each pixel of the width.

        Raises
        ------
        ValueError
            If the path ends otherwise.
        """
        file = Path(path)
        file.write_bytes(self._draw(Canvas(form_of(file), self._width, scale)))

    def _repr_svg_(self) -> str:
        return self.svg
