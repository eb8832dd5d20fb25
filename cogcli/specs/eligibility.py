"""The eligibility of bindings, and the reasons why a binding is not eligible.

The rules are in docs/reference/binding.md#eligibility and docs/reference/service.md#trust.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from cogcli.base.allowed_hosts import ANY, allow_hint, allows_host, is_private_host
from cogcli.base.extras import install_line, missing_module
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import KeyPath
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.capability_spec import CONFORMANCE_RANKS, Capability, Safety
from cogcli.declarations.service_spec import Service
from cogcli.specs.binding_chain import Reason, SelectionOptions
from cogcli.specs.catalog import Catalog
from cogcli.specs.id_grammar import PLACEHOLDER
from cogcli.specs.layers import BUILT_IN
from cogcli.specs.service import is_shipped
from cogcli.specs.service_variables import address_fault, lacking_variables
from cogcli.specs.shipped_fit import explain_shipped_misfit, is_shipped_gate
from cogcli.specs.shipped_functions import BEHIND_WALL, FETCH_PAGE, OPEN_FUNCTIONS

_TRUST: Final = "trust the project: cogcli config trust"
_UNTRUSTED: Final = "project not trusted"


def minimum_conformance(capability: Capability | None, options: SelectionOptions) -> str:
    """Return the minimum conformance of a binding.

    The run's option decides, otherwise the capability, otherwise it is experimental.
    """
    return options.conformance or (capability.conformance if capability else None) or "experimental"


class _Call(NamedTuple):
    """A call of a binding on its service, under the options of a run."""

    catalog: Catalog
    binding: Binding
    service: Service
    options: SelectionOptions

    @property
    def capability(self) -> Capability | None:
        """The capability that the binding is for, or None if it is unknown."""
        return self.catalog.capabilities.get(self.binding.capability)

    @property
    def is_made(self) -> bool:
        """Whether the service is really called. Otherwise a stub of a test replaces it."""
        return self.binding.capability not in self.catalog.stubbed


def reasons(catalog: Catalog, binding: Binding, options: SelectionOptions) -> list[Reason]:
    """Return the reasons why a binding is not eligible, the most important first. Empty if it is eligible."""
    service = catalog.services.get(binding.service)
    if service is None:
        return [_unknown_service_reason(catalog, binding.service)]
    call = _Call(catalog, binding, service, options)
    untrusted = list(_untrusted_call_reasons(call)) if call.is_made else []
    if untrusted:
        return untrusted  # other reasons matter only after the project is trusted
    judges = _JUDGES if call.is_made else _STUB_CHECKS
    return [reason for judge in judges for reason in judge(call)]


def _unknown_service_reason(catalog: Catalog, id: str) -> Reason:
    file = catalog.broken.get(f"service:{id}")
    text = f"its file {file} has errors" if file else "unknown"
    return Reason("service.unknown", f"service `{id}`: {text}", short=f"service {id}")


def _address_reasons(call: _Call) -> Iterator[Reason]:
    service = call.service
    fault = address_fault(service) if service.variables else ""
    if fault:
        yield Reason(
            "service.url", f"service `{service.id}`: {fault}", "look at the variables of its file"
        )


def _variable_reasons(call: _Call) -> Iterator[Reason]:
    service, environ = call.service, call.options.environ
    unset = unset_variables(call.binding, service, environ)
    if service.variables:
        unset += lacking_variables(service, environ, call.binding)
    if unset:
        text = f"service `{service.id}`: {unset_variables_text(unset, environ)}"
        cure = "\n".join(f"export {name}=..." for name in unset)
        yield Reason("env.missing", text, cure, short=f"env {', '.join(dict.fromkeys(unset))}")


def _extra_reasons(call: _Call) -> Iterator[Reason]:
    extra = call.binding.metadata.extra
    module = missing_module(extra) if extra else ""
    if extra and module:
        text = f"it needs the extra `{extra}`: `{module}` is not installed"
        yield Reason("env.extra", text, install_line(extra), short=f"extra {extra}")


def _protocol_reasons(call: _Call) -> Iterator[Reason]:
    spoken, kind = call.binding.protocol, call.service.kind
    if spoken != kind:
        text = f"speaks {spoken}, service `{call.service.id}` is {kind}"
        yield Reason("binding.protocol", text, short="protocol")


def _conformance_reasons(call: _Call) -> Iterator[Reason]:
    found, needed = call.binding.conformance, minimum_conformance(call.capability, call.options)
    if CONFORMANCE_RANKS[found] < CONFORMANCE_RANKS[needed]:
        text = f"conformance {found}, {needed} is required"
        yield Reason("binding.ineligible", text, short=f"conformance {needed}")


def _shipped_fit_reasons(call: _Call) -> Iterator[Reason]:
    if fault := explain_shipped_misfit(call.catalog, call.binding):
        yield Reason("binding.ineligible", fault, "write a binding of your own for it")


def variables_of(binding: Binding | None, service: Service) -> Iterator[str]:
    """Yield the environment variables that a call needs, without repeats.

    They are named in headers, MCP environment values, `auth_ref` and `auth`.
    """
    texts = [
        *service.metadata.headers.values(),
        *(service.keys.env or {}).values(),
    ]
    if binding:
        texts += binding.metadata.headers.values()
    names = [name for text in texts for name in PLACEHOLDER.findall(text)]
    yield from dict.fromkeys([*names, *_find_auth_variables(service)])


def unset_variables(
    binding: Binding | None, service: Service, environ: Mapping[str, str]
) -> list[str]:
    """Return the environment variables that a call lacks.

    One of the credentials of `auth` is enough. Without a complete one, those of the first are missing.
    """
    unset = [name for name in variables_of(binding, service) if not environ.get(name)]
    credentials = [list(_variables_in(each.refs)) for each in service.credentials.values()]
    if not credentials:
        return unset
    is_enough = any(all(map(environ.get, names)) for names in credentials)
    required = [] if is_enough else credentials[0]
    optional = {name for names in credentials for name in names}.difference(required)
    return [name for name in unset if name not in optional]


def path_of_variable(service: Service, name: str) -> KeyPath:
    """Return the path of the value that refers to a variable in a service's file."""
    headers, env = service.metadata.headers, service.keys.env or {}
    places: dict[KeyPath, str] = {
        ("metadata", "headers", key): text for key, text in headers.items()
    }
    places |= {("env", key): text for key, text in env.items()}
    has_login = service.keys.login is not None
    places |= {
        ("login",) if has_login else ("auth", key): " ".join(
            f"${{{each}}}" for each in _variables_in(credential.refs)
        )
        for key, credential in service.credentials.items()
    }
    places |= {("variables", key): f"${{{each.env}}}" for key, each in service.variables.items()}
    return next((path for path, text in places.items() if f"${{{name}}}" in text), ("auth_ref",))


