"""Base classes and field types of the API models."""

import json
import re
from collections.abc import Iterable, Iterator, Sized
from dataclasses import MISSING, fields
from functools import cache
from types import NoneType
from typing import Annotated, Any, ClassVar, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationInfo,
    WithJsonSchema,
    WrapValidator,
    field_validator,
)
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue, SkipJsonSchema
from pydantic_core import CoreSchema, PydanticCustomError
from pydantic_core.core_schema import no_info_before_validator_function
from typing_extensions import TypeAliasType

from rprime.core.catalog import CUSTOM, KEYS
from rprime.core.custom import LONGEST_EXPRESSION, NAME
from rprime.core.index_names import ALIASES, canonical, unknown_index
from rprime.core.labels import HIDDEN, JOINERS, LONGEST_NAME

MOST = 2**53 - 1
"""The largest integer that every JSON parser reads exactly."""
DENSE_CLASSES = 1_000
SPARSE_CLASSES = 100_000
_KEYS = frozenset(KEYS)
_SHORT = 3
"""Members of a collection that a short representation shows."""


def _leave_out_null_defaults(schema: dict[str, Any]) -> None:
    for field in schema.get("properties", {}).values():
        if field.get("default", 0) is None:
            del field["default"]


class NeverNull(BaseModel):
    """Base class of what clients send: an optional member is left out, and null is refused.

    A null that somebody's program wrote by accident must not switch off a gate.
    """

    @field_validator("*", mode="before")
    @classmethod
    def _is_not_null(cls, value: object, info: ValidationInfo) -> object:
        if value is None:
            needed = cls.model_fields[str(info.field_name)].is_required()
            kind = "required_null" if needed else "null"
            raise PydanticCustomError(kind, "null is no value")
        return value

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Describe optional members as what is left out, never null."""
        reference = handler(core_schema)
        schema = handler.resolve_ref_schema(reference)
        _leave_out_null_defaults(schema)
        for name in set(schema.get("properties", {})) - set(schema.get("required", ())):
            field = schema["properties"][name]
            options = [option for option in field.get("anyOf", ()) if option != {"type": "null"}]
            if len(options) == 1:
                del field["anyOf"]
                field.update(options[0])
            elif options:
                field["anyOf"] = options
            # As text: generated clients would demand a member with `default`, or send it each time.
            if (default := field.pop("default", None)) is not None:
                stated = f"Default: `{json.dumps(default)}`."
                field["description"] = f"{field.get('description', '')} {stated}".lstrip()
        return reference


CoreT = TypeVar("CoreT")


class Request(NeverNull):
    """Base class of requests: unknown fields, lax types and null are refused."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
        defer_build=True,
    )

    def into(self, kind: type[CoreT], /, **others: Any) -> CoreT:  # noqa: ANN401 (its members)
        """Return the object of the core whose members have the same names, with `others`.

        What was not sent has the default of the core.
        """
        sent = self.model_fields_set & _shared(type(self), kind)  # type: ignore[arg-type] # classes are hashable
        members = {name: getattr(self, name) for name in sent}
        frozen = {n: tuple(v) if type(v) is list else v for n, v in members.items()}
        return kind(**frozen | others)


@cache
def _shared(model: type[BaseModel], kind: type[Any]) -> frozenset[str]:
    """Return the names that a model shares with a class of the core."""
    return frozenset(kind.__dataclass_fields__).intersection(model.model_fields)


Absent = SkipJsonSchema[None]
"""The type of a field that is absent if it does not apply."""


