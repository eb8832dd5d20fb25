"""Stage 1, `intent`: the entry of the catalog for a request, and its entities. Pure; never uses a model."""

from __future__ import annotations

from collections.abc import Mapping

from cogcli.agent.context.inputs import CompileInput
from cogcli.base.jsonvalue import NOTHING
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.pack_spec import PackIntent, Slot
from cogcli.declarations.value_types import Json
from cogcli.policy.guardrails import has_match, has_phrase

UNKNOWN: str = "unknown_intent"
_BY_PATTERN = 3
_PUNCTUATION = ".,;:!?()[]{}<>\"'`"


class IntentResult(NamedTuple):
    """The detected intent. `intent` is empty if it is unknown, `slots` are entities `type:id`, and
    `params` are filled from slots."""

    intent: str
    refused: str = ""
    scores: dict[str, int] = NOTHING
    slots: dict[str, str] = NOTHING
    params: Json = NOTHING


def resolve_intent(compile_input: CompileInput) -> IntentResult:
    """Return the intent that the request names, else the one whose patterns and phrases match best. A refused
    request has no slots and no parameters, which could repeat its message.
    """
    catalog, request = compile_input.pack.decisions.intents, compile_input.request
    if request.refused_by:
        known = request.intent in catalog
        return IntentResult(request.intent, "") if known else IntentResult("", UNKNOWN)
    scores = {} if request.intent else _score_intents(catalog, request.message)
    chosen = request.intent if request.intent in catalog else _find_best_intent(scores)
    if not chosen:
        return IntentResult("", UNKNOWN, scores, {}, dict(request.params))
    slots, params = _fill_slots(catalog[chosen].slots, request.message, dict(request.params))
    return IntentResult(chosen, "", scores, slots, params)


def _score_intents(catalog: Mapping[str, PackIntent], message: str) -> dict[str, int]:
    """Return the intents that match a message, with their scores."""
    folded = message.casefold()
    scores = {id: _score_intent(intent, message, folded) for id, intent in catalog.items()}
    return {id: score for id, score in scores.items() if score}


def _find_best_intent(scores: Mapping[str, int]) -> str:
    """Return the intent with the highest score. Empty if no intent matches, or several share the highest score."""
    best = [id for id, score in scores.items() if score == max(scores.values())]
    return best[0] if len(best) == 1 else ""


def _score_intent(intent: PackIntent, message: str, folded_message: str) -> int:
    patterns = sum(has_match(pattern, message) for pattern in intent.patterns)
    return patterns * _BY_PATTERN + sum(
        has_phrase(folded_message, phrase) for phrase in intent.phrases
    )


def _words_of(pattern: str, text: str) -> list[str]:
    """Return the distinct words of a text that match a pattern as a whole."""
    words = dict.fromkeys(word.strip(_PUNCTUATION) for word in text.split())
    return [word for word in words if word and has_match(f"^(?:{pattern})$", word)]


def _fill_slots(slots: dict[str, Slot], message: str, params: Json) -> tuple[dict[str, str], Json]:
    """Return the entities of the slots, from parameters, else from the message if it names exactly one."""
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
