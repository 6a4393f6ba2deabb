"""Models of the requests that simulate a gate, lint and plan."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field, create_model

from rprime.schemas.fields import Absent, Request, optional
from rprime.schemas.gate import Gates
from rprime.schemas.population import PopulationAsked
from rprime.schemas.request import (
    CellsEvidence,
    EvidenceRest,
    LabelsEvidence,
    MatrixEvidence,
    ScoresEvidence,
)


class _Simulation(Request):
    gates: Gates = Field(description="The gate to simulate.")
    pairing: Literal["paired", "unpaired"] = Field(
        default="paired", description="Whether both models answer the same items."
    )
    discordance: Annotated[float, Field(gt=0, le=1)] = Field(
        default=0.06,
        description="Paired: share of the items that only one of the two models gets right, in "
        "each class as far as the class allows.",
    )
    population: PopulationAsked | Absent = optional(
        "What the rules are about, given by `prevalence`."
    )
    seed: int = Field(default=0, ge=0, le=2**32 - 1, description="Seed of the simulation.")


class _Lint(_Simulation):
    replicates: int = Field(default=2000, ge=100, le=20_000, description="Simulated comparisons.")


class _Plan(_Simulation):
    drop: Annotated[float, Field(gt=0, le=1)] | None = optional(
        "The drop to find, above the limit of each rule about a drop or rise; default: twice the "
        "limit of a change or gap, and none for other rules."
    )
    width: Annotated[float, Field(gt=0)] | None = optional(
        "Plans the items, too, until the lower and the upper limit of every result are at most so "
        "far apart: of the value, or of the change that the rule bounds."
    )


class LintRest(EvidenceRest, _Lint):
    """A request to lint without its arrays."""


class PlanRest(EvidenceRest, _Plan):
    """A request to plan without its arrays."""


def _of_each_evidence(name: str, options: type[Request], text: str) -> tuple[type[BaseModel], ...]:
    """Return a model of a request for each kind of evidence."""
    kinds = (MatrixEvidence, CellsEvidence, LabelsEvidence, ScoresEvidence)
    return tuple(
        create_model(
            f"{kind.__name__.removesuffix('Evidence')}{name}",
            __base__=(kind, options),
            __doc__=text,
        )
        for kind in kinds
    )


LINT_REQUESTS = _of_each_evidence(
    "LintRequest", _Lint, "A gate, and the evidence about a model to lint it with."
)
"""One of these is the body of POST /v1/gates/lint."""
PLAN_REQUESTS = _of_each_evidence(
    "PlanRequest", _Plan, "A gate, and the evidence about a model to plan its test set with."
)
"""One of these is the body of POST /v1/gates/plan."""
