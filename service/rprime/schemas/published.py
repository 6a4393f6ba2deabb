"""The models that the OpenAPI document publishes, and their JSON schemas."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import LiteralSchema, TaggedUnionSchema

from rprime.core.gates.lint import LintReport
from rprime.core.gates.plan import PlanReport
from rprime.schemas import history, report, request, simulation, slice_search, studies

REQUESTS: tuple[type[BaseModel], ...] = (
    *request.EVALUATE_REQUESTS,
    request.CompareRequest,
    *simulation.LINT_REQUESTS,
    *simulation.PLAN_REQUESTS,
    *slice_search.SEARCH_REQUESTS,
    studies.DiscriminationRequest,
    studies.AgreementRequest,
)
OF_REST: Mapping[type[BaseModel], tuple[type[BaseModel], ...]] = {
    request.RequestOptions: request.EVALUATE_REQUESTS,
    request.ComparisonRest: (request.CompareRequest,),
    simulation.LintRest: simulation.LINT_REQUESTS,
    simulation.PlanRest: simulation.PLAN_REQUESTS,
    slice_search.SearchRest: slice_search.SEARCH_REQUESTS,
}
"""The published models of the requests whose arrays are read apart."""
_ANSWERS: tuple[type, ...] = (
    report.Report,
    report.BatchReport,
    report.CompareReport,
    LintReport,
    PlanReport,
    slice_search.SliceSearchReport,
    studies.DiscriminationReport,
    studies.AgreementReport,
    *history.ANSWERS,
)
_REFERENCE = "#/components/schemas/{model}"


def components() -> dict[str, Any]:
    """Return the JSON schemas of requests and reports, for the OpenAPI document."""
    schemas: dict[str, Any] = {}
    for models, mode in (((*REQUESTS, *history.BODIES), "validation"), (_ANSWERS, "serialization")):
        _, schema = TypeAdapter.json_schemas(
            [(model.__name__, mode, TypeAdapter(model)) for model in models],  # type: ignore[misc] # a literal, for mypy a str
            ref_template=_REFERENCE,
            schema_generator=_JsonSchema,
        )
        schemas |= schema["$defs"]
    return schemas


class _JsonSchema(GenerateJsonSchema):
    def literal_schema(self, schema: LiteralSchema) -> JsonSchemaValue:
        """Write one string as `enum`: openapi-python-client reads no union with a `const`."""
        json_schema = super().literal_schema(schema)
        if isinstance(only := json_schema.get("const"), str):
            return {"type": "string", "enum": [only]}
        return json_schema

    def tagged_union_schema(self, schema: TaggedUnionSchema) -> JsonSchemaValue:
        """Write `anyOf`: what openapi-generator makes of a `oneOf` with texts does not compile."""
        return {"anyOf": super().tagged_union_schema(schema)["oneOf"]}


def one_of(models: Sequence[type[BaseModel]]) -> dict[str, Any]:
    """Return the JSON schema of a body with one of several kinds of evidence."""
    return {"oneOf": [{"$ref": _REFERENCE.format(model=model.__name__)} for model in models]}
