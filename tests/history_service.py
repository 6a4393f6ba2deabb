"""Evaluations to keep, and services that keep them, for the tests of the history."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from fastapi import FastAPI

from rprime.app import create_app
from rprime.core.table import ConfusionTable
from rprime.settings import Settings
from rprime.store import NewEvaluation

ServeApp = Callable[[FastAPI], AbstractContextManager[httpx.Client]]
Json = dict[str, Any]

LABELS = ["cat", "dog", "eel"]
TRUE = [LABELS[i] for i in np.random.default_rng(0).integers(0, 3, 400)]


def matrix(errors: int = 5, project: str | None = "pets", **members: Any) -> Json:
    """Return a request with a table of 300 items, some of them errors; None leaves a member out."""
    good = 100 - 2 * errors
    table = [[good if i == j else errors for j in range(3)] for i in range(3)]
    content = {"confusion_matrix": table, "labels": LABELS, "indices": ["accuracy", "recall"]}
    whole = content | {"project": project} | members
    return {name: member for name, member in whole.items() if member is not None}


def predicted(seed: int, wrong: float) -> list[str]:
    """Predict `TRUE`, a share of it wrongly."""
    draw = np.random.default_rng(seed)
    flip = draw.random(len(TRUE)) < wrong
    other = draw.integers(1, 3, len(TRUE))
    return [
        LABELS[(LABELS.index(t) + (o if f else 0)) % 3]
        for t, f, o in zip(TRUE, flip.tolist(), other.tolist(), strict=True)
    ]


def labels(seed: int = 1, wrong: float = 0.1, **members: Any) -> Json:
    """Return a request with the labels of 400 items; None leaves a member out."""
    whole = {
        "y_true": TRUE,
        "y_pred": predicted(seed, wrong),
        "project": "pets",
        "indices": ["accuracy", "recall", "r_prime"],
        **members,
    }
    return {name: member for name, member in whole.items() if member is not None}


@contextmanager
def keeping(serve_app: ServeApp, folder: Path, **settings: Any) -> Iterator[httpx.Client]:
    """Serve with a SQLite store in a folder."""
    options = {"store": f"sqlite:///{folder}/rprime.db"} | settings
    with serve_app(create_app(Settings(**options))) as client:
        yield client


def keep(client: httpx.Client, content: Json, status: int = 201, **headers: str) -> Json:
    """Evaluate and keep; the report."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    response = client.post("/v1/evaluate", json=content, headers=named)
    assert response.status_code == status, response.text
    report: Json = response.json()
    return report


def stored(count: int, classes: int = 10) -> Iterator[NewEvaluation]:
    """Return evaluations for a store itself, where there are too many for the service."""
    draw = np.random.default_rng(0)
    for number in range(count):
        right = np.diag(draw.integers(800, 1000, classes))
        counts = right + draw.integers(0, 30, (classes, classes))
        yield NewEvaluation(
            project="digits",
            labels=tuple(map(str, range(classes))),
            table=ConfusionTable.dense(counts.astype(np.float64)),
            input_digest=f"sha256:{number:064x}",
            engine_version="0",
            model=f"m{number % 3}",
            version=str(number),
            branch=("main", "dev")[number % 2],
            verdict=("pass", "fail")[number % 7 == 0],
        )
