"""Types of keys that several kinds of spec files share (docs/reference/spec-files.md#ids)."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from cogcli.declarations.options import CONFORMANCE_PROFILES, SAFETY_MODES
from cogcli.declarations.spec import SpecLimits
from cogcli.declarations.value_types import Json

_SEGMENT: Final = r"[a-z0-9]+(?:[_-][a-z0-9]+)*"
LONGEST_ID: Final = 128
SKILL_ID: Final = rf"{_SEGMENT}\.{_SEGMENT}"
CAPABILITY_ID: Final = rf"{_SEGMENT}(?:\.{_SEGMENT}){{1,4}}"
PLAIN_ID: Final = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}"
"""Bindings and services."""
STEP_ID: Final = r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}"
FIELD_NAME: Final = r"[A-Za-z_][A-Za-z0-9_-]{0,63}"
NESTED: Final = "skill:"
"""The prefix of a nested skill among the targets of a step."""

VERDICTS: Final = ("deny", "refuse", "escalate", "allow_with_gate", "allow")
"""The verdicts of a rule on a call, the strictest first."""

CapabilityId = Annotated[
    str,
    SpecLimits(
        pattern=CAPABILITY_ID,
        longest=LONGEST_ID,
        code="id.format",
        expected="2 to 5 lower-case segments joined by dots",
    ),
]
CapabilityRef = Annotated[CapabilityId, SpecLimits(ids="capabilities")]
"""The id of a capability that exists; in an editor one of those."""
PlainId = Annotated[
    str,
    SpecLimits(
        pattern=PLAIN_ID,
        code="id.format",
        expected="a letter or digit, then at most 127 of A-Z a-z 0-9 _ . -",
    ),
]
ServiceRef = Annotated[PlainId, SpecLimits(ids="services")]
FieldName = Annotated[
    str,
    SpecLimits(
        pattern=FIELD_NAME,
        code="id.format",
        expected="a letter or `_`, then at most 63 letters, digits, `_` or `-`",
    ),
]
Version = Annotated[str, SpecLimits(empty=False, longest=64, expected="text of 1 to 64 characters")]
Words = Annotated[str, SpecLimits(empty=False)]
"""Text that is not empty."""
Seconds = Annotated[float, SpecLimits(above=0, maximum=3600)]
"""A limit of time."""
BoundCapability = Annotated[str, SpecLimits(ids="capabilities")]
BoundBinding = Annotated[Words, SpecLimits(ids="bindings_of")]
"""A binding of the capability that is its key."""
FreeMembers = Annotated[Json, SpecLimits(foreign=True)]
Headers = Annotated[dict[str, str], SpecLimits(foreign=True)]
ProtocolName = Annotated[str, SpecLimits(ids="protocols")]
"""A row of the table of protocols (`cogcli.protocols`)."""
ServiceTarget = Literal["internal_only", "approved_connectors", "same_tenant"]
SafetyMode = Annotated[str, SpecLimits(choices=SAFETY_MODES)]
Conformance = Annotated[str, SpecLimits(choices=CONFORMANCE_PROFILES)]
