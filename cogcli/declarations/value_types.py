"""Types of values that several declarations share, with their limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from cogcli.base.jsonvalue import Json as Json

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema


class ValueLimits:
    """The limits of a number or text in addition to its type."""

    def __init__(
        self,
        *,
        minimum: int | None = None,
        maximum: int | None = None,
        above: int | None = None,
        pattern: str = "",
    ) -> None:
        self.minimum = minimum
        self.above = above
        """The exclusive lower bound of a number."""
        self.maximum = maximum
        self.pattern = pattern
        """The form of a text."""

    def allows(self, number: float) -> bool:
        """Return whether a number is within the limits."""
        return (
            (self.minimum is None or number >= self.minimum)
            and (self.maximum is None or number <= self.maximum)
            and (self.above is None or number > self.above)
        )

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        schema: Json = dict(handler(source))
        if self.minimum is not None:
            schema["ge"] = self.minimum
        if self.maximum is not None:
            schema["le"] = self.maximum
        if self.above is not None:
            schema["gt"] = self.above
        if self.pattern:
            schema["pattern"] = self.pattern
        return schema


Number = int | float
Count = Annotated[int, ValueLimits(minimum=0)]
Ratio = Annotated[float, ValueLimits(minimum=0, maximum=1)]
Digest = Annotated[str, ValueLimits(pattern=r"^sha256:[0-9a-f]{64}$")]
Hex = Annotated[str, ValueLimits(pattern=r"^[0-9a-f]{64}$")]
StepKind = Literal["detect", "analyze", "plan", "act", "verify", "review"]
StepStatus = Literal["pending", "running", "done", "skipped", "failed", "vetoed"]
Outcome = Literal["ok", "error", "vetoed", "aborted", "partial", "pending"]
IntuitionMode = Literal["advisory", "interventive", "hybrid"]
