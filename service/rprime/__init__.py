"""Evaluation of multiclass classifiers, as a service, a command and a library."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rprime.client.clients import AsyncClient, Client
    from rprime.client.errors import ProblemError, ServiceUnavailableError
    from rprime.client.in_process import compare, evaluate, lint, plan, tallied, weak_slices
    from rprime.client.report import Report

__all__ = [
    "AsyncClient",
    "Client",
    "ProblemError",
    "Report",
    "ServiceUnavailableError",
    "__version__",
    "compare",
    "evaluate",
    "lint",
    "plan",
    "tallied",
    "weak_slices",
]
__version__ = "0.2.0"

# Imported when they are first used, so that `import rprime` and every command start at once.
_CONTENTS = {
    "clients": ("AsyncClient", "Client"),
    "errors": ("ProblemError", "ServiceUnavailableError"),
    "in_process": ("compare", "evaluate", "lint", "plan", "tallied", "weak_slices"),
    "report": ("Report",),
}


def __getattr__(name: str) -> object:
    for module, names in _CONTENTS.items():
        if name in names:
            value: object = getattr(import_module(f"rprime.client.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
