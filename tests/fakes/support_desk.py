"""The support desk of `docs/examples`, as values: its pack, capabilities, and a compilation of a request."""

from __future__ import annotations

import copy
from functools import cache
from pathlib import Path
from typing import Any

from cogcli.agent.context.inputs import AgentRequest, CompileInput, Edge, RunContext, User
from cogcli.base.yaml import reader
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.pack_spec import Pack
from cogcli.policy.pack_policy import Policy
from cogcli.specs.shapes import check_file

PACK_FILE = Path(__file__).parents[2] / "docs/examples/support-desk/packs/support-desk/4.0.0.yaml"
NOW = "2026-05-04T09:30:00Z"
READ = {"side_effects": False}


def raw_pack() -> dict[str, Any]:
    """The pack as its file says it, a copy of the caller's own."""
    return copy.deepcopy(_raw_pack())


@cache
def _raw_pack() -> dict[str, Any]:
    parsed = reader.parse(PACK_FILE.read_bytes(), file="4.0.0.yaml")
    checked = check_file("pack", parsed.value or {}, parsed.places, "4.0.0.yaml", {})
    assert checked.raw is not None, [*parsed.problems, *checked.problems]
    return checked.raw


def pack(**sections: Any) -> Pack:
    raw = {**raw_pack(), **sections}
    return Pack.of(raw)


def policy(of: Pack) -> Policy:
    return Policy.of(of)


def capability(id: str, inputs: dict[str, str], outputs: dict[str, str], **more: Any) -> Capability:
    fields = [
        {name: {"type": type, "required": True} for name, type in each.items()}
        for each in (inputs, outputs)
    ]
    raw = {
        "id": id,
        "version": "1.0.0",
        "description": f"Do {id}.",
        "inputs": fields[0],
        "outputs": fields[1],
    }
    return Capability.of(raw | more)


CAPABILITIES = {
    each.id: each
    for each in (
        capability(
            "orders.lookup",
            {"order_id": "string"},
            {"age_days": "integer", "total": "number"},
            properties=READ,
        ),
        capability("policy.eval", {"days": "integer"}, {"ok": "boolean"}, properties=READ),
        capability(
            "payments.refund",
            {"order_id": "string", "amount": "number"},
            {"receipt": "object"},
            properties={"side_effects": True},
        ),
    )
}


def edge(predicate: str, value: Any = None, subject: str = "order:ord_881", **members: Any) -> Edge:
    defaults = {
        "evidence_ref": f"crm/{subject}/{predicate}",
        "observed_at": NOW,
        "trust": "verified",
        "tenant_id": "acme",
        "value": value,
    }
    return Edge(subject, predicate, **{**defaults, **members})


def compile_input(message: str = "Refund order ord_881", **members: Any) -> CompileInput:
    of = members.pop("pack", None) or pack()
    request = members.pop("request", None) or AgentRequest(message, user=User("cust_7"))
    run = RunContext(
        "run_1",
        "trace_1",
        of.tenant,
        of.meta.defaults.safety_mode,
        of.tone.agent.role,
        of.tone.agent.voice,
        now=NOW,
    )
    given: dict[str, Any] = {
        "edges": (edge("age_days", 12), edge("total", 240)),
        "limits": {"tokens.context": 6000},
        "capabilities": CAPABILITIES,
        "run": run,
        **members,
    }
    return CompileInput(of, policy(of), request, **given)
