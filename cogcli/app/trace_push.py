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

from cogcli.app.otel_variables import Collector, traces_url
from cogcli.app.settings import Settings
from cogcli.app.settings.config import KEYS
from cogcli.base.calls import Cancellation
from cogcli.base.errors import RuntimeErrorBase, ServiceResolutionError, TransportError, UsageError
from cogcli.base.extras import install_line, missing_module
from cogcli.base.http import Http, HttpRequest
from cogcli.episode.log_reader import iterate_events
from cogcli.report.otlp import otlp
from cogcli.report.trace_export import trace_spans
from cogcli.report.trace_spans import Trace

_EXTRA: Final = "otlp"


def trace_exporter(settings: Settings) -> Callable[[str], str] | None:
    """Return the function that sends the trace of a finished run; None if no collector is
    configured.

    The function returns the reason of a failure, or an empty text. Raise UnusableEnvironment
    `config.key`."""
    url = settings.value("export.otlp")
    return partial(_try_send, settings, str(url)) if url else None


def _try_send(settings: Settings, url: str, episode: str) -> str:
    """Send the trace of an episode's directory and return the reason of a failure; empty for a success."""
    directory = Path(episode)
    try:
        push_trace(settings, directory, url)
    except RuntimeErrorBase as error:
        return f"{error.message}; later: cogcli trace {directory.name} --push {quote(url)}"
    return ""


def push_trace(settings: Settings, directory: Path, url: str) -> None:
    """Send the trace of an episode to the collector at `url`. `/v1/traces` is appended if it is
    missing.

    Inputs and outputs are not sent. Raise the errors of `send_trace`, and UsageError `usage.value` for an invalid
    address."""
    send_trace(settings, directory, Collector(traces_url(url)))


def send_trace(settings: Settings, directory: Path, collector: Collector) -> None:
    """Send the trace of an episode to a collector, without inputs and outputs.

    Raise UsageError `usage.value` for an invalid address, TransportError for an error status, and the errors of
    `Http.send`. Raise ServiceResolutionError `env.extra` for protobuf without its library.
    """
    address = KEYS["export.otlp"].type
    if not address.accepts(collector.url):
        raise UsageError("usage.value", "`--push`: found another text", expected=address.expected)
    trace = trace_spans(iterate_events(directory))
    trace.resource.update(collector.resource)
    body, kind = _encode_trace(trace, is_protobuf=collector.is_protobuf)
    proxies = settings.environ if settings.value("use_env_proxy") else None
    http = Http(proxies=proxies)
    try:
        headers = (("Content-Type", kind), *collector.headers)
        request = HttpRequest(
            "POST", collector.url, headers, body, network="private", max_response_bytes=1 << 20
        )
        reply = http.send(request, time.monotonic() + collector.seconds, Cancellation())
    finally:
        http.close()
    if not 200 <= reply.status < 300:
        raise TransportError(
            "call.transport", f"the collector answered with status {reply.status}", left=True
        )


def _encode_trace(trace: Trace, *, is_protobuf: bool) -> tuple[bytes, str]:
    """Return the body that contains a trace, and its media type."""
    if not is_protobuf:
        return orjson.dumps(otlp(trace)), "application/json"
    if missing := missing_module(_EXTRA):
        text = f"`{missing}`, which writes a trace as protobuf, is not installed"
        raise ServiceResolutionError("env.extra", text, hint=install_line(_EXTRA))
    from cogcli.report.otlp_protobuf import otlp_protobuf

    return otlp_protobuf(trace), "application/x-protobuf"
