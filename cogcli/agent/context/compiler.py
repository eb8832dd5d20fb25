"""The compiler: a request becomes a bounded, explained context (docs/reference/pack.md#compiler). Pure.

Eight stages, each hashed; equal input gives equal bytes. `STAGES` is their order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from cogcli.agent.context import blocks as block_builders
from cogcli.agent.context.buckets import Assembly, allocate, assemble, omission_of
from cogcli.agent.context.compiled import ContextBlock
from cogcli.agent.context.evidence import Evidence, KnowledgeQuery, retrieve
from cogcli.agent.context.inputs import CompileInput
from cogcli.agent.context.intent import IntentResult, resolve_intent
from cogcli.agent.context.memory import Recall, recall
from cogcli.agent.context.tools import (
    PolicyResult,
    Surface,
    max_mode,
    resolve_policy,
    surface_tools,
)
from cogcli.base.canonical import digest_of
from cogcli.base.jsonvalue import NOTHING
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.pack_spec import BUCKETS
from cogcli.declarations.value_types import Json


class Compilation:
    """The results of the stages that have run. Each stage sets its own members and reads earlier
    ones.
    """

    intent: IntentResult
    policy: PolicyResult
    query: KnowledgeQuery
    evidence: Evidence
    surface: Surface
    memory: Recall
    candidates: tuple[ContextBlock, ...]
    """The blocks in focus."""
    unfocused: tuple[ContextBlock, ...]
    """The blocks that the attention of the turn leaves out."""
    caps: dict[str, int]
    allocations: dict[str, int]
    assembly: Assembly

    def __init__(self, compile_input: CompileInput) -> None:
        self.compile_input = compile_input


class CompiledContext(NamedTuple):
    """The recorded result, and the compilation for the rest of the turn."""

    compilation: Compilation
    payload: Json

    @property
    def refused(self) -> str:
        """The reason why no model may be called: an unknown intent, or a guardrail. Empty if the call is permitted. A
        guardrail that refused the message before the run has priority.
        """
        found = self.compilation
        if found.compile_input.request.refused_by:
            return f"must_refuse:{found.compile_input.request.refused_by[0]}"
        return found.intent.refused or next(
            (f"must_refuse:{id}" for id in found.policy.must_refuse), ""
        )

    @property
    def is_overpacked(self) -> bool:
        """Whether the parts of every prompt, such as policy and tools, do not fit, so that no model
        may be called.
        """
        compile_input = self.compilation.compile_input
        total = int(compile_input.limits["tokens.context"])
        return self.compilation.assembly.overpacked or compile_input.reserved > total

    @property
    def hash(self) -> str:
        """The hash of the whole context."""
        found: str = self.payload["context_ledger"]["context_hash"]
        return found


def _run_intent_stage(compilation: Compilation) -> object:
    compilation.intent = resolve_intent(compilation.compile_input)
    return compilation.intent._asdict()


def _run_policy_stage(compilation: Compilation) -> object:
    compilation.policy = resolve_policy(compilation.compile_input, compilation.intent)
    return compilation.policy._asdict()


def _run_tools_stage(compilation: Compilation) -> object:
    """Return the tools before evidence is known. Capabilities whose rules need facts are checked again later."""
    compilation.surface = surface_tools(compilation.compile_input, compilation.intent, {})
    return _surface_payload(compilation.surface)


def find_evidence(
    compile_input: CompileInput, intent: IntentResult
) -> tuple[KnowledgeQuery, Evidence]:
    """Return the query for the entities of a request at the time of the run context, and its evidence."""
    query = KnowledgeQuery(
        intent.slots,
        compile_input.pack.knowledge,
        compile_input.run.tenant_id,
        compile_input.pack.meta.data_classification,
        compile_input.run.now,
        compile_input.run.run_id,
    )
    return query, retrieve(
        compile_input.edges, query, compile_input.pack.decisions.required_evidence(intent.intent)
    )


def _run_evidence_stage(compilation: Compilation) -> object:
    compile_input = compilation.compile_input
    compilation.query, compilation.evidence = find_evidence(compile_input, compilation.intent)
    compilation.surface = surface_tools(
        compile_input, compilation.intent, compilation.evidence.facts
    )
    return {
        "edges": [
            {"hops": each.hops, **each.edge._asdict()} for each in compilation.evidence.found
        ],
        "omitted": compilation.evidence.omitted,
        "facts": compilation.evidence.facts,
        "gates": [gate.to_payload() for gate in compilation.evidence.gates],
        "surface": _surface_payload(compilation.surface),
    }


def _run_memory_stage(compilation: Compilation) -> object:
    compile_input = compilation.compile_input
    user, run = compile_input.request.user, compile_input.run
    salience = compile_input.attention.salience if compile_input.attention else NOTHING
    compilation.memory = recall(
        compile_input.memories,
        compile_input.pack.memory,
        user,
        tenant_id=run.tenant_id,
        now=run.now,
        session_id=compile_input.request.session_id,
        salience=salience,
    )
    return {
        "memories": [memory._asdict() for memory in compilation.memory.memories],
        "omitted": compilation.memory.omitted,
    }


def _run_budget_stage(compilation: Compilation) -> object:
    compile_input = compilation.compile_input
    blocks = tuple(
        block_builders.candidates(
            compile_input, compilation.surface, compilation.evidence, compilation.memory
        )
    )
    compilation.candidates = tuple(block for block in blocks if block.in_focus)
    compilation.unfocused = tuple(block for block in blocks if not block.in_focus)
    total = max(0, int(compile_input.limits["tokens.context"]) - compile_input.reserved)
    compilation.caps = {
        bucket: int(limit)
        for bucket in BUCKETS
        if (
            limit := compile_input.limits.get(
                f"buckets.{bucket}", compile_input.pack.bucket_sizes.get(bucket)
            )
        )
        is not None
    }
    compilation.allocations = allocate(compilation.candidates, compilation.caps, total)
    return compilation.allocations


def _run_assembly_stage(compilation: Compilation) -> object:
    compilation.assembly = assemble(
        compilation.candidates, compilation.allocations, compilation.compile_input.tokenizer
    )
    return {
        "blocks": [block.to_payload() for block in compilation.assembly.blocks],
        "omissions": [each._asdict() for each in compilation.assembly.omissions],
    }


def _run_manifests_stage(compilation: Compilation) -> object:
    compile_input, surface, assembly = (
        compilation.compile_input,
        compilation.surface,
        compilation.assembly,
    )
    return {
        "compiled_prompt": block_builders.prompt(compile_input, compilation.intent, assembly),
        "manifests": {
            "policy_manifest": [
                rule.declared.rule_id
                for tool in surface.tools
                for rule in compile_input.policy.rules_for(
                    compilation.intent.intent, tool.capability
                )
            ],
            "tool_manifest": [tool._asdict() for tool in surface.tools],
            "evidence_manifest": [
                {
                    "subject": each.edge.subject,
                    "predicate": each.edge.predicate,
                    "hops": each.hops,
                    "ref": each.edge.evidence_ref,
                }
                for each in compilation.evidence.found
            ],
        },
        "redactions": [each.to_payload() for each in surface.redactions],
        "runtime_controls": {
            "must_refuse": list(compilation.policy.must_refuse),
            "must_escalate": list(compilation.policy.must_escalate),
            "requires_approval_gate": [
                {"capability": tool.capability, "gate": tool.gate}
                for tool in surface.tools
                if tool.gate
            ],
            "prohibited_capabilities": sorted(compilation.policy.prohibited),
            "evidence_gates": [gate.to_payload() for gate in compilation.evidence.gates],
            "max_approval_mode": max_mode(surface),
            "commit_allowed": compilation.evidence.is_complete,
        },
        "budget_report": _budget_report(compilation),
    }


Stage = Callable[[Compilation], object]
STAGES: Final[dict[str, Stage]] = {
    "intent": _run_intent_stage,
    "policy": _run_policy_stage,
    "tools": _run_tools_stage,
    "evidence": _run_evidence_stage,
    "memory": _run_memory_stage,
    "budget": _run_budget_stage,
    "assembly": _run_assembly_stage,
    "manifests": _run_manifests_stage,
}
"""The stages in order. Each sets its members of the compilation and returns its hashed result."""


def compile_context(compile_input: CompileInput) -> CompiledContext:
    """Return the context of a request."""
    found = Compilation(compile_input)
    results = {name: stage(found) for name, stage in STAGES.items()}
    payload: Json = _to_json(results["manifests"])
    hashes = {name: digest_of(result) for name, result in results.items()}
    payload["context_ledger"] = {
        "pack_ref": compile_input.pack.ref,
        "snapshot_ref": compile_input.run.snapshot_ref,
        "request_hash": digest_of(compile_input.request.to_payload()),
        "stage_hashes": hashes,
        "context_hash": digest_of(payload),
    }
    return CompiledContext(found, payload)


def _surface_payload(surface: Surface) -> Json:
    return {
        "tools": [tool._asdict() for tool in surface.tools],
        "redactions": [each.to_payload() for each in surface.redactions],
    }


def _budget_report(compilation: Compilation) -> Json:
    assembly, tokenizer = compilation.assembly, compilation.compile_input.tokenizer
    omissions = (
        *assembly.omissions,
        *(omission_of(block, "not_in_focus") for block in compilation.unfocused),
        *block_builders.omit_held(compilation.compile_input),
        *(
            (compilation.compile_input.summary_cut,)
            if compilation.compile_input.summary_cut
            else ()
        ),
        *compilation.compile_input.state_omissions,
    )
    truncations = dict.fromkeys(BUCKETS, 0)
    for each in omissions:
        truncations[each.bucket] = truncations.get(each.bucket, 0) + 1
    # A context whose prompt needed no room of its own is recorded as before, so that earlier logs replay.
    reserved = (
        {"reserved": compilation.compile_input.reserved}
        if compilation.compile_input.reserved
        else {}
    )
    return {
        "tokenizer": {"id": tokenizer.id, "exact": tokenizer.exact, "hash": tokenizer.hash},
        "allocations": compilation.allocations,
        "used": assembly.used,
        "bucket_truncations": truncations,
        "truncated": bool(omissions),
        "omissions": [each._asdict() for each in omissions],
        **reserved,
    }


def _to_json(value: object) -> Any:
    """Return a result as JSON: tuples are lists."""
    match value:
        case dict():
            return {name: _to_json(item) for name, item in value.items()}
        case list() | tuple():
            return [_to_json(item) for item in value]
        case _:
            return value
