"""Liveness, readiness, version and limits of the service."""

from typing import Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from rprime import __version__
from rprime.application.assessment import MOST_COMPARED
from rprime.core.labels import LONGEST_NAME
from rprime.core.options import DEFAULT_PAGE_VALUES
from rprime.evidence.columns import LONGEST_LINE
from rprime.evidence.npz_body import MOST_DIRECTORY
from rprime.problems.handlers import stopping
from rprime.problems.problem import responses
from rprime.routes.services import get_services
from rprime.routes.workers import STALLED_SECONDS
from rprime.server.cost import costs
from rprime.server.inflating import FREE_OF_RATIO, LARGEST_WINDOW, MOST_RATIO
from rprime.server.worker_limits import CPU_SECONDS
from rprime.settings import Limits

router = APIRouter(tags=["Operation"], responses=responses("invalid_request", "internal_error"))


class FixedLimits(BaseModel):
    """Limits of a request in every installation."""

    inflated_ratio: int = Field(
        MOST_RATIO, description="Largest ratio of inflated to received bytes in gzip or zstd."
    )
    inflated_free_bytes: int = Field(
        FREE_OF_RATIO, description="Inflated bytes that are allowed at any ratio."
    )
    zstd_window_bytes: int = Field(LARGEST_WINDOW, description="Largest window of a body in zstd.")
    csv_line_bytes: int = Field(LONGEST_LINE, description="Longest line of a CSV.")
    worker_cpu_seconds: int = Field(CPU_SECONDS, description="Processor time of a large request.")
    npz_directory_bytes: int = Field(MOST_DIRECTORY, description="Directory of an NPZ archive.")
    stalled_seconds: float = Field(
        STALLED_SECONDS, description="Longest pause within a body of columns."
    )
    name_characters: int = Field(LONGEST_NAME, description="Longest name of a class.")
    compared_classes: int = Field(MOST_COMPARED, description="Most classes of a comparison.")
    unasked_values: int = Field(
        DEFAULT_PAGE_VALUES,
        description="Most values of classes in a report, unless `classes` selects classes.",
    )


class Health(BaseModel):
    """The state of the service."""

    status: Literal["ok"] = Field("ok", description="The process answers.")


class Readiness(Health):
    """Whether requests can be served."""

    store: Literal["ok", "none", "full", "read_only", "locked", "unavailable"] = Field(
        description="`none`: the service keeps no history. `full` (the disk), `read_only`, "
        "`locked` (by another program), `unavailable` (the disk fails): nothing is stored, "
        "but stored evaluations are read."
    )


class VersionInfo(BaseModel):
    """The version of the service and its limits."""

    name: Literal["rprime"] = Field("rprime", description="Which service this is.")
    version: str = Field(__version__, description="The version of the service.")
    engine_version: str = Field(
        __version__, description="The version of the formulas, as in reports."
    )
    limits: Limits
    fixed_limits: FixedLimits = FixedLimits()


@router.get("/livez", summary="Is the process alive?")
@costs("cheap")
async def livez() -> Health:
    """Answer while the process runs. A failure means: restart it."""
    return Health()


@router.get(
    "/readyz", summary="Can it take requests?", responses=responses("store_unavailable", "stopping")
)
@costs("store")
async def readyz(request: Request) -> Readiness:
    """Answer when requests can be served. A failure means: send them elsewhere for now.

    The store is read. If the last write failed, another is tried.
    """
    if get_services(request).draining.has_started:
        raise stopping()
    return Readiness(store=await get_services(request).store.check())


@router.get("/version", summary="Which version, with which limits?")
@costs("cheap")
async def get_version(request: Request) -> VersionInfo:
    """Return the version of the service and of its formulas, and every limit in force."""
    return VersionInfo(limits=get_services(request).limits)
