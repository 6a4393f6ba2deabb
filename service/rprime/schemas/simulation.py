"""Models of the requests that simulate a gate, lint and plan, and of their answers."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field, create_model

from rprime.schemas.fields import Absent, Answer, Request, optional
from rprime.schemas.gate import Gates
from rprime.schemas.population import PopulationAsked
from rprime.schemas.request import (
    CellsEvidence,
    EvidenceRest,
    LabelsEvidence,
    MatrixEvidence,
    ScoresEvidence,
)

_FAILING = "Share of runs that fail an unchanged model, 0 to 1."
_RATES = "On other test sets of this size, drawn from the table."
_DISCORDANCE = "Share of the items that only one of the two models got right; null if unpaired."


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


class RuleLint(Answer):
    """How a rule would judge an unchanged model."""

    id: str = Field(description="The id of the rule.")
    class_: str | None = Field(alias="class", description="The class; null for an overall index.")
    slice: dict[str, str] | None = Field(description="Its slice; null: all items.")
    average_of: int | None = Field(
        description="The number of classes or slices whose mean it is; null for a single one."
    )
    columns: list[str] | None = Field(description="The columns of these slices; null for classes.")
    items: int = Field(description="The number of items behind the value.")
    false_fail_rate: float = Field(description=_FAILING)
    inconclusive_rate: float = Field(description="Share of undecided runs, 0 to 1.")
    detectable_drop: float | None = Field(
        description="The drop that the rule detects with 80 % power; null if none."
    )
    detectable_interval: tuple[float | None, float | None] = Field(
        description="The same on 95 % of other test sets of this size, drawn from the table."
    )
    smallest_limit: float | None = Field(
        description="The smallest limit of a change that an unchanged model passes in 8 of 10 "
        "builds; null for a bound on values."
    )


class ClassItems(Answer):
    """The items of a class, and how many its rules need."""

    class_: str = Field(alias="class", description="Name of the class.")
    items: int = Field(description="Its items in the table.")
    needed: int | None = Field(
        description="To find the drop in 80 % of runs; null if 1000 times as many do not suffice, "
        "or no rule is about the class."
    )


class SliceItems(Answer):
    """The items of a slice, and how many its rules need."""

    slice: dict[str, str] = Field(description="Column and value, of a crossing several.")
    items: int = Field(description="Its items in the table.")
    needed: int | None = Field(
        description="Until an unchanged model passes its rules in 90 % of runs, and each finds the "
        "drop in 80 %; null if 1000 times as many do not suffice."
    )


class PlanReport(Answer):
    """How many items a gate needs, in the shares of the table's classes."""

    items: int = Field(description="Of the table.")
    for_passing: int | None = Field(
        description="Until an unchanged model passes in 90 % of runs; null if 1000 times as many "
        "as in the table do not suffice. The fewest that are tried are a sixteenth of `items`."
    )
    for_finding: int | None = Field(
        description="Until every rule finds its drop in 80 % of runs; null as above, or if no rule "
        "has one."
    )
    discordance: float | None = Field(description=_DISCORDANCE)
    classes: list[ClassItems] = Field(description="What the rules need of each class.")
    slices: list[SliceItems] = Field(description="What the rules need of each of their slices.")
    advice: list[str] = Field(description="What to change, in sentences; often empty.")


class PassChance(Answer):
    """How often a gate passes a model that is worse than its baseline."""

    classes: Literal["all", "smallest", "median", "largest"] = Field(
        description="The classes that lose."
    )
    class_: str | None = Field(alias="class", description="The name of that class; null for all.")
    times_limit: float = Field(description="The loss, in limits of the strictest rule.")
    lost: float = Field(description="The same loss as a share of their items.")
    pass_rate: float = Field(description="Share of runs that pass, 0 to 1.")


class LintReport(Answer):
    """How a gate would judge an unchanged model."""

    false_fail_rate: float = Field(description=_FAILING)
    inconclusive_rate: float = Field(description="Share of undecided runs, 0 to 1.")
    false_fail_interval: tuple[float, float] = Field(description=_RATES)
    inconclusive_interval: tuple[float, float] = Field(description=_RATES)
    discordance: float | None = Field(description=_DISCORDANCE)
    losing: list[PassChance] = Field(
        description="How often the gate passes models that lose something; empty if no rule is "
        "about a drop or a rise."
    )
    rules: list[RuleLint] = Field(description="Each rule, and each of its classes.")
    advice: list[str] = Field(description="What to change, in sentences; often empty.")
