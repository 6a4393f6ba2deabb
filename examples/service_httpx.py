"""A service that asks rprime whether a model may be released, with httpx and the contract alone.

RPRIME_SERVER=http://127.0.0.1:8000 uvicorn service_httpx:app --port 8100

POST /releases {"y_true": [...], "y_pred": [...], "y_pred_in_use": [...]} answers 200 with a
decision, release or hold; 503 where rprime gives none, which is never a reason against a model;
and 422, where rprime refuses the labels. Needs fastapi, httpx and uvicorn; who has rprime
installed may use `rprime.AsyncClient` in place of `ask`.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from secrets import SystemRandom
from typing import Any, Literal
from uuid import uuid4

import httpx
from fastapi import FastAPI, HTTPException, Request
from pydantic import BaseModel

ATTEMPTS = 4
BUSY = {429, 502, 503, 504}
LONGEST_PAUSE = 30.0
GATES = {"rules": [{"index": "recall", "classes": "all", "max_drop": 0.05}]}


class Candidate(BaseModel):
    """Labels of the same test items: the truth, of the new model, of the one in use."""

    y_true: list[str]
    y_pred: list[str | None]
    y_pred_in_use: list[str | None]


class Decision(BaseModel):
    """What to do, and why."""

    decision: Literal["release", "hold"]
    verdict: str
    reasons: list[str]


@asynccontextmanager
async def connected(app: FastAPI) -> AsyncIterator[None]:
    """Keep connections to rprime open from one request to the next."""
    key = os.environ.get("RPRIME_KEY")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with httpx.AsyncClient(
        base_url=os.environ.get("RPRIME_SERVER", "http://127.0.0.1:8000"),
        headers=headers,
        timeout=httpx.Timeout(30, connect=5),
    ) as app.state.rprime:
        yield


app = FastAPI(title="Releases", lifespan=connected)


@app.post("/releases")
async def decide(candidate: Candidate, request: Request) -> Decision:
    """Decide whether a model may be released: only where no class can have got worse by much."""
    body = {
        "y_true": candidate.y_true,
        "y_pred": candidate.y_pred,
        "baseline": {"y_pred": candidate.y_pred_in_use},
        "gates": GATES,
        "indices": ["accuracy", "recall"],
    }
    response = await ask(request.app.state.rprime, body)
    if response.is_client_error:
        raise HTTPException(422, response.json())
    verdict = response.headers["Evaluation-Verdict"]
    results = response.json()["gate"]["results"]
    return Decision(
        decision="release" if verdict == "pass" else "hold",
        verdict=verdict,
        reasons=[result["message"] for result in results if result["verdict"] != "pass"],
    )


async def ask(rprime: httpx.AsyncClient, body: dict[str, Any]) -> httpx.Response:
    """Post an evaluation, again where rprime is busy or out of reach.

    All attempts have one Idempotency-Key, so an evaluation is never counted twice.

    Raises
    ------
    HTTPException
        If there is no answer.
    """
    headers = {"Idempotency-Key": uuid4().hex}
    said = ""
    for attempt in range(ATTEMPTS):
        try:
            response = await rprime.post("/v1/evaluate", json=body, headers=headers)
        except httpx.TransportError as error:
            said, wanted = str(error) or type(error).__name__, 0.0
        else:
            if response.status_code not in BUSY and not response.is_server_error:
                return response
            said, wanted = f"it answers {response.status_code}", pause_of(response)
        if attempt + 1 < ATTEMPTS:
            backoff = 0.25 * 2**attempt * SystemRandom().uniform(1, 2)
            await asyncio.sleep(min(max(backoff, wanted), LONGEST_PAUSE))
    raise HTTPException(503, f"rprime gives no verdict: {said}", {"Retry-After": "60"})


def pause_of(response: httpx.Response) -> float:
    """Return the seconds that a busy service asks to wait."""
    said = response.headers.get("Retry-After", "")
    return float(said) if said.isdecimal() else 0.0
