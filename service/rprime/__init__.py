"""Evaluation of multiclass classifiers, as a service, a command and a library."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rprime.client.clients import AsyncClient, Client
    from rprime.client.errors import ProblemError, ServiceUnavailableError
    from rprime.client.in_process import compare, evaluate, lint, plan, weak_slices
    from rprime.client.report import Report
    from rprime.client.tallies import tallied

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
_HOMES = {
    "AsyncClient": "clients",
    "Client": "clients",
    "ProblemError": "errors",
    "Report": "report",
    "ServiceUnavailableError": "errors",
    "compare": "in_process",
    "evaluate": "in_process",
    "lint": "in_process",
    "plan": "in_process",
    "tallied": "tallies",
    "weak_slices": "in_process",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"rprime.client.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
