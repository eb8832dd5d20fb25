"""Which skill a message asks for, by the same search of words as `skills search`
(docs/reference/agent-run.md#without-pack). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from cogcli.base.jsonvalue import list_of
from cogcli.base.redact import MASK, names_secret
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.field_spec import Fields
from cogcli.declarations.spec_types import NESTED
from cogcli.specs.sample_inputs import written_value
from cogcli.specs.word_search import SearchField, Weight, stems, weigh

NEAREST: Final = 3
"""How many are named where none is clear."""
_CLEAR: Final = 1.1
"""How many times the next one's weight a clear hit has."""
_NOTHING: Final = Weight(0.0, 0.0)
_SAID: Final = 0.5
"""The share of the words of a message that a clear hit has."""
_EXAMPLES: Final = {
    "string": "=…",
    "integer": "=1",
    "number": "=1.5",
    "boolean": "=true",
    "array": ":='[]'",
    "object": ":='{}'",
    "any": "=…",
}
_FILES: Final = ("text", "content", "document", "html", "markdown", "source")


class FoundSkill(NamedTuple):
    """A skill that may be meant: what it lacks to run, and a line to run it."""

    skill_id: str
    description: str
    missing: tuple[str, ...]
    run: str

    @property
    def text(self) -> str:
        """The skill in two lines: what it does and needs, and how to run it."""
        needs = f" It needs {', '.join(self.missing)}." if self.missing else ""
        return f"{self.skill_id}: {' '.join(self.description.split())}{needs}\n  {self.run}"


class SkillAnswer(NamedTuple):
    """What a message asks for: one skill that is clearly meant, else the nearest ones."""

    hit: FoundSkill | None
    nearest: tuple[FoundSkill, ...] = ()

    @property
    def text(self) -> str:
        """The answer to whoever asked."""
        if self.hit is not None:
            return self.hit.text
        if not self.nearest:
            return "There is no skill for this."
        return "\n".join(
            ["No skill is clearly meant. The nearest:", *(each.text for each in self.nearest)]
        )


def skill_texts(
    id: str,
    name: str,
    description: str,
    metadata: Mapping[str, Any],
    fields: Iterable[str],
    calls: Iterable[str],
) -> list[SearchField]:
    """What a search for a skill looks through: use cases, id and name, then tags and description, then the names of
    fields and of what it calls."""
    return [
        SearchField(id, 4),
        SearchField(_joined(metadata.get("use_cases")), 4),
        SearchField(name, 3),
        SearchField(_joined(metadata.get("tags")), 2),
        SearchField(description, 2),
        SearchField(" ".join(fields), 0.5),
        SearchField(" ".join(calls), 0.3),
    ]


def rank(message: str, tools: Mapping[str, Capability]) -> dict[str, Weight]:
    """The weight of each of some skill tools for a message, the heaviest first, then by id: up to twice what a search
    gives it, for the share of the words of its id that the message has."""
    asked = stems(message)
    found = weigh(asked, {id: _texts(tools[id]) for id in sorted(tools)})
    weights = {
        id: Weight(weight.value * (1 + _part_named(id, asked)), weight.share)
        for id, weight in found.items()
    }
    return dict(sorted(weights.items(), key=lambda each: -each[1].value))


def answer_for(
    message: str, given: Mapping[str, Any], tools: Mapping[str, Capability]
) -> SkillAnswer:
    """What a message asks for among these tools; `given` are the inputs that it came with."""
    weights = rank(message, tools)
    found = tuple(_found(tools[id], given) for id in list(weights)[:NEAREST])
    best, second = [*weights.values(), _NOTHING, _NOTHING][:2]
    clear = best.share >= _SAID and best.value >= _CLEAR * second.value
    return SkillAnswer(found[0]) if clear else SkillAnswer(None, found)


def _texts(tool: Capability) -> list[SearchField]:
    calls = (each.id for each in tool.reaches)
    id = tool.id.removeprefix(NESTED)
    return skill_texts(
        id, tool.name, tool.description, tool.metadata, (*tool.inputs, *tool.outputs), calls
    )


def _part_named(id: str, asked: list[str]) -> float:
    """The share of the words of an id that are asked for."""
    words = stems(id.removeprefix(NESTED))
    return sum(word in asked for word in words) / max(1, len(words))


def _joined(value: Any) -> str:
    return " ".join(text for text in list_of(value) if isinstance(text, str))


def _found(tool: Capability, given: Mapping[str, Any]) -> FoundSkill:
    required = [
        name for name, field in tool.inputs.items() if field.required and field.default is None
    ]
    missing = tuple(name for name in required if given.get(name) is None)
    id = tool.id.removeprefix(NESTED)
    return FoundSkill(id, tool.description, missing, run_line(id, tool.inputs, given))


def run_line(skill_id: str, inputs: Fields, given: Mapping[str, Any] = {}) -> str:
    """A line to paste: every input that is given, and every other required one with a value of its type to replace."""
    words = [f"cogcli run {skill_id}"]
    for name, field in inputs.items():
        value = given.get(name)
        if value is not None and value != MASK and not names_secret(name):
            words.append(f"-p {name}{written_value(value, field.type)}")
        elif field.required and field.default is None:
            example = _EXAMPLES.get(field.type, "=…")
            if field.enum:
                example = f"={field.enum[0]}"
            elif field.type == "string" and name in _FILES:
                example = "=@FILE"
            words.append(f"-p {name}{example}")
    return " ".join(words)
