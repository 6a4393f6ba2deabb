"""The special functions of SciPy, which is imported when one is first used.

Its import takes longer than numpy, Pydantic and the command together, and a small report needs
none of them.
"""

from typing import Any


def __getattr__(name: str) -> Any:  # noqa: ANN401 (a function of SciPy)
    if name.startswith("__"):
        raise AttributeError(name)
    from scipy import special  # noqa: PLC0415 (see above)

    function = getattr(special, name)
    globals()[name] = function
    return function


def load() -> None:
    """Import SciPy now, where the first use of a function must not wait for it."""
    __getattr__("ndtr")
