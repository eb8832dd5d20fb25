"""Whether a binding is eligible, and if not, why (docs/reference/binding.md#eligibility,
docs/reference/service.md#trust)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cogcli.core.extras import install_line, missing_module
from cogcli.core.problems import KeyPath
from cogcli.specs.binding import Binding
from cogcli.specs.binding_chain import Reason, SelectionOptions
from cogcli.specs.capability import CONFORMANCE_RANKS, Capability, Safety
from cogcli.specs.catalog import Catalog
from cogcli.specs.id_grammar import PLACEHOLDER
from cogcli.specs.service import Service, is_shipped
from cogcli.specs.service_variables import address_fault, lacking_variables
from cogcli.specs.shipped_fit import is_shipped_gate, misfit
from cogcli.specs.shipped_functions import UNGUARDED


def conformance_needed(capability: Capability | None, options: SelectionOptions) -> str:
    """The least profile that a binding must promise: the run's, else the capability's, else experimental."""
    return options.conformance or (capability.conformance if capability else None) or "experimental"


def reasons(catalog: Catalog, binding: Binding, options: SelectionOptions) -> list[Reason]:
    """Why a binding is not eligible, most important first; empty if it is."""
    id = binding.service
    service = catalog.services.get(id)
    if service is None:
        file = catalog.broken.get(f"service:{id}")
        text = f"its file {file} has errors" if file else "unknown"
        return [Reason("service.unknown", f"service `{id}`: {text}")]
    capability = catalog.capabilities.get(binding.capability)
    called = binding.capability not in catalog.stubbed
    found: list[Reason] = []
    unset = [name for name in variables_of(binding, service) if not options.environ.get(name)]
    if service.variables:
        unset += lacking_variables(service, options.environ, binding)
        if fault := address_fault(service):
            found.append(
                Reason("service.url", f"service `{id}`: {fault}", "look at the variables of its file")
            )
    if unset and called:
        cure = "\n".join(f"export {name}=..." for name in unset)
        text = f"service `{id}`: {unset_variables_text(unset, options.environ)}"
        found.append(Reason("env.missing", text, cure))
    extra = binding.metadata.get("extra")
    if extra and called and (module := missing_module(extra)):
        text = f"it needs the extra `{extra}`: `{module}` is not installed"
        found.append(Reason("env.extra", text, install_line(extra)))
    if binding.protocol != service.kind:
        text = f"speaks {binding.protocol}, service `{id}` is {service.kind}"
        found.append(Reason("binding.protocol", text))
    wanted = conformance_needed(capability, options)
    if CONFORMANCE_RANKS[binding.conformance] < CONFORMANCE_RANKS[wanted]:
        found.append(Reason("binding.ineligible", f"conformance {binding.conformance}, {wanted} is required"))
    if called:
        if fault := misfit(catalog, binding):
            found.append(Reason("binding.ineligible", fault, "write a binding of your own for it"))
        found += [*untrusted_reason(service, binding), *_untrusted_header_reasons(binding, service)]
        found += _unguarded_reasons(catalog, binding, service)
    if capability and capability.safety:
        texts = _scope_faults(catalog, binding, service, capability.safety)
        cure = "choose a binding that meets the capability's safety block"
        found += [Reason("safety.scope", f"service `{id}`: {text}", cure) for text in texts]
    return found


def variables_of(binding: Binding | None, service: Service) -> Iterator[str]:
    """The environment variables that a call needs: in headers, MCP environment values and `auth_ref`; each once."""
    texts = [*(service.metadata.get("headers") or {}).values(), *(service.settings.get("env") or {}).values()]
    if binding:
        texts += (binding.metadata.get("headers") or {}).values()
    names = [name for text in texts for name in PLACEHOLDER.findall(text)]
    yield from dict.fromkeys([*names, *_auth_variable(service)])


def path_of_variable(service: Service, name: str) -> KeyPath:
    """Where in a service's file a variable is named."""
    headers, env = service.metadata.get("headers") or {}, service.settings.get("env") or {}
    places: dict[KeyPath, str] = {("metadata", "headers", key): text for key, text in headers.items()}
    places |= {("env", key): text for key, text in env.items()}
    places |= {("variables", key): f"${{{each.get('env')}}}" for key, each in service.variables.items()}
    return next((path for path, text in places.items() if f"${{{name}}}" in text), ("auth_ref",))


def place_of_variable(service: Service, environ: Mapping[str, str]) -> KeyPath | None:
    """Where in a service's file the first variable is named that has no value; None where all have one."""
    names = [name for name in variables_of(None, service) if not environ.get(name)]
    if service.variables:
        names += lacking_variables(service, environ)
    return path_of_variable(service, names[0]) if names else None


def secrets_of(service: Service) -> Iterator[str]:
    """The environment variables sent to a service as credentials: in headers and by `auth_ref`."""
    for text in (service.metadata.get("headers") or {}).values():
        yield from PLACEHOLDER.findall(text)
    yield from _auth_variable(service)


