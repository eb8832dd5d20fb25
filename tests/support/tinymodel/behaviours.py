"""What the tiny model says, by its name. Equal seeds and equal requests give equal answers.

`bigram` writes raw text; `bigram-json` valid replies of an agent, with names, arguments and texts drawn from the table,
the tools and what stands in the prompt: wrong plans and repeats among them; `bigram-half` damages some of those.
"""

from __future__ import annotations

import json
import random
import re
from typing import Any, Final, NamedTuple

from support.tinymodel.table import sample

_TOOL: Final = re.compile(r"\b[a-z]+(?:\.[a-z_]+)+\b")
_NO_NAME: Final = re.compile(r"\W")
_THING: Final = re.compile(r"\b[a-z]+_\d+\b")


class Answer(NamedTuple):
    """A text and native tool calls `{id, name, args}`; `finish`: why it ends, where that is no usual end."""

    text: str
    calls: tuple[dict[str, Any], ...] = ()
    finish: str = ""


class Seen(NamedTuple):
    """What a behaviour sees of a request."""

    prompt: str
    tools: tuple[dict[str, Any], ...]
    """`{name, parameters}`; where the request names none, the ids that its prompt holds."""
    native: bool
    """Whether the request names tools, so that they may be called natively."""
    max_tokens: int


def seen_in(messages: list[dict[str, Any]], tools: list[dict[str, Any]], max_tokens: int) -> Seen:
    """What there is in a request, whatever its protocol."""
    prompt = "\n".join(str(message.get("content")) for message in messages)
    named = tools or [
        {"name": name, "parameters": {}} for name in sorted(set(_TOOL.findall(prompt)))
    ]
    return Seen(prompt, tuple(named), bool(tools), max_tokens)


def answer(name: str, seed: int, seen: Seen) -> Answer:
    """What the model of this name says. Raises KeyError for a name that there is not."""
    rng = random.Random(f"{seed}/{name}/{seen.prompt}")
    return _BEHAVIOURS[name](rng, seen)


def _raw(rng: random.Random, seen: Seen) -> Answer:
    return Answer(sample(rng, min(4 * seen.max_tokens, rng.randint(20, 400))))


def _json(rng: random.Random, seen: Seen) -> Answer:
    calls = _calls(rng, seen)
    reply: dict[str, Any] = {"thinking": sample(rng, rng.randint(10, 120)).strip()}
    if seen.native and calls and rng.random() < 0.3:
        return Answer("", tuple({"id": f"call_{n}", **call} for n, call in enumerate(calls)))
    if calls or rng.random() < 0.5:
        reply["tool_calls"] = [_as_written(call, seen) for call in calls]
    if rng.random() < 0.6:
        reply["context_updates"] = _updates(rng, seen)
    if not calls or rng.random() < 0.2:
        reply["response"] = sample(rng, rng.randint(0, 160)).strip()
    if rng.random() < 0.15:
        reply |= {
            "switch_mode": rng.choice(["fast", "deep", "adapt"]),
            "switch_why": sample(rng, 30).strip(),
        }
    return Answer(json.dumps(reply))


def _calls(rng: random.Random, seen: Seen) -> list[dict[str, Any]]:
    """Calls of some tools, some of them twice, some of tools that there are not."""
    if not seen.tools or rng.random() < 0.3:
        return []
    calls = []
    for _ in range(rng.choice([1, 1, 1, 2, 3, 9])):
        tool = rng.choice(seen.tools)
        name = tool["name"] if rng.random() < 0.95 else sample(rng, 8).strip() or "x"
        calls.append({"name": name, "args": _arguments(rng, tool["parameters"], seen)})
    return calls + calls[:1] if rng.random() < 0.1 else calls


def _as_written(call: dict[str, Any], seen: Seen) -> dict[str, Any]:
    """The call by the name that the prompt has for it: a name for the wire may be another."""
    written = {_NO_NAME.sub("_", name): name for name in _TOOL.findall(seen.prompt)}
    return {**call, "name": written.get(call["name"], call["name"])}


def _arguments(rng: random.Random, schema: dict[str, Any], seen: Seen) -> dict[str, Any]:
    fields = schema.get("properties") or {
        name: {} for name in rng.sample(["order_id", "amount", "text"], 2)
    }
    found = {name: _value(rng, field, seen) for name, field in fields.items() if rng.random() < 0.9}
    return found if rng.random() < 0.95 else {**found, sample(rng, 5).strip() or "x": 1}


def _value(rng: random.Random, schema: Any, seen: Seen) -> Any:
    """A value for a field: often one that the prompt holds, now and then one of another type."""
    schema = schema if isinstance(schema, dict) and rng.random() < 0.95 else {}
    if schema.get("enum"):
        return rng.choice(schema["enum"])
    kind = schema.get("type") or rng.choice(["string", "number", "boolean", "array", "object"])
    if kind in ("number", "integer"):
        return rng.choice([0, 20, 40, 240, -1, rng.randint(0, 5000)])
    if kind == "boolean":
        return rng.random() < 0.5
    if kind == "array":
        return [_value(rng, schema.get("items"), seen) for _ in range(rng.randint(0, 2))]
    if kind == "object":
        return _arguments(rng, schema, seen) if schema.get("properties") else {}
    things = sorted(set(_THING.findall(seen.prompt)))
    return rng.choice(things) if things and rng.random() < 0.8 else sample(rng, rng.randint(0, 40))


def _updates(rng: random.Random, seen: Seen) -> dict[str, Any]:
    updates = {
        "goal": rng.choice(["", sample(rng, 30)]),
        "strategy": rng.choice(["", sample(rng, 60)]),
        "facts": {
            sample(rng, 6).strip() or "x": _value(rng, {}, seen) for _ in range(rng.randint(0, 3))
        },
        "insights": [sample(rng, 40).strip() for _ in range(rng.randint(0, 2))],
    }
    return dict(rng.sample(sorted(updates.items()), rng.randint(0, 4)))


def _half(rng: random.Random, seen: Seen) -> Answer:
    whole = _json(rng, seen)
    if whole.calls or rng.random() < 0.5:
        return whole
    return Answer(rng.choice(_DAMAGES)(rng, whole.text))


def _retype(rng: random.Random, text: str) -> str:
    reply = json.loads(text)
    reply[rng.choice(["tool_calls", "response", "context_updates", "thinking"])] = rng.choice(
        [1, "x", [1], None]
    )
    return json.dumps(reply)


def _sprinkle(rng: random.Random, text: str) -> str:
    at = rng.randrange(len(text))
    return (
        text[:at] + rng.choice(['"', "{", "]", "\x00", "\u2028", "\ufffd", "\\"]) + text[at + 1 :]
    )


_DAMAGES: Final = (
    lambda rng, text: text[: rng.randrange(len(text))],
    lambda rng, text: f"{sample(rng, 40)}\n```json\n{text}\n```\n{sample(rng, 20)}",
    lambda rng, text: f"[{text}]",
    lambda rng, text: f"{text}\n{text}",
    lambda rng, text: text.replace('"', "'"),
    lambda rng, text: "",
    lambda rng, text: sample(rng, 200),
    _sprinkle,
    _retype,
)
_BEHAVIOURS: Final = {"bigram": _raw, "bigram-json": _json, "bigram-half": _half}