class Answer(BaseModel):
    """Base class of answers: fields with a default are absent if they do not apply.

    What may be null is read as null where it is missing, since an answer of before, which a store
    keeps, lacks the members that came later.
    """

    model_config = ConfigDict(json_schema_extra=_leave_out_null_defaults, defer_build=True)
    nullable: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls, **options: Any) -> None:  # noqa: ANN401 (of Pydantic)
        super().__init_subclass__(**options)
        later = set()
        for name, field in list(vars(cls).items()):
            kinds = get_args(cls.__annotations__.get(name))
            if isinstance(field, FieldInfo) and field.is_required() and NoneType in kinds:
                setattr(cls, name, FieldInfo.merge_field_infos(field, default=None))
                later.add(field.alias or name)
        cls.nullable |= later

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Describe what may be null as what every answer of today has."""
        described = handler(core_schema)
        schema = handler.resolve_ref_schema(described)
        required = {*schema.get("required", ()), *cls.nullable}
        if required:
            schema["required"] = [name for name in schema["properties"] if name in required]
        return described

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """Leave out what is absent, and count what is long, to be read at a glance."""
        return _at_a_glance(super().__repr_args__())


def _at_a_glance(values: Iterable[tuple[str | None, Any]]) -> Iterator[tuple[str | None, Any]]:
    for name, value in values:
        if value is not None:
            is_long = isinstance(value, dict | list | tuple) and len(value) > _SHORT
            yield name, Counted(value) if is_long else value


def members(answer: type[Any]) -> tuple[str, ...]:
    """Return the names of the members of a model, or of a published dataclass of the core."""
    if issubclass(answer, BaseModel):
        return tuple(answer.model_fields)
    return tuple(field.name for field in fields(answer))


def repr_args(answer: Any) -> Iterable[tuple[str | None, Any]]:  # noqa: ANN401 (either of them)
    """Return what the representation of an answer shows."""
    if isinstance(answer, BaseModel):
        return answer.__repr_args__()
    return _at_a_glance((name, getattr(answer, name)) for name in members(type(answer)))


class OfCore:
    """Publishes a dataclass of the core as a member of an answer, with the rules of `Answer`.

    The names that a member may have are given where a table of the core holds them.
    """

    def __init__(self, **names: list[str]) -> None:
        self.names = names

    def __get_pydantic_core_schema__(
        self, source: type[Any], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Read what may be null as null where it is missing."""
        nulls = {
            member.name.removesuffix("_"): None
            for member in fields(source)
            if member.default is MISSING and NoneType in get_args(member.type)
        }

        def complete(value: object) -> object:
            return nulls | value if isinstance(value, dict) else value

        return no_info_before_validator_function(complete, handler(source))

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Describe the names that a member may have."""
        described = handler(core_schema)
        schema = handler.resolve_ref_schema(described)
        for name, names in self.names.items():
            schema["properties"][name]["enum"] = names
        return described


class Counted:
    """Represents a long collection by its length."""

    def __init__(self, collection: Sized) -> None:
        self.collection = collection

    def __repr__(self) -> str:
        return f"<{len(self.collection)} of them>"


def _known_key(name: str) -> str:
    if (key := canonical(name)) in _KEYS:
        return key
    context = {"text": unknown_index(name), "name": name}
    raise PydanticCustomError("unknown_index", "{text}", context)


_KEY = {
    "type": "string",
    # Generators of clients make one constant of names that differ in their case.
    "enum": [*KEYS, *sorted(name for name in ALIASES if name == name.lower())],
    "description": "A key of GET /v1/indices, or one of its `aliases`: the name of another "
    "library, or a symbol, which may be in capitals. Answers have the key.",
}
IndexKey = TypeAliasType(
    "IndexKey", Annotated[str, AfterValidator(_known_key), WithJsonSchema(_KEY)]
)


def _is_custom_key(name: object) -> bool:
    if not isinstance(name, str) or not name.startswith(CUSTOM):
        return False
    return NAME.fullmatch(name.removeprefix(CUSTOM)) is not None


class _OrCustom:
    """Marks the key of an index that may be one of one's own."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        custom = {"type": "string", "pattern": f"^{re.escape(CUSTOM)}{NAME.pattern}$"}
        text = "A key of GET /v1/indices, or that of an index of `custom`."
        return {"anyOf": [handler(schema), custom], "description": text}


AnyIndexKey = TypeAliasType(
    "AnyIndexKey",
    Annotated[
        IndexKey,
        WrapValidator(lambda name, known: name if _is_custom_key(name) else known(name)),
        _OrCustom(),
    ],
)


def _custom_name(name: str) -> str:
    if NAME.fullmatch(name):
        return name
    text = "A name has small letters, digits and _, a letter first, and at most 64 of them"
    raise PydanticCustomError("custom_name", text)


CustomName = Annotated[
    str,
    AfterValidator(_custom_name),
    WithJsonSchema({"type": "string", "pattern": f"^{NAME.pattern}$"}),
]
ExpressionText = Annotated[str, Field(min_length=1, max_length=LONGEST_EXPRESSION)]
_NAME = Field(
    min_length=1,
    max_length=LONGEST_NAME,
    description="Normalised to Unicode NFC, without surrounding white space; "
    "no control or bidirectional-override characters, no invisible ones but joiners.",
    json_schema_extra={"pattern": rf"[^\s{JOINERS}]", "not": {"pattern": f"[{HIDDEN}]"}},
)
ClassName = TypeAliasType("ClassName", Annotated[str, _NAME])
IntegerLabel = Annotated[int, Field(ge=-MOST, le=MOST)]
AnyLabel = ClassName | IntegerLabel
_AllClasses = Field(min_length=1, max_length=SPARSE_CLASSES)
Labels = TypeAliasType(
    "Labels",
    Annotated[
        Annotated[list[ClassName], _AllClasses]
        | Annotated[list[IntegerLabel], _AllClasses]
        | Annotated[list[bool], _AllClasses],
        Field(
            description="Names of the classes in their order, no two the same. Integers stand for "
            'their decimal text, booleans for "False" and "True".'
        ),
    ],
)

Count = TypeAliasType(
    "Count", Annotated[float, Field(ge=0, le=MOST, description="Finite; fractions are allowed.")]
)
Weight = Annotated[float, Field(ge=0, le=MOST)]
Cost = Annotated[float, Field(ge=-MOST, le=MOST)]
Matrix = TypeAliasType(
    "Matrix",
    Annotated[
        list[Annotated[list[Count], Field(min_length=1, max_length=DENSE_CLASSES)]],
        Field(min_length=1, max_length=DENSE_CLASSES, description="k rows of k counts."),
    ],
)
Weights = TypeAliasType(
    "Weights",
    Annotated[
        list[Annotated[list[Weight], Field(min_length=1)]],
        Field(min_length=1, description="k rows of k weights, [true][predicted]."),
    ],
)
Costs = TypeAliasType(
    "Costs",
    Annotated[
        list[Annotated[list[Cost], Field(min_length=1)]],
        Field(
            min_length=1,
            description="k rows of k costs, [true][predicted], or of k + 1, the last one for "
            "unclassified items.",
        ),
    ],
)
ClassNumber = Annotated[int, Field(ge=0, lt=SPARSE_CLASSES)]
Cell = TypeAliasType(
    "Cell",
    Annotated[
        tuple[ClassNumber, ClassNumber, Count],
        # Not strict: a list is no tuple once `NeverNull` has looked at it.
        Field(strict=False, description="[true, predicted, count]; counts of a cell add up."),
    ],
)


def optional(description: str, **rules: Any) -> Any:  # noqa: ANN401 (the types of Field)
    """Declare a member that may be missing, with further arguments of `Field`."""
    return Field(default=None, description=description, **rules)
