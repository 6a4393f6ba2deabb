"""Examples for the OpenAPI document: published tables and their reports."""

from functools import cache
from typing import Any

import orjson

from rprime.application import read_request
from rprime.settings import Limits

MNIST: dict[str, Any] = {
    "confusion_matrix": [
        [966, 1, 0, 2, 0, 1, 4, 3, 3, 0],
        [0, 1125, 3, 1, 0, 0, 2, 1, 3, 0],
        [1, 0, 1016, 4, 0, 0, 1, 3, 7, 0],
        [1, 0, 5, 987, 0, 4, 0, 6, 4, 3],
        [1, 0, 3, 0, 945, 0, 2, 3, 2, 26],
        [2, 0, 0, 7, 1, 871, 4, 2, 3, 2],
        [4, 3, 2, 1, 1, 3, 940, 0, 4, 0],
        [2, 1, 4, 0, 0, 0, 0, 1011, 3, 7],
        [0, 1, 3, 5, 0, 4, 1, 2, 954, 4],
        [0, 3, 2, 2, 5, 0, 2, 2, 2, 991],
    ],
}
MNIST_BEFORE: dict[str, Any] = {
    "confusion_matrix": [
        [839, 7, 40, 14, 4, 40, 6, 10, 3, 17],
        [0, 1128, 1, 3, 0, 1, 0, 1, 1, 0],
        [1, 3, 1007, 9, 0, 2, 0, 6, 2, 2],
        [0, 0, 3, 989, 0, 10, 1, 3, 0, 4],
        [1, 8, 17, 4, 714, 4, 11, 30, 12, 181],
        [0, 0, 0, 10, 0, 876, 0, 1, 1, 4],
        [9, 6, 59, 4, 12, 80, 763, 2, 17, 6],
        [0, 4, 7, 4, 0, 0, 0, 1005, 1, 7],
        [6, 24, 48, 89, 3, 68, 3, 9, 659, 65],
        [0, 6, 1, 4, 1, 2, 0, 4, 0, 991],
    ],
}
MNIST_AFTER: dict[str, Any] = {
    "confusion_matrix": [
        [968, 1, 2, 2, 1, 1, 3, 1, 1, 0],
        [0, 1126, 1, 1, 0, 0, 4, 1, 2, 0],
        [2, 3, 1011, 2, 2, 0, 1, 4, 7, 0],
        [1, 0, 8, 982, 0, 4, 0, 3, 8, 4],
        [4, 1, 6, 0, 956, 0, 2, 2, 3, 8],
        [2, 1, 0, 8, 1, 868, 6, 1, 4, 1],
        [3, 2, 1, 1, 3, 1, 945, 0, 2, 0],
        [0, 6, 13, 1, 0, 0, 0, 998, 4, 6],
        [3, 2, 3, 2, 1, 0, 1, 1, 955, 6],
        [1, 3, 1, 3, 8, 5, 2, 2, 4, 980],
    ],
}
GATES: dict[str, Any] = {"rules": [{"index": "r_prime", "classes": "all", "max_drop": 0.05}]}
SHORT = {
    "indices": ["accuracy", "r_prime", "weighted_kappa", "macro_f1", "precision"],
    "kappa_weights": "linear",
}
LABELS: dict[str, Any] = {
    "y_true": ["cat", "cat", "dog", "dog", "dog", "horse"],
    "y_pred": ["cat", "dog", "dog", "dog", None, "horse"],
}

EXAMPLES: dict[str, Any] = {
    "confusion_matrix": {
        "summary": "LeNet-5 on MNIST: table 4 of Zhang, Su, Dou 2021, some of the indices",
        "value": {**MNIST, **SHORT},
    },
    "labels": {
        "summary": "The labels of six items, one of them unclassified",
        "value": LABELS,
    },
    "cells": {
        "summary": "The nonzero cells of a table",
        "value": {
            "labels": ["a", "b", "c"],
            "cells": [[0, 0, 50], [1, 1, 30], [1, 2, 4], [2, 2, 9]],
        },
    },
}


def add_examples(document: dict[str, Any]) -> None:
    """Add the report on the first example to an OpenAPI document.

    Computed only for the document, so that the service starts without it.
    """
    for path in ("/evaluate", "/v1/evaluate"):
        answer = document["paths"][path]["post"]["responses"]["200"]
        answer["content"]["application/json"]["example"] = example_report()


@cache
def example_report() -> Any:  # noqa: ANN401 (JSON)
    """Return the report on the first example, shortened: rounded numbers, two classes."""
    evaluation_request = read_request(orjson.dumps(EXAMPLES["confusion_matrix"]["value"]), Limits())
    report = orjson.loads(evaluation_request.report(evaluation_request.evaluate()))
    report["per_class"] = {label: report["per_class"][label] for label in ("0", "9")}
    report["top_confusions"] = report["top_confusions"][:2]
    return _rounded(report)


def _rounded(content: Any) -> Any:  # noqa: ANN401 (JSON)
    if isinstance(content, dict):
        return {name: _rounded(value) for name, value in content.items()}
    if isinstance(content, list):
        return [_rounded(value) for value in content]
    return round(content, 4) if isinstance(content, float) else content
