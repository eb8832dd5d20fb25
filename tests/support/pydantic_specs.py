"""What pydantic says of spec files: schemas made from the types of the declared fields, and from nothing else of the
checker."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic_core import CoreSchema, SchemaValidator, ValidationError, core_schema

from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.case_spec import SkillCaseFile
from cogcli.declarations.field import fields_of
from cogcli.declarations.host_spec import (
    ActiveBindings,
    DefaultBindings,
    OverridesFile,
    ServicesFile,
)
from cogcli.declarations.pack_spec import Pack
from cogcli.declarations.service_spec import Service
from cogcli.declarations.skill_spec import Skill
from cogcli.declarations.spec import Spec, hints_of
from cogcli.protocols import PROTOCOLS

KINDS: Final[dict[str, Any]] = {
    "skill": Skill,
    "capability": Capability,
    "binding": Binding,
    "service": Service,
    "policy": DefaultBindings,
    "pack": Pack,
    "case": SkillCaseFile,
    "overrides": OverridesFile,
    "services": ServicesFile,
    "active": ActiveBindings,
}
"""The type of each kind of file."""
LEFT_OUT: Final = {"services": {(Service, "id")}}
"""By kind of file: keys that its type has and the file has not. The id of a service is then the name of its entry."""


def is_valid(kind: str, value: Any) -> bool:
    """Whether pydantic takes a parsed file."""
    try:
        _validator(kind).validate_python(value)
    except ValidationError:
        return False
    return True


@cache
def _validator(kind: str) -> SchemaValidator:
    schemas = _Schemas(LEFT_OUT.get(kind, set()))
    whole = schemas.of(KINDS[kind])
    return SchemaValidator(core_schema.definitions_schema(whole, list(schemas.defined.values())))


class _Schemas:
    """Makes the schemas of types; those of classes are defined once, since a class may hold itself."""

    def __init__(self, left_out: Collection[tuple[type[Spec], str]]) -> None:
        self.defined: dict[str, CoreSchema] = {}
        self._left_out = left_out

    def of(self, hint: Any) -> CoreSchema:
        words: dict[str, Any] = {}
        if get_origin(hint) is Annotated:
            hint, *limits = get_args(hint)
            while get_origin(hint) is Annotated:
                hint, *inner = get_args(hint)
                limits = [*inner, *limits]
            words = {name: value for each in limits for name, value in each.words.items()}
        if "keys" in words:
            return self._reference(words["keys"])
        origin, args = get_origin(hint), get_args(hint)
        if origin in (Union, UnionType):
            options = [self.of(option) for option in args if option is not NoneType]
            return core_schema.union_schema(options) if len(options) > 1 else options[0]
        if origin is Literal:
            return core_schema.literal_schema(list(args))
        if origin is dict and "unique" not in words:
            return self._mapping(*args, words)
        if origin in (tuple, list, dict):
            return core_schema.list_schema(
                self.of(args[-1] if origin is dict else args[0]),
                min_length=words.get("minimum"),
                max_length=words.get("maximum") or None,
                strict=True,
            )
        if isinstance(hint, type) and issubclass(hint, Spec):
            return self._spec(hint)
        return _SCALARS[hint](words)

    def _spec(self, cls: type[Spec]) -> CoreSchema:
        if not cls.shorthand:
            return self._reference(cls)
        text = self.of(hints_of(cls)[cls.shorthand])
        return core_schema.union_schema([text, self._reference(cls)])

    def _reference(self, cls: type[Spec]) -> CoreSchema:
        name = cls.__name__
        if name not in self.defined:
            self.defined[name] = core_schema.any_schema(ref=name)
            parts = [cls]
            if cls is Service:
                parts += [protocol.grammar().settings for protocol in PROTOCOLS.values()]
            self.defined[name] = self._record(parts, name, cls.other_members)
        return core_schema.definition_reference_schema(name)

    def _record(self, parts: list[type[Spec]], name: str, other_members: bool) -> CoreSchema:
        """A mapping with the fields of these classes. Null stands for an absent member if that may be absent."""
        keys: dict[str, core_schema.TypedDictField] = {}
        for part in parts:
            hints = hints_of(part)
            for field in fields_of(part):
                if field.file_key.in_file and (part, field.key) not in self._left_out:
                    schema = self.of(hints[field.name])
                    if field.file_key.nullable or not field.required:
                        schema = core_schema.nullable_schema(schema)
                    keys[field.key] = core_schema.typed_dict_field(schema, required=field.required)
        extra = "ignore" if other_members else "forbid"
        whole = core_schema.typed_dict_schema(keys, extra_behavior=extra, strict=True)
        return core_schema.no_info_before_validator_function(
            lambda value: _without_own(value, keys), whole, ref=name
        )

    def _mapping(self, name: Any, value: Any, words: dict[str, Any]) -> CoreSchema:
        """A mapping to values of a type. One with given names is as if each were an optional field."""
        names = [each for limits in get_args(name)[1:] for each in limits.words.get("choices", ())]
        if names:
            member = core_schema.typed_dict_field(
                core_schema.nullable_schema(self.of(value)), required=False
            )
            keys = dict.fromkeys(names, member)
            whole = core_schema.typed_dict_schema(keys, extra_behavior="forbid", strict=True)
            return core_schema.no_info_before_validator_function(
                lambda given: _without_own(given, keys), whole
            )
        schema = core_schema.dict_schema(
            self.of(name),
            self.of(value),
            min_length=1 if words.get("filled") else None,
            strict=True,
        )
        if words.get("foreign"):
            return schema
        return core_schema.no_info_before_validator_function(
            lambda given: _without_own(given, {}), schema
        )


def _without_own(value: Any, keys: Mapping[str, Any]) -> Any:
    """A mapping without the members that its author keeps for himself."""
    if type(value) is not dict:
        return value
    return {name: each for name, each in value.items() if name in keys or not name.startswith("x-")}


def _text(words: dict[str, Any]) -> CoreSchema:
    if words.get("ids") == "protocols":
        return core_schema.literal_schema(list(PROTOCOLS))
    if "choices" in words:
        return core_schema.literal_schema(list(words["choices"]))
    flags = re.IGNORECASE if words.get("ignore_case") else 0
    pattern = re.compile(words.get("pattern", r".*"), flags | re.DOTALL)

    def check(value: str) -> str:
        if not pattern.fullmatch(value) or not (words.get("empty", True) or value.strip()):
            raise ValueError("another text is expected")
        return value

    text = core_schema.str_schema(max_length=words.get("longest"), strict=True)
    return core_schema.no_info_after_validator_function(check, text)


def _number(words: dict[str, Any]) -> CoreSchema:
    return core_schema.float_schema(
        ge=words.get("minimum"), le=words.get("maximum"), gt=words.get("above"), strict=True
    )


def _whole(words: dict[str, Any]) -> CoreSchema:
    def whole(value: Any) -> Any:
        return int(value) if type(value) is float and value.is_integer() else value

    number = core_schema.int_schema(ge=words.get("minimum"), le=words.get("maximum"), strict=True)
    return core_schema.no_info_before_validator_function(whole, number)


_SCALARS: Final[dict[Any, Any]] = {
    str: _text,
    int: _whole,
    float: _number,
    bool: lambda words: core_schema.bool_schema(strict=True),
    Any: lambda words: core_schema.any_schema(),
}