def place_of_variable(service: Service, environ: Mapping[str, str]) -> KeyPath | None:
    """Return the path of the value that refers to the first unset variable in a service's file; None if all are set."""
    names = unset_variables(None, service, environ)
    if service.variables:
        names += lacking_variables(service, environ)
    return path_of_variable(service, names[0]) if names else None


def secrets_of(service: Service) -> Iterator[str]:
    """Yield the environment variables that a service receives as credentials: in headers, by `auth_ref` and `auth`."""
    for text in service.metadata.headers.values():
        yield from PLACEHOLDER.findall(text)
    if service.auth_ref is not None:
        yield from _variables_in((service.auth_ref,))
    for credential in service.credentials.values():
        yield from _variables_in(credential.secrets)


def _find_auth_variables(service: Service) -> Iterator[str]:
    """Yield the environment variables that `auth_ref` and `auth` name."""
    if service.auth_ref is not None:
        yield from _variables_in((service.auth_ref,))
    for credential in service.credentials.values():
        yield from _variables_in(credential.refs)


def _variables_in(refs: Iterable[str]) -> Iterator[str]:
    """Yield the environment variables among the places of secrets."""
    for ref in refs:
        if not ref.startswith(("file:", "keyring:")):
            yield ref.removeprefix("env:")


def unset_variables_text(names: list[str], environ: Mapping[str, str]) -> str:
    """Return a clause that lists environment variables that are not set or are empty."""
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
    """Return the service and binding of a call, both untrusted unless both are trusted.

    So an untrusted binding cannot use the permissions of a trusted service, and vice versa.
    """
    if service.trusted == binding.trusted:
        return service, binding
    return service.replace(trusted=False), binding.replace(trusted=False)


