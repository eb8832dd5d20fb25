"""Types of values that several declarations share, with their limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema


class AtLeast(NamedTuple):
    """A number that is not below a limit."""

    least: int

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return {**handler(source), "ge": self.least}


class Between(NamedTuple):
    """A number within limits."""

    least: int
    most: int

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return {**handler(source), "ge": self.least, "le": self.most}


class Matching(NamedTuple):
    """A text of a certain form."""

    pattern: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return {**handler(source), "pattern": self.pattern}


Json = dict[str, Any]
Number = int | float
Count = Annotated[int, AtLeast(0)]
Ratio = Annotated[float, Between(0, 1)]
Digest = Annotated[str, Matching(r"^sha256:[0-9a-f]{64}$")]
Hex = Annotated[str, Matching(r"^[0-9a-f]{64}$")]
Outcome = Literal["ok", "error", "vetoed", "aborted", "partial", "pending"]
IntuitionMode = Literal["advisory", "interventive", "hybrid"]
