"""Variables of a service: values from the host, for addresses and requests (docs/reference/service.md#variables).

They are not secret: their values are recorded. The environment is read only for a trusted layer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from cogcli.base.lazy_pattern import lazy_pattern
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.service_spec import Service
from cogcli.specs.catalog import Catalog
from cogcli.specs.service import IN_ADDRESS, names_in_address
from cogcli.specs.template import TemplateFault, slots_of, texts
from cogcli.specs.unchecked import object_at

ADDRESSES: Final = ("base_url", "url")
_URL: Final = lazy_pattern(r"https?://[^/?#\s@]+(?:/[^?#\s]*)?", re.IGNORECASE)


def with_variables(service: Service, environ: Mapping[str, str]) -> Service:
    """Return the service with the values of its variables and the resulting address.

    Values are from the environment, otherwise from the service's defaults.
    """
    found = {}
    for name, variable in service.variables.items():
        given = environ.get(variable.env or "", "") if service.trusted else ""
        if value := given or variable.default:
            found[name] = value
    return _fill_service(service, found)


def _fill_service(service: Service, values: Mapping[str, str]) -> Service:
    defaults = {name: each.default for name, each in service.variables.items() if each.default}
    written = _find_written_addresses(service)
    made = {key: _fill_names(text, values) for key, text in written.items()}
    # A text that is not an address may contain a password, so it is not shown.
    made = {key: text if _is_address(text) else written[key] for key, text in made.items()}
    by_host = any(address != _fill_names(written[key], defaults) for key, address in made.items())
    return service.replace(
        settings={**service.settings, **made},
        values=dict(values),
        written=written,
        address_by_host=by_host,
    )


def _find_written_addresses(service: Service) -> dict[str, str]:
    """Return the addresses by key, as the file declares them, with variables in braces."""
    settings = service.settings
    addresses = service.written or {key: settings[key] for key in ADDRESSES if key in settings}
    return {key: text for key, text in addresses.items() if names_in_address(text)}


def _fill_names(text: str, values: Mapping[str, str]) -> str:
    """Return a string with each `{name}` replaced by its value, if it has one."""
    return IN_ADDRESS.sub(lambda match: values.get(match[1], match[0]), text)


def with_recorded_variables(catalog: Catalog, recorded_values: object) -> Catalog:
    """Return the catalog with the values of variables that a run recorded."""
    values_by_service = {
        id: values for id, values in object_at(recorded_values).items() if id in catalog.services
    }
    if not values_by_service:
        return catalog
    services = {
        id: _fill_service(catalog.services[id], object_at(values))
        for id, values in values_by_service.items()
    }
    return catalog._replace(services={**catalog.services, **services})


def lacking_variables(
    service: Service, environ: Mapping[str, str], binding: Binding | None = None
) -> list[str]:
    """Return the unset environment variables that address, request and response need, without repeats."""
    used = [name for text in service.written.values() for name in names_in_address(text)]
    used += [name for _, name in service_names(binding)] if binding else []
    lacking = [
        service.variables[n].env for n in used if n in service.variables and n not in service.values
    ]
    return [name for name in dict.fromkeys(filter(None, lacking)) if not environ.get(name)]


def service_names(binding: Binding) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield (path, name) for each service variable that a binding uses."""
    for part in ("request", "response"):
        for path, text in texts(getattr(binding, part), (part,)):
            try:
                slots = slots_of(text)
            except TemplateFault:
                continue
            yield from ((path, slot.path[0]) for slot in slots if slot.of_service)


def address_fault(service: Service) -> str:
    """Return the fault of an address made from variables, without quoting it.

    Return an empty string if the address is valid, or if a value is still missing.
    """
    for key, text in service.written.items():
        if not _is_address(_fill_names(text, service.values)):
            return f"its variables make `{key}` no http or https URL without user info and query"
    return ""


def _is_address(text: str) -> bool:
    return bool(names_in_address(text) or _URL.fullmatch(text))
