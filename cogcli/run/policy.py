"""The policy for the calls of a run, built from its flags (docs/reference/pack.md#governed-calls)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from cogcli.base.errors import UnusableEnvironment, UsageError
from cogcli.base.problems import suggestion
from cogcli.declarations.pack_spec import BUCKETS, PHASES, Pack, PackIntent
from cogcli.declarations.run_start import LATEST_EDITION
from cogcli.declarations.service_spec import Service
from cogcli.declarations.spec_types import NESTED
from cogcli.policy.budgets import COUNTED, DEFAULTS, Budgets, flatten, merge_limits, raised_keys
from cogcli.policy.customer_text import list_safe_facts
from cogcli.policy.pack_composition import compose
from cogcli.policy.pack_policy import Policy
from cogcli.policy.run_policy import LimitsPolicy, OwnSkill, Requester, RunPolicy
from cogcli.policy.verdict import is_above
from cogcli.run.engine.ports import CallPolicy
from cogcli.run.policy_request import PolicyRequest
from cogcli.run.state_view import RunStateReader
from cogcli.specs.catalog import Catalog
from cogcli.specs.skill_tools import skill_tools

ENFORCED: Final = ("tool_calls.per_workflow",)
"""The budgets of a run without turns."""
UNSET: Final = ("cost_microusd", *(f"stage_latency_ms.{phase}" for phase in PHASES))
"""The budgets without a default, in addition to those of buckets."""


def build_policy(
    catalog: Catalog, request: PolicyRequest, skill_id: str, inputs: Mapping[str, object]
) -> CallPolicy:
    """Return the policy for the calls of a skill's run with these inputs.

    Raise UnusableEnvironment `pack.unknown` or `pack.mismatch`. Raise UsageError for an unknown intent, or for a
    mode or a budget above the pack's.
    """
    if not request.pack:
        _require_known_limits(request.budget)
        return LimitsPolicy(Budgets(request.budget), request.safety_mode)
    pack = pack_of(catalog, request)
    intent = pack.decisions.intents.get(request.intent)
    if intent is None:
        hint = (
            suggestion(request.intent, pack.decisions.intents)
            or "name one of its intents with --intent"
        )
        raise UsageError(
            "usage.value", f"`{pack.pack_id}` has no intent `{request.intent}`", hint=hint
        )
    requester = Requester(
        intent.id, request.user or "default", role=pack.tone.agent.role, voice=pack.tone.agent.voice
    )
    _require_known_limits(request.budget)
    limits = limits_of(pack, request.budget)
    limits = {key: limits[key] for key in (*ENFORCED, "retries")}
    own = OwnSkill(NESTED + skill_id, inputs)
    slots = fill_slots(intent, inputs)
    return build_run_policy(
        catalog,
        pack,
        requester,
        limits,
        request.safety_mode,
        slots,
        own,
        edition=request.edition,
        is_shadow=request.shadow,
    )


def build_run_policy(
    catalog: Catalog, pack: Pack, requester: Requester, limits: Mapping[str, int | float], safety_mode: str,
    slots: Mapping[str, str], own: OwnSkill | None = None, *, edition: int = LATEST_EDITION,
    is_shadow: bool = False,
) -> RunPolicy:  # fmt: skip
    """Return the policy of a run under a pack.

    `own` is the skill of the run, or None for an agent. `edition` is the edition of the checks. With `is_shadow` no
    rule is enforced. Raise UsageError for a mode above the pack's.
    """
    budgets = Budgets({key: int(limits[key]) for key in COUNTED if key in limits})
    rules = Policy.of(pack, is_shadow=is_shadow)
    tools = skill_tools(catalog, pack, catalog.by_name)
    return RunPolicy(
        pack,
        rules,
        budgets,
        requester,
        safety_mode=ceiling_of(pack, safety_mode),
        slots=slots,
        hosts={id: _find_host(catalog, service) for id, service in catalog.services.items()},
        required=pack.decisions.required_evidence(requester.intent),
        retries=int(limits["retries"]) if "retries" in limits else None,
        view=RunStateReader(rules.state_parts) if rules.state_parts else None,
        tools=tools,
        own=own,
        safe_facts=list_safe_facts(pack, {**catalog.by_name, **tools}),
        edition=edition,
    )


def fill_slots(intent: PackIntent, inputs: Mapping[str, object]) -> dict[str, str]:
    """Return the entity of each slot of an intent as `type:id`. The id is the input that the slot's parameter names."""
    return {
        name: f"{slot.type}:{inputs[slot.param]}"
        for name, slot in intent.slots.items()
        if isinstance(inputs.get(slot.param), str)
    }


