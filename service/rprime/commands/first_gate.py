"""The gate without a file: no worse than a baseline, overall and by class."""

from http import HTTPStatus
from typing import Any

from rprime.commands.exit_status import refuse
from rprime.commands.history_source import connected
from rprime.commands.options import ServiceOptions

AGREED = "agreed"
"""The alias that is the anchor, where the project has it."""
_CLASS_DROP = 0.1

Json = dict[str, Any]


def first_gate(drop: float, service: ServiceOptions | None, project: str | None) -> Json:
    """Return gates that allow this drop in accuracy, and a drop in the recall of the classes.

    A class has fewer items than the test set, so its limit is 0.1, or `drop` if that is larger.
    """
    if not 0 < drop < 1:
        refuse(f"--no-worse-than {drop:g}: it is the drop allowed in accuracy, as .02 for 2 points")
    rules = rules_of(drop, max(drop, _CLASS_DROP))
    anchored = service is not None and project is not None and _is_agreed(service, project)
    return {"rules": rules} | ({"anchor": {"alias": AGREED}} if anchored else {})


def rules_of(drop: float, class_drop: float) -> list[Json]:
    """Return rules that allow this drop in accuracy, and this one in the recall of the classes."""
    return [
        {"index": "accuracy", "max_drop": drop},
        {"index": "recall", "classes": "all", "max_drop": class_drop},
    ]


def _is_agreed(service: ServiceOptions, project: str) -> bool:
    from rprime.client.errors import ProblemError

    with connected(service) as client:
        try:
            client.alias(project, AGREED)
        except ProblemError as problem:
            if problem.status != HTTPStatus.NOT_FOUND:
                raise
            return False
    return True