def _untrusted_call_reasons(call: _Call) -> Iterator[Reason]:
    """Yield the reasons why an untrusted project may not make this call.

    A call of a trusted binding on a trusted service is always allowed. Otherwise only open shipped functions may be
    called: they compute, or read files inside the project. With allowed hosts, a call may also reach those hosts,
    without variables and secrets.
    """
    binding, service = call.binding, call.service
    if service.trusted and binding.trusted:
        return
    why = _explain_distrust(binding, service)
    if is_shipped_gate(call.catalog, binding.capability) and not _is_shipped_call(binding, service):
        yield _untrusted_reason(f"{why}, so it cannot replace what is shipped")
    lowered = service.replace(trusted=False, distrust=why) if service.trusted else service
    yield from untrusted_reasons(lowered, call.options.allow_hosts)
    if any(map(PLACEHOLDER.search, binding.metadata.headers.values())):
        yield _untrusted_reason(f"{why}, so its headers get no variable")
    yield from _function_reasons(call, why)


def _explain_distrust(binding: Binding, service: Service) -> str:
    """Return why a call of this binding on this service is not trusted."""
    if service.trusted:
        return binding.distrust or f"the layer of binding `{binding.id}` is not trusted"
    own = service.distrust or binding.distrust
    return own or f"the layer of service `{service.id}` is not trusted"


def _function_reasons(call: _Call, distrust: str) -> Iterator[Reason]:
    """Yield the reason why an untrusted project may not call a shipped function."""
    module, operation = call.service.module or "", call.binding.operation
    function = f"{module}:{operation}"
    if not is_shipped(module) or function in OPEN_FUNCTIONS:
        return
    if function != FETCH_PAGE:
        yield _untrusted_reason(f"{distrust}, so it does not call `{operation}` of `{module}`")
    elif not call.options.allow_hosts:
        yield _host_reason(f"{distrust}, so `{operation}` reaches no page", ANY)


def _is_shipped_call(binding: Binding, service: Service) -> bool:
    return binding.layer == BUILT_IN and service.layer == BUILT_IN


def untrusted_reasons(service: Service, hosts: Sequence[str] = ()) -> Iterator[Reason]:
    """Yield the required resources that an untrusted service may not use. Yield nothing for a trusted service.

    These resources are its code, programs, network hosts other than `hosts`, variables and secrets.
    """
    if service.trusted:
        return
    text = f"service `{service.id}`: {service.distrust or 'its layer is not trusted'}, so"
    yield from _untrusted_code(service, text)
    has_secrets = _gets_values(service)
    if has_secrets:
        yield _untrusted_reason(f"{text} it gets no variable and no secret")
    host = remote_host(service)
    if host is None or _is_allowed(host, hosts):
        return
    text += f" `{host}` is not called" if host else " it is not called"
    if has_secrets or is_private_host(host):
        yield _untrusted_reason(text)
    else:
        yield _host_reason(text, host or ANY)


def _untrusted_code(service: Service, text: str) -> Iterator[Reason]:
    """Yield the code of an untrusted service that does not run: its module and its program."""
    if service.module and not is_shipped(service.module):
        yield _untrusted_reason(f"{text} module `{service.module}` is not imported")
    if "command" in service.settings:
        yield _untrusted_reason(f"{text} `{service.settings['command']}` is not started")


def _gets_values(service: Service) -> bool:
    """Return whether the service gets a variable from the environment, or a secret."""
    return any(each.env for each in service.variables.values()) or _uses_secrets(None, service)


def _is_allowed(host: str, hosts: Sequence[str]) -> bool:
    """Return whether a host is among the allowed ones. An unknown host is allowed if any host is."""
    return allows_host(host, hosts) if host else bool(hosts)


