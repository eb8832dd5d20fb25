"""Checks of a client's requests (docs/reference/protocols.md#serve).

The SDK replies with `Invalid request parameters` and no reason. These checks give the reason."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import mcp_types as types
from mcp_types.jsonrpc import UNSUPPORTED_PROTOCOL_VERSION
from mcp_types.methods import validate_client_request
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from cogcli.base.jsonvalue import Json, kind_of
from cogcli.base.named_tuple import NamedTuple
from cogcli.specs.unchecked import value_at

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
_KNOWN: Final = (*MODERN_PROTOCOL_VERSIONS, *reversed(HANDSHAKE_PROTOCOL_VERSIONS))
"""The protocol versions that the server supports, the latest first."""
_MAX_FAULTS: Final = 3
"""The most faults of one request that an error names."""
_MODEL: Final = re.compile(r"[A-Z]\w*|.*\[.*")
"""The parts of a place that only name types of the SDK."""
_WORDS: Final = {
    "a valid dictionary": "an object",
    "a valid list": "a list",
    "a valid string": "text",
}


class _Fault(NamedTuple):
    """One fault: its path, the expected value, and the value that was found."""

    path: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"`{self.path}`: expected {self.expected}, found {self.found}"


def find_request_fault(message: object, header: str = "") -> types.ErrorData | None:
    """Return the error reply to a faulty request; None for a request that the SDK can handle and
    for other messages.

    `header` is the value of `MCP-Protocol-Version`."""
    match message:
        case {"method": str(method), "id": _, **members}:
            params = members.get("params")
        case _:
            return None
    version = value_at(params, "_meta", VERSION_KEY) or header
    if isinstance(version, str) and version and version not in _KNOWN:
        return _unknown_version_error(version[:40])
    faults = _check_params(method, params, version)
    return _invalid_params_error(method, faults) if faults else None


def _check_params(method: str, params: object, version: object) -> list[_Fault]:
    """Return the faults of the parameters in the version of the protocol, or in any handshake version
    if the request names none."""
    if params is not None and not isinstance(params, dict):
        return [_Fault("params", "an object", _describe_value(params))]
    handshakes = tuple(reversed(HANDSHAKE_PROTOCOL_VERSIONS))
    return _find_faults(method, params, (str(version),) if version in _KNOWN else handshakes)


def _unknown_version_error(version: str) -> types.ErrorData:
    """Return the error for a protocol version that the server does not support."""
    text = f"protocol version `{version}` is unknown: this server speaks {', '.join(_KNOWN)}"
    data = {"supported": list(_KNOWN), "requested": version}
    return types.ErrorData(code=UNSUPPORTED_PROTOCOL_VERSION, message=text, data=data)


def _find_faults(method: str, params: Json | None, versions: tuple[str, ...]) -> list[_Fault]:
    """Return the faults of a request; empty if one of the protocol versions accepts it.

    If several versions reject it, return the faults of the first one in `versions`."""
    first: list[_Fault] = []
    for version in versions:
        try:
            validate_client_request(method, version, params)
        except KeyError:
            continue  # the method does not exist in this version
        except ValidationError as error:
            first = first or list(_faults_from_error(error))
        else:
            return []
    return first


def _faults_from_error(error: ValidationError) -> Iterator[_Fault]:
    """Yield one fault per path of a validation error. Alternatives of a union are merged."""
    expected: dict[str, list[str]] = {}
    found: dict[str, str] = {}
    for each in error.errors(include_url=False):
        path = ".".join(str(part) for part in each["loc"] if not _MODEL.fullmatch(str(part)))
        expected.setdefault(path, []).append(_describe_expected(each))
        found[path] = "nothing" if each["type"] == "missing" else _describe_value(each["input"])
    unknown = [path for path in expected if path.endswith(".type") and found[path].startswith("`")]
    for path in unknown or expected:  # an unknown content block would fail with every type of block
        choices = " or ".join(dict.fromkeys(expected[path]))
        yield _Fault(path, "a value" if found[path] == "nothing" else choices, found[path])


def _describe_expected(fault: ErrorDetails) -> str:
    """Return a description of the expected value."""
    is_choice = fault["type"] == "literal_error"
    words = str(fault["ctx"]["expected"]).replace("'", "`") if is_choice else fault["msg"].lower()
    words = words.removeprefix("input should be ")
    return _WORDS.get(words, words)


def _describe_value(value: object) -> str:
    """Return a quoted and truncated text, or the kind of any other value."""
    return f"`{value[:40]}`" if isinstance(value, str) else kind_of(value)


def _invalid_params_error(method: str, faults: list[_Fault]) -> types.ErrorData:
    """Return the error for parameters with these faults."""
    named = faults[:_MAX_FAULTS]
    text = f"{method[:60]}: {'; '.join(map(str, named))}"
    return types.ErrorData(
        code=types.INVALID_PARAMS,
        message=text,
        data={"problems": [each._asdict() for each in named]},
    )
