"""Details of a failed call, read from the log for the error of the run (docs/reference/command-line.md#errors).

They are the addresses, the number and duration of attempts, the request as a shell command, and an offline binding.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from cogcli.base.errors import RuntimeErrorBase
from cogcli.base.pinned_file import read_pinned_file
from cogcli.declarations.call_records import AttemptMade
from cogcli.declarations.envelope import Event
from cogcli.declarations.events import StepFinished
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.protocols import PROTOCOLS
from cogcli.protocols.exchange import ReceivedRequest, bytes_of_body
from cogcli.protocols.http.curl import curl_line
from cogcli.specs.binding_chain import SelectionOptions
from cogcli.specs.catalog import Catalog
from cogcli.specs.eligibility import reasons

UNREACHABLE: Final = ("call.transport", "call.timeout", "call.circuit-open")


class _SentRequest(Record):
    """The recorded HTTP request of an attempt."""

    headers: list[str]
    media_type: str
    body: Any = None


def describe_failed_call(
    events: Iterable[Event], error: RuntimeErrorBase, catalog: Catalog | None
) -> Json:
    """Return members to add to the `error` object of a run.

    They are `tried`, `curl`, `instead` (`CAP=BINDING`, callable without a network), and `hint` if the error has
    none. The result is empty if the error concerns no HTTP call.
    """
    sent = _find_failed_attempts(events, error.code)
    if not sent:
        return {}
    found: Json = {
        "tried": list(_summarize_addresses(sent)),
        "curl": _build_curl_command(sent[-1], catalog),
    }
    if error.code in UNREACHABLE:
        found["instead"] = offline = offline_binding(error.capability_id or "", catalog)
        without = f"without the network: --bind {offline}" if offline else ""
        if not error.hint:
            found["hint"] = without or _suggest_address(error, catalog)
    return {name: value for name, value in found.items() if value}


def _find_failed_attempts(events: Iterable[Event], code: str) -> list[AttemptMade]:
    """Return the attempts with an address in the last step that failed with this code."""
    found: list[AttemptMade] = []
    for event in events:
        if event.event_type == "step.failed":
            failed = read_record(StepFinished, event.payload)
            if failed.error and failed.error.code == code and failed.attempts:
                found = failed.attempts
    return [attempt for attempt in found if attempt.url]


def _summarize_addresses(sent: list[AttemptMade]) -> Iterable[str]:
    """Yield one line per address with the number and the total duration of its requests."""
    times: dict[str, list[float]] = {}
    for attempt in sent:
        place = f"{attempt.method or ''} {attempt.url}".strip()
        times.setdefault(place, []).append((attempt.duration_ms or 0) / 1000)
    for place, seconds in times.items():
        count = "once" if len(seconds) == 1 else f"{len(seconds)} times"
        yield f"{place}, {count}, {sum(seconds):.2g} s"


def _build_curl_command(attempt: AttemptMade, catalog: Catalog | None) -> str:
    binding = catalog.bindings.get(attempt.binding_id) if catalog else None
    service = catalog.services.get(attempt.service_id or "") if catalog else None
    if binding is None or service is None or "base_url" not in PROTOCOLS[service.kind].address_keys:
        return ""
    origin, _, rest = (attempt.url or "").partition("://")
    host, slash, path = rest.partition("/")
    path, _, query = f"{slash}{path}".partition("?")
    request = read_record(_SentRequest, attempt.request)
    if read_pinned_file(request.body) or request.media_type.startswith("multipart/"):
        return ""  # the record has no bytes, so that the command would send something else
    headers = dict.fromkeys(request.headers, "")
    if request.media_type:
        headers["content-type"] = request.media_type
    data = bytes_of_body(request.body)
    seen = ReceivedRequest(attempt.method or "POST", path, query, headers, data)
    return curl_line(seen, f"{origin}://{host}", service, binding)


def _suggest_address(error: RuntimeErrorBase, catalog: Catalog | None) -> str:
    """Return a hint that names the file with the address of an unreachable service. Empty if no file contains it."""
    service = catalog.services.get(error.service_id or "") if catalog else None
    if error.code != "call.transport" or service is None or "base_url" not in service.settings:
        return ""
    return f"is `{service.id}` running? its address is `base_url` in {service.file}"


def offline_binding(capability: str, catalog: Catalog | None) -> str:
    """Return `CAP=BINDING` for a trusted binding of the capability that runs in this process. Empty if the catalog has
    no such binding.
    """
    if catalog is None:
        return ""
    for name in catalog.bindings_of.get(capability, ()):
        binding = catalog.bindings[name]
        service = catalog.services.get(binding.service)
        if service is None:
            continue
        is_here = binding.trusted and service.trusted and catalog.in_process(service)
        if is_here and not reasons(catalog, binding, SelectionOptions()):
            return f"{capability}={name}"
    return ""