def remote_host(service: Service) -> str | None:
    """Return the host of a service that is called over a network, with its port if the address has one.

    Return an empty string if only the API document has the address, and None for functions and programs.
    """
    address = service.keys.address
    if not address:
        return "" if "spec_ref" in service.settings else None
    from urllib.parse import urlsplit  # no run of a trusted project needs it here

    try:
        parts = urlsplit(address)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return ""
    host = parts.hostname or ""
    return f"{f'[{host}]' if ':' in host else host}{port}"


def _untrusted_reason(text: str) -> Reason:
    return Reason("service.untrusted", text, _TRUST, short=_UNTRUSTED)


def _host_reason(text: str, host: str) -> Reason:
    return Reason("service.untrusted", text, allow_hint([host]), short=_UNTRUSTED)


def _wall_reasons(call: _Call) -> Iterator[Reason]:
    """Yield the reason if a call requires isolation that this machine lacks (docs/reference/service.md#isolation)."""
    service = call.service
    function = f"{service.module}:{call.binding.operation}"
    if not call.catalog.runs_functions(service):
        return
    if function not in BEHIND_WALL and isolation_of(service) != "sandbox":
        return
    from cogcli.base.wall.confined_call import NO_WALL_HINT, wall_state

    state = wall_state()
    if state.wall is None:
        text = f"service `{service.id}`: this machine has no wall to keep what it runs apart ({state.missing})"
        yield Reason("binding.ineligible", text, NO_WALL_HINT, need="isolation", short="isolation")


def isolation_of(service: Service) -> str:
    """Return the isolation of a pythoncall service's functions: `thread`, `process` or `sandbox`. By default, shipped
    functions run in a `thread`, others in a `process`.
    """
    return service.isolation or ("thread" if is_shipped(service.module or "") else "process")


def _scope_reasons(call: _Call) -> Iterator[Reason]:
    """Yield the requirements of the capability's safety block that the service does not meet."""
    if call.capability and call.capability.safety:
        cure = "choose a binding that meets the capability's safety block"
        for fault in _find_scope_faults(call, call.capability.safety):
            text = f"service `{call.service.id}`: {fault}"
            yield Reason("safety.scope", text, cure, short="safety scope")


def _find_scope_faults(call: _Call, safety: Safety) -> Iterator[str]:
    """Yield the safety constraints that the service violates. A function counts as local, unless its service declares
    `network`.
    """
    service = call.service
    in_process = call.catalog.in_process(service)
    missing = [each for each in safety.allowed_targets if each not in service.metadata.targets]
    if missing and not in_process:
        yield f"not listed as {' and '.join(missing)}, which the capability demands"
    runs_functions = call.catalog.runs_functions(service)
    broken = {
        "no_external_network": not in_process and service.network != "private",
        "sandboxed_execution": not runs_functions or isolation_of(service) == "thread",
        "no_credential_passthrough": _uses_secrets(call.binding, service),
    }
    for constraint in safety.scope_constraints:
        if broken.get(constraint):
            yield f"{_BREACHES[constraint]}, {constraint} forbids it"


_BREACHES: Final = {
    "no_external_network": "reaches the public network",
    "sandboxed_execution": "does not run in a process of its own",
    "no_credential_passthrough": "is given credentials",
}
"""By constraint: a phrase for the violation by a service."""


def _uses_secrets(binding: Binding | None, service: Service) -> bool:
    """Return whether a service or its binding's headers use an environment variable or a secret."""
    if service.auth_ref is not None or service.credentials:
        return True
    return any(True for _ in variables_of(binding, service))


_STUB_CHECKS: Final = (
    _address_reasons,
    _protocol_reasons,
    _conformance_reasons,
    _scope_reasons,
)
"""The checks of a service that a stub replaces, in order of importance."""
_JUDGES: Final = (
    _address_reasons,
    _variable_reasons,
    _extra_reasons,
    _protocol_reasons,
    _conformance_reasons,
    _shipped_fit_reasons,
    _wall_reasons,
    _scope_reasons,
)
