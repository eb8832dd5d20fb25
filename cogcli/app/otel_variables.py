"""The standard variables of OpenTelemetry that name a collector and describe a trace. Only `trace --push` reads them
(docs/reference/protocols.md#export).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote

from cogcli.base.errors import UsageError
from cogcli.base.named_tuple import NamedTuple

FROM_ENVIRONMENT: Final = "env"
"""The address that denotes the collector in the environment variables."""
NO_ATTRIBUTES: Final[Mapping[str, str]] = {}
_PATH: Final = "/v1/traces"
_SECONDS: Final = 5.0
_LONGEST_SECONDS: Final = 600.0
_JSON, _PROTOBUF = "http/json", "http/protobuf"


class Collector(NamedTuple):
    """The collector of a trace: its address, and the settings for sending."""

    url: str
    headers: tuple[tuple[str, str], ...] = ()
    seconds: float = _SECONDS
    """The time limit for sending, in seconds."""
    is_protobuf: bool = False
    resource: Mapping[str, str] = NO_ATTRIBUTES
    """More attributes of the trace's resource."""


def traces_url(url: str) -> str:
    """Return the address of a collector's traces."""
    return url if url.rstrip("/").endswith(_PATH) else url.rstrip("/") + _PATH


def find_collector(address: str, environ: Mapping[str, str]) -> Collector:
    """Return the collector at an address; for `env` the one that the environment names.

    Headers are sent only to the collector of the environment, since they may contain credentials.
    Raise UsageError `usage.value` for an invalid variable, or if no variable names a collector.
    """
    headers = ""
    url = traces_url(address)
    if address == FROM_ENVIRONMENT:
        url = _url_of_environment(environ)
        headers = _exporter_variable(environ, "HEADERS")
    protocol = _exporter_variable(environ, "PROTOCOL") or _JSON
    if protocol not in (_JSON, _PROTOBUF):
        raise UsageError(
            "usage.value",
            "`OTEL_EXPORTER_OTLP_PROTOCOL` names no protocol of ours",
            expected=f"{_JSON} or {_PROTOBUF}",
            found=protocol[:40],
        )
    resource = dict(
        _parse_pairs("OTEL_RESOURCE_ATTRIBUTES", environ.get("OTEL_RESOURCE_ATTRIBUTES", ""))
    )
    if name := environ.get("OTEL_SERVICE_NAME"):
        resource["service.name"] = name
    return Collector(
        url,
        _parse_pairs("OTEL_EXPORTER_OTLP_HEADERS", headers),
        _parse_milliseconds(_exporter_variable(environ, "TIMEOUT")),
        protocol == _PROTOBUF,
        resource,
    )


def _url_of_environment(environ: Mapping[str, str]) -> str:
    own = environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    if own:
        return own
    base = environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")
    if base:
        return base.rstrip("/") + _PATH
    raise UsageError(
        "usage.value",
        "`--push env`: the environment names no collector",
        expected="OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    )


def _exporter_variable(environ: Mapping[str, str], name: str) -> str:
    """Return a variable of the exporter. The specific variable for traces has priority."""
    own = environ.get(f"OTEL_EXPORTER_OTLP_TRACES_{name}")
    return own or environ.get(f"OTEL_EXPORTER_OTLP_{name}", "")


def _parse_pairs(variable: str, text: str) -> tuple[tuple[str, str], ...]:
    """Return the pairs of a list `key=value,key=value` with percent-encoded values. The error contains the name of the
    variable but not its text, which may be secret.
    """
    found = []
    for part in filter(None, (each.strip() for each in text.split(","))):
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise UsageError(
                "usage.value", f"`{variable}` has another form", expected="key=value,key=value"
            )
        found.append((key.strip(), unquote(value.strip())))
    return tuple(found)


def _parse_milliseconds(text: str) -> float:
    """Return a time limit in seconds, from a text in milliseconds."""
    if not text:
        return _SECONDS
    if not text.isascii() or not text.isdigit() or not 0 < int(text[:9]) <= 1000 * _LONGEST_SECONDS:
        raise UsageError(
            "usage.value",
            "`OTEL_EXPORTER_OTLP_TIMEOUT` is no time limit",
            expected="milliseconds, 1 to 600000",
            found=text[:40],
        )
    return int(text) / 1000
