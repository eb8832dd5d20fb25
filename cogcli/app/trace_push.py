"""The export of a sealed episode's trace to a collector over OTLP/HTTP
(docs/reference/protocols.md#export)."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Final

import orjson

from cogcli.app.settings import Settings
from cogcli.app.settings.config import KEYS
from cogcli.base.calls import Cancellation
from cogcli.base.errors import RuntimeErrorBase, TransportError, UsageError
from cogcli.base.http import Http, HttpRequest
from cogcli.episode.log_reader import iterate_events
from cogcli.report.otlp import otlp
from cogcli.report.trace_export import trace_spans

_SECONDS: Final = 5.0
"""Seconds that a collector may take."""
_PATH: Final = "/v1/traces"


def trace_exporter(settings: Settings) -> Callable[[Path], str] | None:
    """Return the function that sends the trace of a finished run; None if no collector is
    configured.

    The function returns the reason of a failure, or an empty text. Raise EnvironmentRefusal
    `config.key`."""
    url = settings.value("export.otlp")
    return partial(_push, settings, str(url)) if url else None


def _push(settings: Settings, url: str, directory: Path) -> str:
    """Send the trace and return the reason of a failure; empty for a success."""
    try:
        push_trace(settings, directory, url)
    except RuntimeErrorBase as error:
        return f"{error.message}; later: cogcli trace {directory.name} --push {quote(url)}"
    return ""


def push_trace(settings: Settings, directory: Path, url: str) -> None:
    """Send the trace of an episode to the collector at `url`. `/v1/traces` is appended if it is
    missing.

    Inputs and outputs are not sent. Raise UsageError `usage.value` for an invalid address,
    TransportError for a status other than success, and the errors of `Http.send`."""
    address = KEYS["export.otlp"].type
    if not address.accepts(url):
        raise UsageError("usage.value", "`--push`: found another text", expected=address.expected)
    body = orjson.dumps(otlp(trace_spans(iterate_events(directory))))
    target = url if url.rstrip("/").endswith(_PATH) else url.rstrip("/") + _PATH
    proxies = settings.environ if settings.value("use_env_proxy") else None
    http = Http(proxies=proxies)
    try:
        headers = (("Content-Type", "application/json"),)
        request = HttpRequest(
            "POST", target, headers, body, network="private", max_response_bytes=1 << 20
        )
        reply = http.send(request, time.monotonic() + _SECONDS, Cancellation())
    finally:
        http.close()
    if not 200 <= reply.status < 300:
        raise TransportError(
            "call.transport", f"the collector answered with status {reply.status}", left=True
        )
