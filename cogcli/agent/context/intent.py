"""Stage 1, `intent`: which entry of the catalog a request means, and what it is about. Pure; never a model."""

from __future__ import annotations

from typing import Any, NamedTuple

from cogcli.agent.context.inputs import CompileInput
from cogcli.base.jsonvalue import NOTHING
from cogcli.declarations.pack_spec import PackIntent, Slot
from cogcli.policy.guardrails import has_match, has_phrase

UNKNOWN: str = "unknown_intent"
_BY_PATTERN = 3
_PUNCTUATION = ".,;:!?()[]{}<>\"'`"


class IntentResult(NamedTuple):
    """The intent, empty where none is known; its slots as entities `type:id`; the parameters, filled from slots."""

    intent: str
    refused: str = ""
    scores: dict[str, int] = NOTHING
    slots: dict[str, str] = NOTHING
    params: dict[str, Any] = NOTHING


def resolve_intent(given: CompileInput) -> IntentResult:
    """The intent of the request if it names one of the catalog, else the one whose patterns and phrases fit best. A
    refused request has no slots and no parameters: they could repeat its message."""
    catalog, request = given.pack.decisions.intents, given.request
    if request.refused_by:
        known = request.intent in catalog
        return IntentResult(request.intent, "") if known else IntentResult("", UNKNOWN)
    if request.intent:
        chosen = request.intent if request.intent in catalog else ""
        scores: dict[str, int] = {}
    else:
        folded = request.message.casefold()
        scores = {
            id: score
            for id, intent in catalog.items()
            if (score := _score(intent, request.message, folded))
        }
        best = [id for id, score in scores.items() if score == max(scores.values())]
        chosen = best[0] if len(best) == 1 else ""
    if not chosen:
        return IntentResult("", UNKNOWN, scores, {}, dict(request.params))
    slots, params = _fill(catalog[chosen].slots, request.message, dict(request.params))
    return IntentResult(chosen, "", scores, slots, params)


def _score(intent: PackIntent, message: str, folded: str) -> int:
    patterns = sum(has_match(pattern, message) for pattern in intent.patterns)
    return patterns * _BY_PATTERN + sum(has_phrase(folded, phrase) for phrase in intent.phrases)


def _words_of(pattern: str, text: str) -> list[str]:
    """The distinct words of a text that a pattern matches whole."""
    words = dict.fromkeys(word.strip(_PUNCTUATION) for word in text.split())
    return [word for word in words if word and has_match(f"^(?:{pattern})$", word)]


def _fill(
    slots: dict[str, Slot], message: str, params: dict[str, Any]
) -> tuple[dict[str, str], dict[str, Any]]:
    """The entities of the slots, from parameters, else from the message where it names exactly one."""
    entities = {}
    for name, slot in slots.items():
        value = params.get(slot.param) if slot.param else None
        if value is None:
            named = _words_of(slot.pattern, message)
            value = named[0] if len(named) == 1 else None
            if value is not None and slot.param:
                params[slot.param] = value
        if isinstance(value, str) and value:
            entities[name] = f"{slot.type}:{value}"
    return entities, params
