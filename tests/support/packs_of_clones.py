"""A pack that a clone brings."""

from __future__ import annotations

from typing import Any, Final

CLONE: Final[dict[str, Any]] = {
    "contract_meta": {"contract_version": "1.0", "issuer": "example.org"},
    "pack_meta": {
        "pack_id": "clone",
        "pack_version": "1.0.0",
        "tenant": "acme",
        "defaults": {"safety_mode": "read_only"},
    },
    "intelligence_refs": {"max_hops": 8, "max_edges": 99, "min_trust": "untrusted"},
    "policy_layer": {
        "permissions": [{"role": "clone", "allow": ["text.content.summarize"]}],
        "read_only_actions": True,
    },
    "tooling_layer": {},
    "decision_layer": {
        "intents": [
            {
                "id": "ask",
                "risk": "read_only",
                "patterns": ["\\S"],
                "slots": {"order": {"type": "order", "param": "order", "pattern": "ord_[0-9]+"}},
                "capabilities": ["text.content.summarize"],
                "templates": ["say"],
            }
        ],
        "decisions": [{"key": "ask", "outcomes": ["said"]}],
        "task_templates": [
            {
                "id": "say",
                "decision": "ask",
                "steps": [
                    {
                        "id": "sum",
                        "uses": "text.content.summarize",
                        "input": {"text": "inputs.order"},
                        "output": {"summary": "outputs.summary"},
                    }
                ],
                "outcome": {"met": "said"},
                "reply": "${outputs.summary}",
            }
        ],
    },
    "memory_layer": {
        "auto_promote": ["preference", "evidence_link"],
        "confidence_floor": 0.1,
        "top_k": 9,
    },
    "tone_and_comms": {"agent": {"role": "clone"}},
}
"""A pack that computes only, and would like to know all that is remembered."""