def _find_host(catalog: Catalog, service: Service) -> str:
    """Return the host of a service. Empty for a service on this machine, `?` if only the API document names the
    host.
    """
    if catalog.in_process(service) or service.settings.keys() & {"command", "server"}:
        return ""
    address = service.keys.url or service.keys.base_url
    return (urlsplit(address).hostname if address else "") or "?"


def pack_of(catalog: Catalog, request: PolicyRequest) -> Pack:
    """Return the pack of a policy request, merged with its additional packs. Raise UnusableEnvironment `pack.unknown`,
    `pack.mismatch`. Raise UsageError if two packs contradict each other.
    """
    others = [_find_pack(catalog, reference) for reference in request.with_packs]
    return compose(_find_pack(catalog, request.pack), others)


def _find_pack(catalog: Catalog, reference: str) -> Pack:
    id, _, wanted = reference.partition("#")
    pack = catalog.packs.get(id)
    if pack is None:
        known = catalog.known("pack") if catalog.known else list(catalog.packs)
        hint = suggestion(id, known) or "packs are in packs/ID/VERSION.yaml"
        raise UnusableEnvironment("pack.unknown", f"no pack `{id}`", hint=hint)
    if wanted and wanted != pack.hash:
        text = f"pack `{id}` is {pack.hash}, not {wanted}"
        raise UnusableEnvironment(
            "pack.mismatch", text, hint="restore it, or name the pack that you mean"
        )
    return pack


def ceiling_of(pack: Pack, given: str) -> str:
    """Return the safety mode of a run: the pack's mode, or a lower one from a flag. Raise UsageError for a higher
    one.
    """
    own = pack.meta.defaults.safety_mode
    if given and is_above(given, own):
        text = f"`--safety-mode {given}` is above the pack's `{own}`"
        raise UsageError("usage.value", text, hint="a flag may only lower it")
    return given or own


def limits_of(pack: Pack, given: Mapping[str, int]) -> dict[str, int | float]:
    """Return the limits of a run by dotted key: the limits of the pack, or lower limits from flags.

    Raise UsageError for a higher limit. Raise it also for an unknown key, since the user would rely on a limit
    without effect.
    """
    limits = merge_limits(DEFAULTS, pack.meta.defaults.budget)
    sizes = {f"buckets.{name}": size for name, size in pack.bucket_sizes.items()}
    known = {*limits, *UNSET, *(f"buckets.{name}" for name in BUCKETS)}
    if unknown := [key for key in given if key not in known]:
        hint = suggestion(unknown[0], known) or f"a run has: {', '.join(sorted(known))}"
        raise UsageError("usage.value", f"no budget `{unknown[0]}`", hint=hint)
    if raised := raised_keys(sizes | limits, given):
        key = raised[0]
        text = f"`--budget {key}={given[key]}` is above the pack's {(sizes | limits)[key]:g}"
        raise UsageError("usage.value", text, hint="a flag may only lower it")
    return {**limits, **given}


def _require_known_limits(given: Mapping[str, int]) -> None:
    for key in given:
        if key not in ENFORCED:
            hint = suggestion(key, ENFORCED) or f"a run has: {', '.join(ENFORCED)}"
            known = key in dict(flatten(DEFAULTS))
            text = f"`--budget {key}` is of an agent's turns" if known else f"no budget `{key}`"
            raise UsageError("usage.value", text, hint=hint)
