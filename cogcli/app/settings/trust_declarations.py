"""The declarations in a file of a project that limit calls or give access to something
(docs/reference/service.md#trust).

The file is read in every role that it can have, without the checks of a spec, because a file that
cannot be loaded today may be loaded after another change."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from typing import Any, Final

from cogcli.app.settings.config import PROJECT_FILE
from cogcli.base.jsonvalue import Json, list_of, object_of, only_texts, walk_scalars
from cogcli.base.toml_bounds import find_excess
from cogcli.base.yaml.limits import DOCUMENT
from cogcli.base.yaml.reader import parse
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.specs.host_layout import ACTIVE_FILE, OVERRIDES_FILE, SERVICES_FILE
from cogcli.specs.id_grammar import PLACEHOLDER
from cogcli.specs.service import IN_ADDRESS
from cogcli.specs.service_variables import ADDRESSES

DeclarationKey = tuple[str, str]
"""The kind of a declaration, and its subject."""
Declared = Iterator[tuple[DeclarationKey, Any]]
"""Declarations with their values: a set of texts, or the value in the file. The kind decides which."""

# Each of these begins at a fixed text: a search from every letter of a long word would take the square of its length.
_HOST: Final = re.compile(r"://(?:[^/?#\s\"'@]*@)?([^/?#\s\"',;<>@]+)")
_PLAIN_HOST: Final = re.compile(r"(?i:http)" + _HOST.pattern)
_METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
_LONGEST_SETTINGS: Final = 256 * 1024


def is_spec(name: str) -> bool:
    """Return whether a file may contain declarations, by its ending."""
    return name.endswith((".yaml", ".yml", ".json", ".toml"))


def read_mapping(name: str, data: bytes) -> Json | None:
    """Return the mapping in a file; None if the file cannot be read."""
    if name.endswith(".toml"):
        return _toml_of(data)
    return parse(data, file=name, limits=DOCUMENT).value


def _toml_of(data: bytes) -> Json | None:
    try:
        text = data[: _LONGEST_SETTINGS + 1].decode("utf-8-sig")
        if len(data) > _LONGEST_SETTINGS or find_excess(text):
            return None
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return None


def find_declarations(name: str, data: bytes | None) -> dict[DeclarationKey, Any]:
    """Return the declarations in a file. Empty if the file does not exist, is not a spec or cannot
    be read."""
    value = read_mapping(name, data) if data is not None and is_spec(name) else None
    if value is None:
        return {}
    if name == PROJECT_FILE:
        return dict(_declared_by_settings(value))
    return {key: each for read in _find_readers(name, value) for key, each in read(name, value)}


def _find_readers(name: str, value: Json) -> Iterator[_Read]:
    """Yield a reader for each role that a file can have.

    A channel, a pack or a root may have the name of a spec folder, and a document may have any
    key."""
    *folders, file = name.split("/")
    for folder, key, read in _READERS:
        if folder in folders and key in value:
            yield read
    if file in _FILES:
        yield _FILES[file]
    if "paths" in value or "servers" in value:
        yield _declared_by_document


class CapabilityProperties(Record):
    """The properties of a capability that limit calls."""

    side_effects: object = None
    idempotent: object = None


class CapabilityFile(Record):
    """A file of a capability."""

    id: object = None
    safety: object = None
    properties: CapabilityProperties
    extends: object = None


def _declared_by_capability(name: str, raw: Json) -> Declared:
    file = read_record(CapabilityFile, raw)
    id = str(file.id)
    yield ("safety", id), file.safety
    yield ("effect", id), file.properties.side_effects
    yield ("repeat", id), file.properties.idempotent is True
    yield ("base", id), file.extends


class SafetyDefault(Record):
    """The default ceiling that a pack sets."""

    safety_mode: object = None


class PackIdentity(Record):
    """The id and version of a pack, and its defaults."""

    pack_id: object = None
    pack_version: object = None
    defaults: SafetyDefault


class PackPart(Record):
    """A rule, a limit, a permission, a guardrail, or a capability of a pack."""

    rule_id: object = None
    role: object = None
    allow: list[object]
    id: object = None
    approval_mode: object = None


class PackGuardrails(Record):
    """The guardrails of a pack."""

    must_refuse: list[object]
    must_escalate: list[object]


class PackPolicy(Record):
    """The policy layer of a pack."""

    rules: list[object]
    limits: list[object]
    permissions: list[object]
    guardrails: PackGuardrails
    gates: Json
    read_only_actions: object = None


class PackTools(Record):
    """The tooling layer of a pack."""

    hosts: object = None
    capabilities: Json


class PackFile(Record):
    """A file of a pack."""

    pack_meta: PackIdentity
    policy_layer: PackPolicy
    tooling_layer: PackTools
    memory_layer: Json


def _declared_by_pack(name: str, raw: Json) -> Declared:
    file = read_record(PackFile, raw)
    meta, tools = file.pack_meta, file.tooling_layer
    pack = f"{meta.pack_id}@{meta.pack_version}"
    yield from _pack_policy(pack, file.policy_layer)
    yield ("pack hosts", pack), None if tools.hosts is None else texts_in(list_of(tools.hosts))
    yield ("setting", f"{pack}: safety_mode"), meta.defaults.safety_mode
    yield ("setting", f"{pack}: read_only_actions"), file.policy_layer.read_only_actions
    for tool, entry in tools.capabilities.items():
        mode = read_record(PackPart, entry).approval_mode
        yield ("setting", f"{pack}: {tool}: approval_mode"), mode
    for key in ("consent", "max_class", "auto_promote"):
        yield ("setting", f"{pack}: memory_layer.{key}"), file.memory_layer.get(key)


def _pack_policy(pack: str, policy: PackPolicy) -> Declared:
    for rule in _read_parts(policy.rules):
        yield ("rule", f"{pack}: rule {rule.rule_id}"), rule.json
    for limit in _read_parts(policy.limits):
        yield ("limit", f"{pack}: limit {limit.id}"), limit.json
    for permission in _read_parts(policy.permissions):
        yield ("permission", f"{pack}: role {permission.role}"), texts_in(permission.allow)
    found = policy.guardrails
    for kind, entries in (
        ("must_refuse", found.must_refuse),
        ("must_escalate", found.must_escalate),
    ):
        for guardrail in _read_parts(entries):
            yield ("guardrail", f"{pack}: {kind} {guardrail.id}"), guardrail.json
    for gate, entry in policy.gates.items():
        yield ("gate", f"{pack}: gate {gate}"), entry


def _read_parts(entries: list[object]) -> list[PackPart]:
    return [read_record(PackPart, entry) for entry in entries]


class ServiceFile(Record):
    """A file of a service, or its entry in the overrides of a machine."""

    id: object = None
    command: str | None = None
    args: list[object]
    cwd: object = None
    env: Json
    module: object = None
    isolation: object = None
    spec_ref: object = None
    network: object = None
    variables: Json

    @property
    def program(self) -> str | None:
        """Return the command with its arguments; None if the service starts no program."""
        return None if self.command is None else " ".join((self.command, *map(str, self.args)))


def _declared_by_service(name: str, raw: Json) -> Declared:
    file = read_record(ServiceFile, raw)
    service, insert_defaults = f"service {file.id}", _insert_defaults(raw, file.variables)
    yield ("host", service), _find_hosts(insert_defaults)
    yield ("plain", service), _find_hosts(insert_defaults, _PLAIN_HOST)
    yield ("variable", service), _find_variables(raw, file.variables)
    yield ("program", service), file.program
    yield ("directory", service), file.cwd
    for variable, text in file.env.items():
        yield ("environment", f"{service}: variable {variable}"), text
    yield ("module", service), file.module
    yield ("isolation", service), file.isolation
    yield ("document", service), file.spec_ref
    yield ("network", service), file.network == "private"


class BindingMethod(Record):
    """The HTTP method in the metadata of a binding."""

    method: object = None


class BindingFile(Record):
    """A file of a binding."""

    id: object = None
    operation: object = None
    service: object = None
    metadata: BindingMethod
    variables: Json


def _declared_by_binding(name: str, raw: Json) -> Declared:
    file = read_record(BindingFile, raw)
    binding, method = f"binding {file.id}", file.metadata.method
    called = f"{file.operation} of service {file.service}"
    yield ("call", binding), f"{method} {called}" if method else called
    yield ("host", binding), _find_hosts(raw)
    yield ("variable", binding), _find_variables(raw, file.variables)


def _declared_by_skill(name: str, raw: Json) -> Declared:
    skill = f"skill {raw.get('id')}"
    yield ("calls", skill), set(_find_members(raw, "uses"))
    yield ("host", skill), _find_hosts(raw)


class HostFile(Record):
    """A file of default choices, or of overrides of a machine."""

    defaults: Json
    overrides: list[object]
    services: Json


class HostOverride(Record):
    """A choice for capabilities on this machine."""

    binding: object = None
    service: object = None
    capabilities: list[object]
    mode: object = None


def _declared_by_policy(name: str, raw: Json) -> Declared:
    return _declared_by_active(name, read_record(HostFile, raw).defaults)


def _declared_by_active(name: str, raw: Json) -> Declared:
    for id, binding in raw.items():
        yield ("choice", str(id)), binding


def _declared_by_overrides(name: str, raw: Json) -> Declared:
    for entry in read_record(HostFile, raw).overrides:
        override = read_record(HostOverride, entry)
        chosen = str(override.binding or f"service {override.service}")
        for id in override.capabilities:
            yield ("override", str(id)), f"{chosen} ({override.mode or 'replace'})"


def _declared_by_services(name: str, raw: Json) -> Declared:
    for id, entry in read_record(HostFile, raw).services.items():
        yield from _declared_by_service(name, {**object_of(entry), "id": id})


class ApiFile(Record):
    """A document of an API."""

    paths: Json


def _declared_by_document(name: str, raw: Json) -> Declared:
    for path, item in read_record(ApiFile, raw).paths.items():
        members = object_of(item)
        if "$ref" in members:
            yield ("operation", f"{name}: path {path}"), str(members["$ref"])
        for method, operation in members.items():
            if method in _METHODS and isinstance(operation, dict):
                called = f"{method.upper()} {path}"
                id = operation.get("operationId", called)
                yield ("operation", f"{name}: operation {id}"), called
    yield ("host", name), _find_hosts([raw.get(key) for key in ("servers", "paths")])


def _declared_by_settings(value: Json, prefix: str = "") -> Declared:
    for key, member in value.items():
        if isinstance(member, dict):
            yield from _declared_by_settings(member, f"{prefix}{key}.")
        else:
            yield ("setting", f"{prefix}{key}"), member


_Read = Callable[[str, Json], Declared]
_READERS: Final[tuple[tuple[str, str, _Read], ...]] = (
    ("skills", "steps", _declared_by_skill),
    ("capabilities", "version", _declared_by_capability),
    ("bindings", "capability", _declared_by_binding),
    ("services", "kind", _declared_by_service),
    ("packs", "pack_meta", _declared_by_pack),
    ("policies", "defaults", _declared_by_policy),
)
"""Per kind the folder that its files are in, at any depth, and a key that no file of the kind is loaded without."""
_FILES: Final[dict[str, _Read]] = {
    SERVICES_FILE: _declared_by_services,
    ACTIVE_FILE: _declared_by_active,
    OVERRIDES_FILE: _declared_by_overrides,
}


def texts_in(values: list[object]) -> set[str]:
    """Return the members of a list as strings."""
    return set(map(str, values))


def _find_hosts(value: object, pattern: re.Pattern[str] = _HOST) -> set[str]:
    """Return the hosts in all strings of a value."""
    return {
        host.lower() for text in only_texts(walk_scalars(value)) for host in pattern.findall(text)
    }


class VariableDefault(Record):
    """A variable of a service."""

    default: object = None


def _insert_defaults(raw: Json, variables: Json) -> Json:
    """Return a service with the defaults of its variables inserted into its addresses."""
    defaults = {
        name: read_record(VariableDefault, each).default for name, each in variables.items()
    }

    def insert_defaults(address: object) -> object:
        if not isinstance(address, str):
            return address
        return IN_ADDRESS.sub(lambda found: str(defaults.get(found[1]) or found[0]), address)

    return {**raw, **{key: insert_defaults(raw[key]) for key in ADDRESSES if key in raw}}


_SECRET_KEYS: Final = (
    "auth_ref", "bearer", "api_key", "user", "password", "client_id", "client_secret",
    "signing_key",
)  # fmt: skip
"""The keys of a service that name where a secret is."""


def _find_variables(raw: Json, variables: Json) -> set[str]:
    """Return the names of the variables and secrets that a service uses."""
    named = {name for text in only_texts(walk_scalars(raw)) for name in PLACEHOLDER.findall(text)}
    for key in _SECRET_KEYS:
        named |= {name.removeprefix("env:") for name in _find_members(raw, key)}
    return named | set(_find_members(variables, "env"))


def _find_members(value: object, name: str) -> Iterator[str]:
    """Yield the strings under a key, at any depth."""
    match value:
        case dict():
            for key, member in value.items():
                if key == name and isinstance(member, str):
                    yield member
                else:
                    yield from _find_members(member, name)
        case list():
            for member in value:
                yield from _find_members(member, name)
