"""Whether shipped bindings fit a capability that replaces the shipped one in a later layer.

The rules are in docs/reference/spec-files.md#shipped-unusable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.capability_spec import Capability, Safety
from cogcli.specs.catalog import Catalog
from cogcli.specs.extends import find_weakened_safety
from cogcli.specs.layers import BUILT_IN, builtin_root
from cogcli.specs.template import TemplateFault, TemplateSlot, files_in, slots_of, texts

_FOLDERS: Final = ("skills", "capabilities", "bindings", "services", "policies", "packs")


def is_shipped_file(catalog: Catalog, file: str) -> bool:
    """Return whether a display path belongs to a file in the built-in layer."""
    path = catalog.places.path(file)
    root = f"{builtin_root()}/".replace("\\", "/")
    # Other projects may be next to these folders, as in a checkout.
    return path.startswith(root) and path.removeprefix(root).partition("/")[0] in _FOLDERS


def find_replaced_versions(catalog: Catalog, binding: Binding) -> Sequence[Capability]:
    """Return the replaced versions of the capability that a shipped binding is for. Empty for other bindings."""
    return catalog.replaced.get(binding.capability, ()) if binding.layer == BUILT_IN else ()


def explain_shipped_misfit(catalog: Catalog, binding: Binding) -> str:
    """Return why a shipped binding does not fit the capability that replaces its own, and the file. Empty if the
    binding fits or is not shipped.
    """
    before, capability = (
        find_replaced_versions(catalog, binding),
        catalog.capabilities.get(binding.capability),
    )
    if not before or capability is None:
        return ""
    faults = "; ".join(dict.fromkeys(_find_faults(binding, capability, before)))
    return faults and f"{capability.file}, which replaces the shipped capability, {faults}"


def is_shipped_gate(catalog: Catalog, id: str) -> bool:
    """Return whether a capability is a shipped gate, which returns `allowed`, or replaces one."""
    own = catalog.capabilities.get(id)
    known = [each for each in (own, *catalog.replaced.get(id, ())) if each is not None]
    return any(each.answers_allowed and is_shipped_file(catalog, each.file) for each in known)


def find_weakened_keys(
    capability: Capability, replaced: Capability
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield each key in which a capability is less safe than the one it replaces, as (path of the key, reason)."""
    new, old = (each.safety or Safety() for each in (capability, replaced))
    for key, reason in find_weakened_safety(new, old):
        yield ("safety", key), reason
    new_effect, old_effect = capability.effect, replaced.effect
    if (old_effect == "effect" and new_effect != "effect") or (old_effect, new_effect) == (
        "idempotent",
        "none",
    ):
        yield ("properties",), f"effect class {new_effect}, before {old_effect}"


def _find_faults(
    binding: Binding, capability: Capability, replaced_versions: Sequence[Capability]
) -> Iterator[str]:
    for one in replaced_versions:
        yield from (f"is less safe: {reason}" for _, reason in find_weakened_keys(capability, one))
    for name, field in capability.outputs.items():
        if field.needs_value and name not in binding.response:
            yield f"requires the output `{name}`, which this binding does not map"
    if _sends_file(binding) and not _has_gate(capability):
        yield "has no gate that looks at the file which this binding sends"
    for slot in _find_inputs(binding):
        if slot.path[0] not in capability.inputs and _needs_input(slot, replaced_versions):
            yield f"has no input `{slot.path[0]}`, which this binding needs"


def _sends_file(binding: Binding) -> bool:
    return any(True for _ in files_in(binding.request, ("request",)))


def _has_gate(capability: Capability) -> bool:
    return capability.safety is not None and bool(capability.safety.mandatory_pre_gates)


def _needs_input(slot: TemplateSlot, replaced_versions: Sequence[Capability]) -> bool:
    """Return whether a request requires an input of the replaced capabilities."""
    replaced_inputs = [
        one.inputs[slot.path[0]] for one in replaced_versions if slot.path[0] in one.inputs
    ]
    if not replaced_inputs:
        return False
    is_text_part = not slot.is_whole_value and slot.default is None
    is_required = any(field.required for field in replaced_inputs)
    return is_text_part or is_required or any(each.answers_allowed for each in replaced_versions)


def _find_inputs(binding: Binding) -> Iterator[TemplateSlot]:
    for _, text in texts(binding.request, ("request",)):
        try:
            slots = slots_of(text)
        except TemplateFault:
            continue
        yield from (slot for slot in slots if not slot.of_service)
