"""Liveness, readiness, version and limits of the service."""

from typing import Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from rprime import __version__
from rprime.problems.handlers import stopping
from rprime.problems.problem import responses
from rprime.routes.fixed_limits import FixedLimits
from rprime.routes.services import get_services
from rprime.settings import Limits

router = APIRouter(tags=["Operation"], responses=responses("internal_error"))


class Health(BaseModel):
    """The state of the service."""

    status: Literal["ok"] = Field("ok", description="The process answers.")


class Readiness(Health):
    """Whether requests can be served."""

    store: Literal["ok", "none", "full", "read_only", "locked", "unavailable"] = Field(
        description="`none`: the service keeps no history. `full` (the disk), `read_only`, "
        "`locked` (by another program), `unavailable` (an error of the disk): nothing is stored, "
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
async def livez() -> Health:
    """Answer while the process runs. A failure means: restart it."""
    return Health()


@router.get(
    "/readyz", summary="Can it take requests?", responses=responses("store_unavailable", "stopping")
)
async def readyz(request: Request) -> Readiness:
    """Answer when requests can be served. A failure means: send them elsewhere for now.

    The store is read. If the last write failed, another is tried.
    """
    if get_services(request).draining.has_started:
        raise stopping()
    return Readiness(store=await get_services(request).store.check())


@router.get("/version", summary="Which version, with which limits?")
async def get_version(request: Request) -> VersionInfo:
    """Return the version of the service and of its formulas, and every limit in force."""
    return VersionInfo(limits=get_services(request).limits)
