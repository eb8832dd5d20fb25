"""The specs of one call of a rule: a skill of one step, its capability, bindings and services."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.service_spec import Service
from cogcli.declarations.skill_spec import Skill
from cogcli.declarations.value_types import Json
from cogcli.protocols import PROTOCOLS
from cogcli.protocols.invoker_rule import RuleCall
from cogcli.run.prepare import one_step_skill
from cogcli.specs.catalog import Catalog

EFFECTS: Final[dict[str, Json]] = {
    "none": {"side_effects": False},
    "idempotent": {"side_effects": True, "idempotent": True},
    "effect": {"side_effects": True},
    "unknown": {},
}
CAPABILITY: Final = "verify.call"
GATE: Final = "verify.gate"
SKILL: Final = "verify.skill"
INNER: Final = "verify.inner"
STEP: Final = "call"
_BARE: Final = {"version": "1.0.0", "description": "Verified.", "properties": EFFECTS["none"]}


def catalog_of_call(call: RuleCall, root: str, *, second: str, gate: str) -> Catalog:
    """Return the specs of a call, as if loaded from a trusted layer in `root`.

    `second` is the address of the fallback's service, `gate` that of a gate's service. Without an
    address that binding does not exist.
    """
    fallback = {"fallback_binding_id": "second"} if second else {}
    first = _rule_binding(
        "first",
        protocol=call.protocol,
        operation=call.operation,
        request=call.request,
        response=call.response,
        metadata={**call.metadata, **fallback},
        page=call.page,
    )
    bindings, services = [first], [_rule_service(call, root)]
    capabilities = [_rule_capability(call, has_gate=bool(gate))]
    if second:
        bindings.append(
            _rule_binding("second", request={"a": "input.a"}, response={"r": "response.ok"})
        )
        services.append(_plain_service("second", second))
    if gate:
        allowed = {"allowed": "response.allowed"}
        bindings.append(_rule_binding("gate", GATE, request={}, response=allowed))
        services.append(_plain_service("gate", gate))
        outputs = {"allowed": {"type": "any"}, "reason": {"type": "string"}}
        gate_raw = {**_BARE, "id": GATE, "inputs": {}, "outputs": outputs}
        capabilities.append(Capability.of(gate_raw))
    bound = () if "bindings" in call.without else bindings
    skills = _rule_skills(call, tuple(capabilities[0].outputs))
    return Catalog(
        skills={skill["id"]: Skill.of(skill) for skill in skills},
        capabilities={each.id: each for each in capabilities},
        bindings={each.id: each for each in bound},
        bindings_of=_bindings_of(bound),
        services={} if "services" in call.without else {each.id: each for each in services},
        partial=True,
    )


def _bindings_of(bindings: Iterable[Binding]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for binding in bindings:
        found[binding.capability] = (*found.get(binding.capability, ()), binding.id)
    return found


def _rule_binding(id: str, capability: str = CAPABILITY, **members: object) -> Binding:
    common = {
        "id": id,
        "capability": capability,
        "service": id,
        "protocol": "openapi",
        "operation": "op",
    }
    return Binding.of({**common, **members}, layer="verify", trusted=True)


def _plain_service(id: str, url: str) -> Service:
    raw = {"id": id, "kind": "openapi", "base_url": url, "network": "private"}
    return Service.of(raw, layer="verify", trusted=True)


def _rule_capability(call: RuleCall, *, has_gate: bool) -> Capability:
    raw = {
        **_BARE,
        "id": CAPABILITY,
        "inputs": {name: {"type": "any"} for name in (*call.input, "a")},
        "outputs": {name: {"type": "any"} for name in call.response},
        "properties": EFFECTS[call.effect],
        **({"safety": {"mandatory_pre_gates": [GATE]}} if has_gate else {}),
        **call.capability,
    }
    return Capability.of(raw)


def _rule_service(call: RuleCall, root: str) -> Service:
    row = PROTOCOLS.get(call.protocol)
    key = next(iter(row.address_keys), "") if row else ""
    raw = {
        "id": "first",
        "kind": call.protocol,
        "network": call.network,
        "metadata": call.service_metadata,
        **({key: call.url} if key and call.url else {}),
        **call.service,
    }
    return Service.of(raw, layer="verify", root=root, trusted=call.trusted)


def _rule_skills(call: RuleCall, names: tuple[str, ...]) -> list[Json]:
    """Return the skill that runs, and the nested one if any."""
    if call.nested is None:
        return [_one_step(call, names)]
    inner = {**_one_step(call._replace(config=call.nested), names), "id": INNER}
    outer = {"uses": f"skill:{INNER}", "input": {}}
    return [_one_step(call._replace(step={**outer, **call.step}), names), inner]


def _one_step(call: RuleCall, names: tuple[str, ...]) -> Json:
    outputs = {name: {"type": "any"} for name in names} if call.outputs is None else call.outputs
    members = {"config": dict(call.config), **call.step}
    head = {"id": SKILL, "name": "Verify", "description": "One call."}
    return one_step_skill(head, CAPABILITY, call.input, outputs, names, members)
