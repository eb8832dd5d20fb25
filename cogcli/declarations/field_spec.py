"""Fields: the declared inputs and outputs of skills and capabilities
(docs/reference/spec-files.md#fields)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from cogcli.declarations.spec import Spec, SpecLimits
from cogcli.declarations.spec_types import FieldName

FieldType = Literal["string", "number", "integer", "boolean", "array", "object", "any", "file"]


class FieldSpec(Spec):
    """One declared input or output."""

    type: FieldType
    """The type of the value. `file` is for inputs only: a file that is [sent](#file-inputs)."""
    required: bool = False
    """Whether a value must be given."""
    default: Any = None
    """The value used if the given one is absent or null, for inputs and outputs alike. It must fit its own field
    (`field.default`).
    """
    description: str = ""
    """The meaning of the value.
    Default: none"""
    enum: Annotated[list[Any], SpecLimits(minimum=1, code="field.enum")] | None = None
    """Values of the type, compared as JSON (`field.enum`)."""
    schema: Any = None
    """A JSON Schema [fragment](#schemas), applied after the type (`field.schema`)."""
    items: FieldSpec | None = None
    """The field of each element, without `required` and `default`; only for arrays (`field.items`).
    Default: any elements"""

    @property
    def needs_value(self) -> bool:
        """Whether the caller must pass a value: the field is required and has no default."""
        return self.required and self.default is None


Fields = dict[FieldName, FieldSpec]