def _auth_variable(service: Service) -> Iterator[str]:
    """The variable that `auth_ref` names, if it names one."""
    auth = service.settings.get("auth_ref")
    if auth and not auth.startswith(("file:", "keyring:")):
        yield auth.removeprefix("env:")


def unset_variables_text(names: list[str], environ: Mapping[str, str]) -> str:
    """A clause stating that these environment variables are not set, or are empty."""
    groups = (
        ("not set", [n for n in names if n not in environ]),
        ("empty", [n for n in names if n in environ]),
    )
    return "; ".join(_variables_text(group, state) for state, group in groups if group)


def _variables_text(names: list[str], state: str) -> str:
    *others, last = (f"`{name}`" for name in names)
    if not others:
        return f"environment variable {last} is {state}"
    return f"environment variables {', '.join(others)} and {last} are {state}"


def lower_trust(service: Service, binding: Binding) -> tuple[Service, Binding]:
    """Service and binding of a call, trusted only where both are: an untrusted binding must not use what a trusted
    service may, nor an untrusted service what a trusted binding may."""
    if service.trusted == binding.trusted:
        return service, binding
    return service._replace(trusted=False), binding._replace(trusted=False)


def untrusted_reason(service: Service, binding: Binding | None = None) -> Iterator[Reason]:
    """What a service of an untrusted layer needs and may not use: code of its own, programs, variables, secrets; with a
    binding, the same where the layer of either is untrusted."""
    if service.trusted and (binding is None or binding.trusted):
        return
    why = service.distrust or "its layer is not trusted"
    if service.trusted and binding:
        why = binding.distrust or f"the layer of binding `{binding.id}` is not trusted"
    text = f"service `{service.id}`: {why}, so"
    if service.module and not is_shipped(service.module):
        yield _untrusted_of(f"{text} module `{service.module}` is not imported")
    if "command" in service.settings:
        yield _untrusted_of(f"{text} `{service.settings['command']}` is not started")
    if _uses_secrets(None, service) or any(each.get("env") for each in service.variables.values()):
        yield _untrusted_of(f"{text} it gets no variable and no secret")


def _untrusted_header_reasons(binding: Binding, service: Service) -> Iterator[Reason]:
    if service.trusted and binding.trusted:
        return
    if any(map(PLACEHOLDER.search, (binding.metadata.get("headers") or {}).values())):
        why = binding.distrust or "its layer is not trusted"
        if binding.trusted:
            why = service.distrust or f"the layer of service `{service.id}` is not trusted"
        yield _untrusted_of(f"{why}, so its headers get no variable")


def _unguarded_reasons(catalog: Catalog, binding: Binding, service: Service) -> Iterator[Reason]:
    """Where an untrusted layer would get around what guards shipped functions: by answering a shipped gate, or by
    calling such a function for a capability, or with values, that nobody confirms."""
    if binding.trusted and service.trusted:
        return
    why = binding.distrust or service.distrust or "its layer is not trusted"
    if is_shipped_gate(catalog, binding.capability):
        yield _untrusted_of(f"{why}, so it does not say what is allowed in place of what is shipped")
    module = service.module or ""
    if is_shipped(module) and f"{module}:{binding.operation}" not in UNGUARDED:
        yield _untrusted_of(f"{why}, so it does not call `{binding.operation}` of `{service.module}`")


def _untrusted_of(text: str) -> Reason:
    return Reason("service.untrusted", text, "trust the project: cogcli config trust")


def isolation_of(service: Service) -> str:
    """`thread` or `process` for a pythoncall service: as written, else `thread` if shipped, `process` if not."""
    return service.isolation or ("thread" if is_shipped(service.module or "") else "process")


def _scope_faults(catalog: Catalog, binding: Binding, service: Service, safety: Safety) -> Iterator[str]:
    """The demands of a safety block that a service does not meet. What a function does is known by where it runs alone,
    unless its service declares `network`."""
    in_process = catalog.in_process(service)
    listed = service.metadata.get("targets") or ()
    missing = [target for target in safety.allowed_targets if target not in listed]
    if missing and not in_process:
        yield f"not listed as {' and '.join(missing)}, which the capability demands"
    local = in_process or service.network == "private"
    sandboxed = catalog.runs_functions(service) and isolation_of(service) == "process"
    broken = {
        "no_external_network": not local and "reaches the public network",
        "sandboxed_execution": not sandboxed and "does not run in a process of its own",
        "no_credential_passthrough": _uses_secrets(binding, service) and "is given credentials",
    }
    for constraint in safety.scope_constraints:
        if fault := broken.get(constraint):
            yield f"{fault}, {constraint} forbids it"


def _uses_secrets(binding: Binding | None, service: Service) -> bool:
    """Whether a service or its binding's headers use a variable or a secret."""
    return "auth_ref" in service.settings or any(True for _ in variables_of(binding, service))
