"""The eleven layers of a turn, and the pure ones (docs/reference/agent-run.md#layers).

A layer reads only the values in its row, and writes only the values in its row. Judgment and action use ports, and the
policy gate uses the policy of the run, so the loop drives these three; the others are functions here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cogcli.agent.cognition.attention import (
    ATTACHMENT,
    hold,
    hold_all,
    rank,
    rank_in_first_edition,
)
from cogcli.base.errors import InternalError
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.layer_records import (
    CandidateRef,
    PerceptionInput,
    SessionSignals,
    TurnEffect,
)
from cogcli.declarations.reading import read_record
from cogcli.declarations.run_start import LATEST_EDITION, Attachment, RecordedRequest
from cogcli.declarations.value_types import Json

View = Json


def budget_gate(view: View) -> Json:
    """Return whether the turn may begin, and the remaining amount of each budget."""
    ledger = view["ledger"]
    return {"gate_decision": {"proceed": not ledger["exceeded"], **ledger}}


def perception(view: View) -> Json:
    """Return the events since the last turn, with types."""
    request, inputs, events = view["request"], PerceptionInput.of(view), []
    if not view["effects"] and not view["approvals"]:
        events.append({"id": "e0", "type": "user_message", "text": request["message"]})
        given = RecordedRequest.of(request)
        for type, text in _list_signals(given, inputs.session):
            events.append({"id": f"e{len(events)}", "type": type, "text": text})
        for place, attachment in enumerate(given.attachments):
            name, id = read_record(Attachment, attachment).name, f"e{len(events)}"
            at: Json = {"place": place} if "waiting" in view else {}
            events.append({"id": id, "type": ATTACHMENT, "text": name, **at})
    for effect in view["effects"]:
        type = "tool_result" if effect["status"] == "done" else "tool_error"
        events.append({"id": f"e{len(events)}", "type": type, "text": effect["capability"]})
    for notice in view["approvals"]:
        events.append({"id": f"e{len(events)}", **notice})
    for event in inputs.waiting:
        events.append({**event, "id": f"e{len(events)}", "waited": True})
    return {"events": events}


def _list_signals(
    recorded_request: RecordedRequest, session: SessionSignals | None
) -> list[tuple[str, str]]:
    """Return the types and texts of the events about session, channel and locale. Logs of edition 1 have no `session`:
    each of them resumes one, and nothing else is perceived. Where no session was read, none starts or is resumed.
    """
    id = recorded_request.session_id
    if session is None:
        return [("session_resumed", id)] if id else []
    found = [(f"session_{session.state}", id)] if id and session.state else []
    if session.last_run_failed:
        found.append(("last_run_failed", id))
    named = (("channel", recorded_request.channel), ("locale", recorded_request.locale))
    return [*found, *((name, text) for name, text in named if text)]


def focus(view: View) -> Json:
    """Defer interruptions of low salience until the turn has ended, if the focus is deep."""
    events = view["events"]
    held = hold(events, view["goals"]) if "goals" in view else hold_all(events)
    return {"focus_state": {"mode": "deep", "buffered": held}}


def attention(view: View) -> Json:
    """Return the references in focus, and the salience of each."""
    return rank(view) if "focus_state" in view else rank_in_first_edition(view)


def identity(view: View) -> Json:
    """Return the identity of the agent, for every judgment."""
    agent, tone = view["agent"], view["tone"]
    return {"agent_self": {**agent, "non_negotiables": tone}}


def goals(view: View) -> Json:
    """Return the intent, and its objectives."""
    intent = view["intents"]["intent"]
    active = [
        each["id"]
        for each in view["objectives"]
        if not each["intents"] or intent in each["intents"]
    ]
    return {"intent": intent, "active_goals": active}


def _fact_proposal(fact: Json) -> Json:
    """Return the proposal to remember a declared fact, with the class of its data if it has one."""
    kind = "correction" if fact["corrects"] else "evidence_link"
    made = _build_proposal(
        kind, "semantic", fact["entity"], fact["predicate"], fact["value"], fact["ref"]
    )
    return {**made, "data_class": fact["data_class"]} if "data_class" in fact else made


def consolidation(view: View) -> Json:
    """Return proposals for memory: declared facts, and the outcome of the decision. A read-only run makes none."""
    candidate, effects = view["candidate"], view["effects"]
    if candidate["safety_mode"] == "read_only":
        return {"proposals": []}
    proposals = [_fact_proposal(fact) for effect in effects for fact in TurnEffect.of(effect).facts]
    if candidate["outcome"]:
        refs = [effect["ref"] for effect in effects if effect["status"] == "done"]
        key = candidate["decision_key"]
        made = _build_proposal(
            "decision_outcome", "episodic", candidate["entity"], key, candidate["outcome"], *refs
        )
        proposals += [made] if refs else []
    proposals += _working_memory(candidate)
    return {"proposals": proposals}


def _working_memory(candidate: Json) -> list[Json]:
    """Return the session topics of a run: its intent, its entities and its outcome. Empty for logs of edition 1."""
    found = CandidateRef.of(candidate)
    if not found.session:
        return []
    return [
        _build_proposal("evidence_link", "working", found.session, name, value, found.ref)
        for name, value in found.about.items()
    ]


def _build_proposal(
    kind: str, tier: str, entity: str, predicate: str, value: object, *refs: str
) -> Json:
    return {
        "class": kind,
        "tier": tier,
        "candidate": {"entity": entity, "predicate": predicate, "value": value},
        "evidence_refs": list(refs),
        "confidence": 1.0,
    }


def reflection(view: View) -> Json:
    """Return whether the goal is met, the reasons if not, and the remaining amount of each budget."""
    score, ledger = view["score"], view["ledger"]
    codes = (TurnEffect.of(effect).code for effect in view["effects"])
    reasons = [code for code in codes if code]
    made = {
        "success": score["verdict"] == "accept" and not reasons,
        "goal_met": score["goal_met"],
        "reasons": list(dict.fromkeys([*reasons, *([score["reason"]] if score["reason"] else [])])),
        "budget": ledger["remaining"],
        "next": score["next"],
    }
    return {"reflection": made}


class LoopLayer(NamedTuple):
    """One row of the layer table: the lifecycle phase, the phase of its event, its reads and writes."""

    name: str
    lifecycle: str
    phase: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    function: Callable[[View], Json] | None = None
    """None for a layer that the loop drives."""
    later_reads: tuple[str, ...] = ()
    """The reads that it has since edition 2."""

    def reads_in(self, edition: int) -> tuple[str, ...]:
        """Return the values that the layer reads in a run of this edition."""
        return self.reads if edition < LATEST_EDITION else (*self.reads, *self.later_reads)

    def require_declared_writes(self, writes: Json) -> None:
        """Raise InternalError for a write outside the row."""
        if set(writes) - set(self.writes):
            raise InternalError(
                "internal", f"layer `{self.name}` wrote {sorted(set(writes) - set(self.writes))}"
            )


ORDER: Final = (
    LoopLayer("budget_gate", "compile", "governance", ("ledger",), ("gate_decision",), budget_gate),
    LoopLayer(
        "perception", "compile", "observe", ("request", "effects", "approvals"), ("events",), perception,
        ("waiting", "session"),
    ),
    LoopLayer("focus", "compile", "interpret", ("events",), ("focus_state",), focus, ("goals",)),
    LoopLayer(
        "attention", "compile", "interpret", ("events", "recalls", "goals"), ("focus", "salience_scores"), attention,
        ("focus_state",),
    ),
    LoopLayer("identity", "compile", "interpret", ("agent", "tone"), ("agent_self",), identity),
    LoopLayer("goals", "compile", "interpret", ("focus", "intents", "objectives"), ("intent", "active_goals"), goals),
    LoopLayer("judgment", "plan", "reason", ("context",), ("candidate",)),
    LoopLayer(
        "policy_gate", "verify", "governance", ("candidate", "facts"), ("verdict", "obligations", "calls", "counters")
    ),
    LoopLayer("action", "execute", "act", ("verdict", "candidate"), ("effects",)),
    LoopLayer("consolidation", "consolidate", "memory", ("effects", "candidate"), ("proposals",), consolidation),
    LoopLayer("reflection", "consolidate", "reflect", ("effects", "score", "ledger"), ("reflection",), reflection),
)  # fmt: skip
"""The layers, in the order of a turn."""
LAYERS: Final = {layer.name: layer for layer in ORDER}
