"""Attention: which events, statements and memories a turn works with (docs/reference/agent-run.md#attention). Pure.

1. Salience is how near a reference is to the goals: by shared words, trust and age.
2. Events are always in focus: the message, results, notices. So is required evidence.
3. Of what the stores gave the most salient is in focus. What is not in focus is not in the prompt.
4. In deep focus an interruption of low salience is held: it comes when the turn has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from cogcli.agent.context.inputs import Attention, Edge, PromotedMemory, edge_ref
from cogcli.declarations.layer_records import AttentionWrites, FocusedEvents, PerceivedEvent
from cogcli.declarations.pack_spec import Pack
from cogcli.declarations.reading import read_record
from cogcli.declarations.value_types import Json
from cogcli.policy.freshness import seconds_of

KEPT: Final = 12
"""The number of references in focus, besides those that always are."""
LOW: Final = 0.25
"""An interruption with less salience waits in deep focus."""
ATTACHMENT: Final = "attachment"
INTERRUPTING: Final = ("interrupt", ATTACHMENT)
"""The types of events that may wait. Answers of people and results never do; a signal ends the run."""
_TRUST: Final = {"authoritative": 0.3, "verified": 0.2, "untrusted": 0.0}
_SHARED_WORDS: Final = 0.6
_RECENT: Final = 0.1
_SHARED_WORDS_ALONE: Final = 0.7
"""The weight in edition 1, which measures no age."""
_DAY_S: Final = 86_400


def list_recalls(
    pack: Pack,
    intent: str,
    slots: Mapping[str, str],
    edges: Iterable[Edge],
    memories: Iterable[PromotedMemory],
    now: str,
) -> list[Json]:
    """Return the recalled entries of the stores in the form for ranking by attention: `id`, `text`, `trust`, `age_s`,
    `required`.
    """
    names = (name.partition(".") for name in pack.decisions.required_evidence(intent))
    required = {f"{slots.get(slot, '')}:{predicate}" for slot, _, predicate in names}
    found = [
        _recall_entry(
            edge_ref(edge),
            f"{edge.subject} {edge.predicate} {edge.stated}",
            edge.trust,
            _age_in_seconds(edge.observed_at, now),
            required=edge_ref(edge) in required,
        )
        for edge in edges
    ]
    found += [
        _recall_entry(
            memory.memory_id,
            f"{memory.entity} {memory.predicate} {memory.value}",
            "verified",
            _age_in_seconds(memory.promoted_at, now),
        )
        for memory in memories
    ]
    return found


def list_recalls_of_first_edition(
    edges: Iterable[Edge], memories: Iterable[PromotedMemory]
) -> list[Json]:
    """Return the recalled entries of the stores as logs of edition 1 rank them: without values and ages."""
    found = [(edge_ref(each), f"{each.subject} {each.predicate}", each.trust) for each in edges] + [
        (each.memory_id, f"{each.entity} {each.predicate} {each.value}", "verified")
        for each in memories
    ]
    return [{"id": id, "text": text, "trust": trust} for id, text, trust in found]


def _recall_entry(id: str, text: str, trust: str, age_s: float, *, required: bool = False) -> Json:
    return {"id": id, "text": text, "trust": trust, "age_s": age_s, "required": required}


def _age_in_seconds(at: str, now: str) -> float:
    return max(0.0, seconds_of(now) - seconds_of(at)) if at and now else 0.0


def hold(events: Iterable[Json], goals: Iterable[str]) -> list[str]:
    """Return the ids of the interruptions that wait in deep focus. One that waited before does not wait again."""
    words = find_words(" ".join(goals))
    return [
        event["id"]
        for event in events
        if event["type"] in INTERRUPTING
        and not PerceivedEvent.of(event).waited
        and _event_salience(event, words) < LOW
    ]


def hold_all(events: Iterable[Json]) -> list[str]:
    """Return the ids of all interruptions, as logs of edition 1 record them."""
    types = (*INTERRUPTING, "session_resumed")
    return [event["id"] for event in events if event["type"] in types]


def rank(view: Json) -> Json:
    """Return the references in focus, the most salient first, and the salience of each reference; ties by id."""
    words = find_words(" ".join(view["goals"]))
    held = view["focus_state"]["buffered"]
    scores: dict[str, float] = {}
    always: set[str] = set()
    for event in view["events"]:
        if event["id"] not in held:
            scores[event["id"]] = _event_salience(event, words)
            always.add(event["id"])
    for each in view["recalls"]:
        found = 1.0 if each["required"] else _compute_salience(each, words, each["age_s"])
        scores[each["id"]] = max(found, scores.get(each["id"], 0.0))
        if each["required"]:
            always.add(each["id"])
    ranked = sorted(scores, key=lambda id: (-scores[id], id))
    chosen = {*always, *[id for id in ranked if id not in always][:KEPT]}
    return {"focus": [id for id in ranked if id in chosen], "salience_scores": scores}


def rank_in_first_edition(view: Json) -> Json:
    """Return the 12 references nearest to the goals, as logs of edition 1 record them. The result is only recorded, and
    affects no decision.
    """
    words = find_words(" ".join(view["goals"]))
    given = [{**event, "trust": "verified"} for event in view["events"]]
    scores = {
        each["id"]: round(_SHARED_WORDS_ALONE * _word_overlap(each["text"], words) + _TRUST.get(each["trust"], 0.0), 2)
        for each in (*given, *view["recalls"])
    }  # fmt: skip
    kept = sorted(scores, key=lambda id: (-scores[id], id))[:KEPT]
    return {"focus": kept, "salience_scores": {id: scores[id] for id in kept}}


def _event_salience(event: Json, request_words: set[str]) -> float:
    trust = "untrusted" if event["type"] in INTERRUPTING else "verified"
    return _compute_salience({"text": event["text"], "trust": trust}, request_words, 0.0)


def _compute_salience(item: Json, request_words: set[str], age_s: float) -> float:
    overlap = _word_overlap(item["text"], request_words)
    recency = _DAY_S / (_DAY_S + age_s)
    trust = _TRUST.get(item["trust"], 0.0)
    return round(_SHARED_WORDS * overlap + trust + _RECENT * recency, 2)


def _word_overlap(text: str, request_words: set[str]) -> float:
    """Return the share of a text's words that are words of the goals."""
    text_words = find_words(text)
    return len(text_words & request_words) / len(text_words) if text_words else 0.0


def find_words(text: str) -> set[str]:
    """Return the words of a text with at least three letters or digits, casefolded."""
    spaced = "".join(c if c.isalnum() else " " for c in text.casefold())
    return {word for word in spaced.split() if len(word) > 2}


def attention_from(logged_state: Json) -> Attention:
    """Return the attention of a turn from the logged writes of its layers. A reference with a secret-like name has a
    masked salience in the log and counts as unranked.
    """
    writes = read_record(AttentionWrites, logged_state)
    events = (event for event in find_held_events(logged_state) if event["type"] == ATTACHMENT)
    held = tuple(event["place"] for event in events)
    return Attention(tuple(writes.focus), writes.salience_scores, held)


def find_held_events(state: Json) -> list[Json]:
    """Return the events that a turn deferred to the next one."""
    found = FocusedEvents.of(state)
    held = found.focus_state.buffered
    return [event for event in found.events if event["id"] in held]
