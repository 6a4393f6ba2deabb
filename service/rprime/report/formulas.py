"""Formulas: the TeX of the catalog as MathML, which browsers draw without a script."""

from functools import cache
from importlib.resources import files

import orjson
from markupsafe import Markup

DATA = "data/formulas.json"
"""Made by the build of `dashboard/script`."""


def formula(tex: str) -> Markup:
    """Return the MathML of a formula of the catalog; one that was not built yet stays TeX."""
    found = _built().get(tex)
    return Markup("<code>{}</code>").format(tex) if found is None else Markup(found)  # noqa: S704 (our own file)


@cache
def _built() -> dict[str, str]:
    found: dict[str, str] = orjson.loads(files("rprime").joinpath(DATA).read_bytes())
    return found
